// RUN: inductile-opt %s --split-input-file --verify-each -p kernel-write-ahead | filecheck %s
// RUN: inductile-opt %s --split-input-file --pipeline schedule | filecheck %s

// The row of exponentials lies where its quotients will be.

kernel.func @softmax(%x: !kernel.buffer<f32, 2097152>, %y: !kernel.buffer<f32, 2097152>) {
  kernel.for i0 in 0 to 512 {
    %row = kernel.local : !kernel.buffer<f32, 4096, local>
    %sum = kernel.reduce sum i1 in 0 to 4096 {
      %v = kernel.load %x[4096*i0 + i1]
      %e = math.exp %v : f32
      kernel.store %e, %row[i1]
      kernel.yield %e
    }
    kernel.for i1 in 0 to 4096 {
      %e = kernel.load %row[i1]
      %q = arith.divf %e, %sum : f32
      kernel.store %q, %y[4096*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @softmax
// CHECK-NOT:     kernel.local
// CHECK:         kernel.store %e, %y[4096*i0 + i1]
// CHECK:         %[[E:.*]] = kernel.load %y[4096*i0 + i1]
// CHECK-NEXT:    %[[Q:.*]] = arith.divf %[[E]], %sum
// CHECK-NEXT:    kernel.store %[[Q]], %y[4096*i0 + i1]

// -----

// A later loop reads the row again: it is still needed after the result is written.

kernel.func @read_later(%y: !kernel.buffer<f32, 2097152>, %z: !kernel.buffer<f64, 2097152>, %x: !kernel.buffer<f32, 2097152>) {
  kernel.for i0 in 0 to 512 {
    %row = kernel.local : !kernel.buffer<f32, 4096, local>
    kernel.for i1 in 0 to 4096 {
      %v = kernel.load %x[4096*i0 + i1]
      %e = math.exp %v : f32
      kernel.store %e, %row[i1]
      kernel.yield
    }
    %sum = kernel.reduce sum i1 in 0 to 4096 {
      %e = kernel.load %row[i1]
      %d = arith.addf %e, %e : f32
      kernel.store %d, %y[4096*i0 + i1]
      kernel.yield %e
    }
    kernel.for i1 in 0 to 4096 {
      %e = kernel.load %row[i1]
      %q = arith.divf %e, %sum : f32
      %w = arith.extf %q : f32 to f64
      kernel.store %w, %z[4096*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @read_later
// CHECK:         %row = kernel.local
// CHECK:         kernel.store %e, %row[i1]

// -----

// The result is written in another order: its rows would not lie as the buffer's do.

kernel.func @columns(%x: !kernel.buffer<f32, 2097152>, %y: !kernel.buffer<f32, 2097152>) {
  kernel.for i0 in 0 to 512 {
    %row = kernel.local : !kernel.buffer<f32, 4096, local>
    %sum = kernel.reduce sum i1 in 0 to 4096 {
      %v = kernel.load %x[4096*i0 + i1]
      %e = math.exp %v : f32
      kernel.store %e, %row[i1]
      kernel.yield %e
    }
    kernel.for i1 in 0 to 4096 {
      %e = kernel.load %row[i1]
      %q = arith.divf %e, %sum : f32
      kernel.store %q, %y[i0 + 512*i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @columns
// CHECK:         kernel.local

// -----

// The result's memory holds an input as well, which the last loop reads.

kernel.func @in_place(%x: !kernel.buffer<f32, 2097152>) {
  kernel.for i0 in 0 to 512 {
    %row = kernel.local : !kernel.buffer<f32, 4096, local>
    %sum = kernel.reduce sum i1 in 0 to 4096 {
      %v = kernel.load %x[4096*i0 + i1]
      %e = math.exp %v : f32
      kernel.store %e, %row[i1]
      kernel.yield %e
    }
    kernel.for i1 in 0 to 4096 {
      %v = kernel.load %x[4096*i0 + i1]
      %e = kernel.load %row[i1]
      %q = arith.divf %e, %sum : f32
      %d = arith.mulf %q, %v : f32
      kernel.store %d, %x[4096*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @in_place
// CHECK:         kernel.local
