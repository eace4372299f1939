// RUN: inductile-opt %s --split-input-file --verify-each=numerics --target cuda:90 --pipeline schedule | filecheck %s
// RUN: inductile-opt %s --split-input-file --target cuda:90 -p kernel-interleave-lanes | filecheck %s --check-prefix=ALONE

// Four side by side: a lane for each place, and one store.

kernel.func @fours(%x: !kernel.buffer<f32, 2048>, %y: !kernel.buffer<f32, 8192>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 32 {
      %a = kernel.load %x[32*i0 + i1]
      %n = arith.negf %a : f32
      %s = arith.addf %a, %a : f32
      %q = arith.mulf %a, %a : f32
      kernel.store %a, %y[128*i0 + 4*i1]
      kernel.store %n, %y[128*i0 + 4*i1 + 1]
      kernel.store %s, %y[128*i0 + 4*i1 + 2]
      kernel.store %q, %y[128*i0 + 4*i1 + 3]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @run(%x: !aten.tensor<2048xf32, device = "cuda:0">) -> (!aten.tensor<8192xf32, device = "cuda:0">) {
  %y = host.empty : !aten.tensor<8192xf32, device = "cuda:0">
  host.launch @fours(%x, %y)
  host.return %y
}

// ALONE-LABEL: kernel.func @fours
// ALONE:         kernel.for i1 in 0 to 128 {
// ALONE:           kernel.index i1 mod 4
// ALONE:           kernel.store %{{.*}}, %y[128*i0 + i1]
// ALONE-NOT:       kernel.store
// ALONE-LABEL: kernel.func @triples
// CHECK-LABEL: kernel.func @fours
// CHECK:         kernel.for i1 in 0 to 128 map grid tile 128 {
// CHECK-DAG:       kernel.load %x[32*i0 + i1 floordiv 4]
// CHECK:           kernel.index i1 mod 4
// CHECK:           arith.select
// CHECK:           kernel.store %{{.*}}, %y[128*i0 + i1]
// CHECK-NOT:       kernel.store

// -----

// Three results of three kinds each; the dimension in front is as long as it was.

kernel.func @triples(%x: !kernel.buffer<f32, 2048>, %y: !kernel.buffer<f32, 6144>, %z: !kernel.buffer<f32, 6144>) {
  kernel.for i0 in 0 to 2048 {
    %a = kernel.load %x[i0]
    %n = arith.negf %a : f32
    %s = arith.addf %a, %a : f32
    kernel.store %a, %y[3*i0]
    kernel.store %n, %y[3*i0 + 2]
    kernel.store %s, %y[3*i0 + 1]
    kernel.store %n, %z[3*i0]
    kernel.store %s, %z[3*i0 + 1]
    kernel.store %a, %z[3*i0 + 2]
    kernel.yield
  }
  kernel.yield
}
host.func @run(%x: !aten.tensor<2048xf32, device = "cuda:0">) -> (!aten.tensor<6144xf32, device = "cuda:0">, !aten.tensor<6144xf32, device = "cuda:0">) {
  %y = host.empty : !aten.tensor<6144xf32, device = "cuda:0">
  %z = host.empty : !aten.tensor<6144xf32, device = "cuda:0">
  host.launch @triples(%x, %y, %z)
  host.return %y, %z
}

// CHECK-LABEL: kernel.func @triples
// CHECK:         kernel.for i0 in 0 to 6144 map grid
// CHECK:           kernel.store %{{.*}}, %y[i0]
// CHECK:           kernel.store %{{.*}}, %z[i0]

// -----

// A gap between the places, another store beside them, places that the kernel reads as well, and two, which the
// emitter stores as one word: as before.

kernel.func @gap(%x: !kernel.buffer<f32, 2048>, %y: !kernel.buffer<f32, 8192>) {
  kernel.for i0 in 0 to 2048 {
    %a = kernel.load %x[i0]
    kernel.store %a, %y[4*i0]
    kernel.store %a, %y[4*i0 + 1]
    kernel.store %a, %y[4*i0 + 3]
    kernel.yield
  }
  kernel.yield
}
kernel.func @beside(%x: !kernel.buffer<f32, 2048>, %y: !kernel.buffer<f32, 6144>, %z: !kernel.buffer<f32, 2048>) {
  kernel.for i0 in 0 to 2048 {
    %a = kernel.load %x[i0]
    kernel.store %a, %y[3*i0]
    kernel.store %a, %y[3*i0 + 1]
    kernel.store %a, %y[3*i0 + 2]
    kernel.store %a, %z[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @turn(%y: !kernel.buffer<f32, 6144>) {
  kernel.for i0 in 0 to 2048 {
    %a = kernel.load %y[3*i0]
    %b = kernel.load %y[3*i0 + 1]
    %c = kernel.load %y[3*i0 + 2]
    kernel.store %b, %y[3*i0]
    kernel.store %c, %y[3*i0 + 1]
    kernel.store %a, %y[3*i0 + 2]
    kernel.yield
  }
  kernel.yield
}
kernel.func @two(%x: !kernel.buffer<f32, 2048>, %y: !kernel.buffer<f32, 4096>) {
  kernel.for i0 in 0 to 2048 {
    %a = kernel.load %x[i0]
    %n = arith.negf %a : f32
    kernel.store %a, %y[2*i0]
    kernel.store %n, %y[2*i0 + 1]
    kernel.yield
  }
  kernel.yield
}
host.func @run(%x: !aten.tensor<2048xf32, device = "cuda:0">) -> (!aten.tensor<6144xf32, device = "cuda:0">, !aten.tensor<2048xf32, device = "cuda:0">) {
  %y = host.empty : !aten.tensor<6144xf32, device = "cuda:0">
  %z = host.empty : !aten.tensor<2048xf32, device = "cuda:0">
  host.launch @beside(%x, %y, %z)
  host.launch @turn(%y)
  host.return %y, %z
}

// CHECK-LABEL: kernel.func @gap
// CHECK:         kernel.for i0 in 0 to 2048 map grid
// CHECK-LABEL: kernel.func @beside
// CHECK:         kernel.for i0 in 0 to 2048 map grid
// CHECK-LABEL: kernel.func @turn
// CHECK:         kernel.for i0 in 0 to 2048 map grid
// CHECK-LABEL: kernel.func @two
// CHECK:         kernel.for i0 in 0 to 2048 map grid

// -----

// Tiles of 66 x 66 would waste half of their lanes: one axis over all.

kernel.func @odd(%x: !kernel.buffer<f32, 32768>, %y: !kernel.buffer<f32, 34848>) {
  kernel.for i0 in 0 to 8 {
    kernel.for i1 in 0 to 66 {
      kernel.for i2 in 0 to 66 {
        %z = arith.constant 0.0 : f32
        %i = kernel.index i2
        %n = kernel.index 64
        %in = arith.cmpi slt, %i, %n : i64
        %j = kernel.index i1
        %jn = arith.cmpi slt, %j, %n : i64
        %m = arith.andi %in, %jn : i1
        %v = kernel.load %x[4096*i0 + 64*i1 + i2] if %m else %z
        kernel.store %v, %y[4356*i0 + 66*i1 + i2]
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @run(%x: !aten.tensor<32768xf32, device = "cuda:0">) -> (!aten.tensor<34848xf32, device = "cuda:0">) {
  %y = host.empty : !aten.tensor<34848xf32, device = "cuda:0">
  host.launch @odd(%x, %y)
  host.return %y
}

// CHECK-LABEL: kernel.func @odd
// CHECK:         kernel.for [[F:i[0-9]+]] in 0 to 34848 map grid tile
// CHECK:           kernel.store %{{.*}}, %y[[[F]]]
