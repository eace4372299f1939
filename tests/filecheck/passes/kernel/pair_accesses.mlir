// RUN: inductile-opt %s --split-input-file --verify-each -p kernel-pair-accesses | inductile-opt - --split-input-file | filecheck %s

// Complex products read and write neighbours: halves of one access each.

kernel.func @complex(%x: !kernel.buffer<f32, 256>, %y: !kernel.buffer<f32, 256>) target "cuda:90" {
  kernel.for i0 in 0 to 128 map grid tile 128 {
    %a = kernel.load %x[2*i0]
    %b = kernel.load %x[2*i0 + 1]
    %c = arith.mulf %a, %b : f32
    %d = arith.addf %a, %b : f32
    kernel.store %c, %y[2*i0]
    kernel.store %d, %y[2*i0 + 1]
    kernel.yield
  }
  kernel.yield
}
host.func @run(%x: !aten.tensor<256xf32, device = "cuda:0">, %y: !aten.tensor<256xf32, device = "cuda:0">) -> (!aten.tensor<256xf32, device = "cuda:0">) {
  host.launch @complex(%x, %y)
  host.return %y
}

// CHECK-LABEL: @complex
// CHECK: kernel.load even %x[2*i0]
// CHECK-NEXT: kernel.load odd %x[2*i0 + 1]
// CHECK: kernel.store even %{{.*}}, %y[2*i0]
// CHECK-NEXT: kernel.store odd %{{.*}}, %y[2*i0 + 1]

// -----

// Neighbours that begin at an odd place, whose buffer is written too, or that lanes read one by one.

kernel.func @others(%x: !kernel.buffer<f32, 258>, %y: !kernel.buffer<f32, 256>, %z: !kernel.buffer<f32, 129>) target "cuda:90" {
  kernel.for i0 in 0 to 128 map grid tile 128 {
    %a = kernel.load %x[2*i0 + 1]
    %b = kernel.load %x[2*i0 + 2]
    %c = kernel.load %y[2*i0]
    %d = kernel.load %y[2*i0 + 1]
    %e = kernel.load %z[i0]
    %f = kernel.load %z[i0 + 1]
    %g = arith.addf %a, %b : f32
    %h = arith.addf %c, %d : f32
    %i = arith.addf %e, %f : f32
    %j = arith.addf %g, %h : f32
    %k = arith.addf %i, %j : f32
    kernel.store %k, %y[2*i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @others
// CHECK-NOT: even
