// RUN: inductile-opt %s --split-input-file --verify-each --target cpp -p kernel-stage-rows --remarks 2>&1 | filecheck %s

// Sixteen rows of a transposed matrix are a line of the cache: they are copied at once, and read from the copy.

kernel.func @transposed(%x: !kernel.buffer<f32, 102400>, %y: !kernel.buffer<f32, 102400>) {
  kernel.for i0 in 0 to 1024 {
    %s = kernel.reduce sum i1 in 0 to 100 {
      %v = kernel.load %x[1024*i1 + i0]
      kernel.yield %v
    }
    kernel.for i1 in 0 to 100 {
      %v = kernel.load %x[1024*i1 + i0]
      %r = arith.divf %v, %s : f32
      kernel.store %r, %y[100*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @transposed
// CHECK-NEXT: kernel.for [[B:i[0-9]+]] in 0 to 64 {
// CHECK-NEXT: %[[ROWS:.*]] = kernel.local : !kernel.buffer<f32, 2048, local>
// CHECK-NEXT: kernel.for [[J:i[0-9]+]] in 0 to 100 {
// CHECK-NEXT: kernel.for [[R:i[0-9]+]] in 16*[[B]] to 16*[[B]] + 16 {
// CHECK-NEXT: %[[V:.*]] = kernel.load %x[1024*[[J]] + [[R]]]
// CHECK-NEXT: kernel.store %[[V]], %[[ROWS]][
// CHECK: kernel.for i0 in 16*[[B]] to 16*[[B]] + 16 {
// CHECK-NEXT: kernel.reduce sum i1 in 0 to 100 {
// CHECK-NEXT: kernel.load %[[ROWS]][
// CHECK: kernel.for i1 in 0 to 100 {
// CHECK-NEXT: kernel.load %[[ROWS]][

// -----

// A sum alone is read along its lines by lanes for its rows, and what is written is not copied.

kernel.func @columns(%x: !kernel.buffer<f32, 102400>, %y: !kernel.buffer<f32, 1024>) {
  kernel.for i0 in 0 to 1024 {
    %s = kernel.reduce sum i1 in 0 to 100 {
      %v = kernel.load %x[1024*i1 + i0]
      kernel.yield %v
    }
    kernel.store %s, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @written(%x: !kernel.buffer<f32, 102400>, %y: !kernel.buffer<f32, 102400>) {
  kernel.for i0 in 0 to 1024 {
    kernel.for i1 in 0 to 100 {
      %v = kernel.load %x[1024*i1 + i0]
      kernel.store %v, %y[100*i0 + i1]
      kernel.store %v, %x[1024*i1 + i0]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @columns
// CHECK-NOT: kernel.local
// CHECK-LABEL: @written
// CHECK-NOT: kernel.local

// -----

// A row that is too long for the cache is read where it lies.

kernel.func @long(%x: !kernel.buffer<f32, 67108864>, %y: !kernel.buffer<f32, 67108864>) {
  kernel.for i0 in 0 to 1024 {
    %s = kernel.reduce sum i1 in 0 to 65536 {
      %v = kernel.load %x[1024*i1 + i0]
      kernel.yield %v
    }
    kernel.for i1 in 0 to 65536 {
      %v = kernel.load %x[1024*i1 + i0]
      %r = arith.divf %v, %s : f32
      kernel.store %r, %y[65536*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @long
// CHECK-NOT: kernel.local
// CHECK: rows across memory are read where they lie: a line's worth of them is larger than half of the second cache
