// RUN: inductile-opt %s --split-input-file --verify-each -p "kernel-tile{target=cpp}" | filecheck %s

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
