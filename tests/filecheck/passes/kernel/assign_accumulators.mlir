// RUN: inductile-opt %s --split-input-file --verify-each -p kernel-assign-accumulators | inductile-opt - --split-input-file | filecheck %s

// A long sum in lanes: the tile says how many accumulators there are, and a block takes 32 steps of them. A maximum is
// exact in any order.

kernel.func @row(%x: !kernel.buffer<f32, n>, %y: !kernel.buffer<f32, 2>) symbols (n) target "cpp" {
  %s = kernel.reduce sum r0 in 0 to n map vector tile 64 {
    %v = kernel.load %x[r0]
    kernel.yield %v
  }
  %m = kernel.reduce max r1 in 0 to n map vector {
    %v = kernel.load %x[r1]
    kernel.yield %v
  }
  kernel.store %s, %y[0]
  kernel.store %m, %y[1]
  kernel.yield
}

// CHECK-LABEL: @row
// CHECK: kernel.reduce sum r0 in 0 to n map vector tile 64 block 2048 {
// CHECK: kernel.reduce max r1 in 0 to n map vector tile 32 {

// -----

// Lanes along the columns run one sum together, step by step; what has few elements needs no lanes, and no blocks.

kernel.func @columns(%x: !kernel.buffer<f32, n*m>, %y: !kernel.buffer<f32, n>) symbols (n, m) target "cpp" {
  kernel.for i0 in 0 to n map vector tile 64 {
    %s = kernel.reduce sum r0 in 0 to m {
      %v = kernel.load %x[n*r0 + i0]
      kernel.yield %v
    }
    %t = kernel.reduce sum r1 in 0 to 64 {
      %v = kernel.load %x[n*r1 + i0]
      kernel.yield %v
    }
    %u = arith.addf %s, %t : f32
    kernel.store %u, %y[i0]
    kernel.yield
  }
  %few = kernel.reduce sum r2 in 0 to 7 map vector tile 16 {
    %v = kernel.load %x[r2]
    kernel.yield %v
  }
  kernel.store %few, %y[0]
  kernel.yield
}

// CHECK-LABEL: @columns
// CHECK: kernel.for i0 in 0 to n map vector tile 64 {
// CHECK: kernel.reduce sum r0 in 0 to m block 32 {
// CHECK: kernel.reduce sum r1 in 0 to 64 {
// CHECK: kernel.reduce sum r2 in 0 to 7 {

// -----

// Inner loops whose length differs from lane to lane: no lanes. Float64 and integers are not summed in blocks.

kernel.func @triangle(%x: !kernel.buffer<f64, n>, %y: !kernel.buffer<f64, n>) symbols (n) target "cpp" {
  kernel.for i0 in 0 to n map vector tile 16 {
    %s = kernel.reduce sum r0 in 0 to i0 {
      %v = kernel.load %x[r0]
      kernel.yield %v
    }
    kernel.store %s, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @triangle
// CHECK: kernel.for i0 in 0 to n {
// CHECK: kernel.reduce sum r0 in 0 to i0 {

// -----

// A kernel for a GPU stays as it is.

kernel.func @gpu(%x: !kernel.buffer<f32, n>, %y: !kernel.buffer<f32, 1>) symbols (n) target "cuda:90" num_warps 4 {
  %s = kernel.reduce sum r0 in 0 to n map vector tile 1024 {
    %v = kernel.load %x[r0]
    kernel.yield %v
  }
  kernel.store %s, %y[0]
  kernel.yield
}

// CHECK-LABEL: @gpu
// CHECK: kernel.reduce sum r0 in 0 to n map vector tile 1024 {

// -----

// A pinned nest keeps the lanes that somebody chose, more than there are elements among them.

kernel.func @pinned(%x: !kernel.buffer<f32, 60>, %y: !kernel.buffer<f32, 6>, %z: !kernel.buffer<f32, 6>) target "cpp" {
  kernel.for i0 in 0 to 6 map vector tile 16 pinned {
    %s = kernel.reduce sum r0 in 0 to 10 {
      %v = kernel.load %x[10*i0 + r0]
      kernel.yield %v
    }
    kernel.store %s, %y[i0]
    kernel.yield
  }
  kernel.for i1 in 0 to 6 pinned {
    %t = kernel.reduce sum r1 in 0 to 10 map vector tile 16 {
      %w = kernel.load %x[10*i1 + r1]
      kernel.yield %w
    }
    %u = kernel.reduce max r2 in 0 to 6 map vector tile 4 {
      %q = kernel.load %x[10*i1 + r2]
      kernel.yield %q
    }
    %a = arith.addf %t, %u : f32
    kernel.store %a, %z[i1]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @pinned
// CHECK: kernel.for i0 in 0 to 6 map vector tile 16 pinned {
// CHECK: kernel.reduce sum r1 in 0 to 10 map vector tile 16 {
// CHECK: kernel.reduce max r2 in 0 to 6 map vector tile 4 {
