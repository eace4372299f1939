// RUN: inductile-opt %s --target cuda:90 -p kernel-collapse | filecheck %s
// RUN: inductile-opt %s --target cuda:90 -p kernel-collapse --verify-each=numerics | filecheck %s
// RUN: inductile-opt %s --target cpp -p kernel-collapse | filecheck %s --check-prefix=CPU

// Scales of groups are loaded for each group: on a GPU lanes run along all of a row.
kernel.func @groups(%w: !kernel.buffer<i8, 8192>, %s: !kernel.buffer<f32, 128>, %y: !kernel.buffer<f32, 4>) {
  kernel.for i0 in 0 to 4 {
    %t = kernel.reduce sum i1 in 0 to 32 {
      %g = kernel.reduce sum i2 in 0 to 64 {
        %n = kernel.load %w[2048*i0 + 64*i1 + i2]
        %c = kernel.load %s[32*i0 + i1]
        %f = arith.sitofp %n : i8 to f32
        %p = arith.mulf %f, %c : f32
        kernel.yield %p
      }
      kernel.yield %g
    }
    kernel.store %t, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @run(%w: !aten.tensor<8192xi8, device = "cuda:0">, %s: !aten.tensor<128xf32, device = "cuda:0">) -> (!aten.tensor<4xf32, device = "cuda:0">) {
  %y = host.empty : !aten.tensor<4xf32, device = "cuda:0">
  host.launch @groups(%w, %s, %y)
  host.return %y
}
// CHECK-LABEL: kernel.func @groups
// CHECK:         kernel.reduce sum i1 in 0 to 2048 {
// CHECK:           kernel.load %w[2048*i0 + i1]
// CHECK:           kernel.load %s[32*i0 + i1 floordiv 64]
// CPU:           kernel.reduce sum i1 in 0 to 32 {
// CPU:             kernel.reduce sum i2 in 0 to 64 {
