// RUN: inductile-opt %s --split-input-file --verify-each=numerics --target cuda:90 --pipeline schedule | filecheck %s
// RUN: inductile-opt %s --split-input-file --target cuda:90 -p kernel-pair-lanes | filecheck %s --check-prefix=ALONE

// Two neighbours read one place: half as many lanes read it once, and store both. Triton sees no order in stores of
// every other place along a tile of two axes, so that the tile has one.

kernel.func @twice(%x: !kernel.buffer<f32, 2048>, %y: !kernel.buffer<f32, 8192>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 128 {
      %a = kernel.load %x[64*(i0 floordiv 2) + i1 floordiv 2]
      %n = arith.negf %a : f32
      kernel.store %n, %y[128*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @run(%x: !aten.tensor<2048xf32, device = "cuda:0">) -> (!aten.tensor<8192xf32, device = "cuda:0">) {
  %y = host.empty : !aten.tensor<8192xf32, device = "cuda:0">
  host.launch @twice(%x, %y)
  host.return %y
}

// ALONE-LABEL: kernel.func @twice
// ALONE:         kernel.load
// ALONE-NOT:     kernel.load
// ALONE:         kernel.store
// ALONE-NEXT:    kernel.store
// ALONE-LABEL: kernel.func @thrice
// ALONE:         kernel.load %x[i0 floordiv 3]
// CHECK-LABEL: kernel.func @twice
// CHECK:         kernel.for [[I:i[0-9]+]] in 0 to 4096 map grid tile 128 {
// CHECK-NEXT:      kernel.load %x[64*([[I]] floordiv 128) + [[I]] mod 64]
// CHECK-NEXT:      arith.negf
// CHECK-NEXT:      kernel.store even %{{.*}}, %y[2*[[I]]]
// CHECK-NEXT:      kernel.store odd %{{.*}}, %y[2*[[I]] + 1]
// CHECK-NOT:       kernel.load

// -----

// Three neighbours, and an odd number of places: as they are.

kernel.func @thrice(%x: !kernel.buffer<f32, 64>, %y: !kernel.buffer<f32, 192>, %z: !kernel.buffer<f32, 129>) {
  kernel.for i0 in 0 to 192 {
    %a = kernel.load %x[i0 floordiv 3]
    kernel.store %a, %y[i0]
    kernel.yield
  }
  kernel.for i0 in 0 to 129 {
    %b = kernel.load %x[(i0 floordiv 2) mod 64]
    kernel.store %b, %z[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @run(%x: !aten.tensor<64xf32, device = "cuda:0">) -> (!aten.tensor<192xf32, device = "cuda:0">, !aten.tensor<129xf32, device = "cuda:0">) {
  %y = host.empty : !aten.tensor<192xf32, device = "cuda:0">
  %z = host.empty : !aten.tensor<129xf32, device = "cuda:0">
  host.launch @thrice(%x, %y, %z)
  host.return %y, %z
}

// CHECK-LABEL: kernel.func @thrice
// CHECK:         kernel.load %x[i0 floordiv 3]
// CHECK:         kernel.load %x[(i0 floordiv 2) mod 64]

// -----

// A row of a table for each of several columns: lanes lie along the columns in either case, the tile has two axes.

kernel.func @rows(%x: !kernel.buffer<f32, 2048>, %j: !kernel.buffer<i64, 64>, %y: !kernel.buffer<f32, 2048>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 32 {
      %k = kernel.load %j[i0]
      %a = kernel.load %x[32*(i0 floordiv 2) + i1]
      %f = arith.sitofp %k : i64 to f32
      %b = arith.addf %a, %f : f32
      kernel.store %b, %y[32*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @run(%x: !aten.tensor<2048xf32, device = "cuda:0">, %j: !aten.tensor<64xi64, device = "cuda:0">) -> (!aten.tensor<2048xf32, device = "cuda:0">) {
  %y = host.empty : !aten.tensor<2048xf32, device = "cuda:0">
  host.launch @rows(%x, %j, %y)
  host.return %y
}

// CHECK-LABEL: kernel.func @rows
// CHECK:         kernel.for i0 in 0 to 64 map grid tile 4 {
// CHECK:           kernel.for i1 in 0 to 32 map grid tile 32 {

// -----
// The numbers of a pair decide comparisons of them: each is unpacked as its own place says.

kernel.func @unpack(%x: !kernel.buffer<i8, 2048>, %y: !kernel.buffer<i8, 4096>) {
  kernel.for i0 in 0 to 4096 {
    %b = kernel.load %x[i0 floordiv 2]
    %i = kernel.index i0 mod 2
    %one = kernel.index 1
    %first = arith.cmpi slt, %i, %one : i64
    %mask = arith.constant 15 : i8
    %four = arith.constant 4 : i8
    %low = arith.andi %b, %mask : i8
    %high = arith.shrui %b, %four : i8
    %v = arith.select %first, %low, %high : i8
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @run(%x: !aten.tensor<2048xi8, device = "cuda:0">) -> (!aten.tensor<4096xi8, device = "cuda:0">) {
  %y = host.empty : !aten.tensor<4096xi8, device = "cuda:0">
  host.launch @unpack(%x, %y)
  host.return %y
}

// ALONE-LABEL: kernel.func @unpack
// ALONE-NOT:     arith.select
// ALONE:         kernel.store %low, %y[2*i0]
// ALONE:         kernel.store %high, %y[2*i0 + 1]
