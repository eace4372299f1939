// RUN: inductile-opt %s --split-input-file --verify-each --pipeline schedule | filecheck %s

// What is the same in all lanes is computed before them.

kernel.func @scaled(%x: !kernel.buffer<f32, 65536>, %w: !kernel.buffer<f32, 64>, %y: !kernel.buffer<f32, 65536>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 1024 {
      %s = kernel.load %w[i0]
      %e = math.exp %s : f32
      %v = kernel.load %x[1024*i0 + i1]
      %p = arith.mulf %v, %e : f32
      kernel.store %p, %y[1024*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @scaled
// CHECK:         %s = kernel.load %w[i0]
// CHECK-NEXT:    %e = math.exp %s
// CHECK-NEXT:    kernel.for i1 in 0 to 1024 map vector
// CHECK-NEXT:      kernel.load %x

// -----

// The kernel writes what it reads: each lane reads on its own.

kernel.func @in_place(%x: !kernel.buffer<f32, 65536>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 1024 {
      %s = kernel.load %x[1024*i0]
      %v = kernel.load %x[1024*i0 + i1]
      %p = arith.addf %v, %s : f32
      kernel.store %p, %x[1024*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @in_place
// CHECK:         kernel.for i1 in 0 to 1024 map vector
// CHECK-NEXT:      kernel.load %x[1024*i0]

// -----

// Nothing may run: nothing is read before.

kernel.func @maybe_empty(%x: !kernel.buffer<f32, 64*s0>, %w: !kernel.buffer<f32, 64>, %y: !kernel.buffer<f32, 64*s0>) symbols (s0) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to s0 {
      %s = kernel.load %w[i0]
      %v = kernel.load %x[s0*i0 + i1]
      %p = arith.mulf %v, %s : f32
      kernel.store %p, %y[s0*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @maybe_empty
// CHECK:         kernel.for i1 in 0 to s0 map vector
// CHECK-NEXT:      kernel.load %w[i0]

// -----

// What is dear and the same in every row is computed once, in front of the rows: the scale, not the weight that it reads.

kernel.func @rows(%x: !kernel.buffer<f32, 65536>, %v: !kernel.buffer<f32, 64>, %w: !kernel.buffer<f32, 64>, %y: !kernel.buffer<f32, 65536>) {
  kernel.for i0 in 0 to 1024 {
    kernel.for i1 in 0 to 64 {
      %a = kernel.load %v[i1]
      %s = math.sqrt %a : f32
      %b = kernel.load %w[i1]
      %q = arith.divf %b, %s : f32
      %l = kernel.load %x[64*i0 + i1]
      %p = arith.mulf %l, %q : f32
      %r = arith.addf %p, %b : f32
      kernel.store %r, %y[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @rows
// CHECK-NEXT:    %q = kernel.local : !kernel.buffer<f32, 64, local>
// CHECK-NEXT:    kernel.for i2 in 0 to 64 map vector
// CHECK-NEXT:      kernel.load %v[i2]
// CHECK-NEXT:      math.sqrt
// CHECK-NEXT:      kernel.load %w[i2]
// CHECK-NEXT:      arith.divf
// CHECK-NEXT:      kernel.store %{{.*}}, %q[i2]
// CHECK:         kernel.for i0 in 0 to 1024
// CHECK-NEXT:      kernel.for i1 in 0 to 64 map vector
// CHECK-NEXT:        kernel.load %q[i1]
// CHECK-NEXT:        kernel.load %w[i1]
// CHECK-NEXT:        kernel.load %x
// CHECK-NOT:         math.sqrt

// -----

// Few rows, a buffer that the kernel writes, and what is cheap stay as they are.

kernel.func @stays(%x: !kernel.buffer<f32, 65536>, %v: !kernel.buffer<f32, 64>, %y: !kernel.buffer<f32, 65536>, %z: !kernel.buffer<f32, 128>) {
  kernel.for i0 in 0 to 2 {
    kernel.for i1 in 0 to 64 {
      %a = kernel.load %v[i1]
      %s = math.sqrt %a : f32
      %l = kernel.load %x[64*i0 + i1]
      %p = arith.mulf %l, %s : f32
      kernel.store %p, %z[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.for i0 in 0 to 1024 {
    kernel.for i1 in 0 to 64 {
      %a = kernel.load %z[i1]
      %s = math.sqrt %a : f32
      %b = kernel.load %v[i1]
      %c = arith.mulf %b, %b : f32
      %l = kernel.load %x[64*i0 + i1]
      %p = arith.mulf %l, %s : f32
      %q = arith.addf %p, %c : f32
      kernel.store %q, %y[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @stays
// CHECK-NOT:     kernel.local
