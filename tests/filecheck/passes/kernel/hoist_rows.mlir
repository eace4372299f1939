// RUN: inductile-opt %s --split-input-file --verify-each=numerics -p kernel-hoist-rows | filecheck %s

// The scale of a channel is computed once, and not in each of 32 rows.

kernel.func @norm(%x: !kernel.buffer<f32, 2048>, %var: !kernel.buffer<f32, 64>, %y: !kernel.buffer<f32, 2048>) target "cpp" {
  kernel.for i0 in 0 to 32 {
    kernel.for i1 in 0 to 64 map vector tile 16 {
      %a = kernel.load %var[i1]
      %e = math.exp %a : f32
      %v = kernel.load %x[64*i0 + i1]
      %q = arith.mulf %v, %e : f32
      kernel.store %q, %y[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @run(%x: !aten.tensor<2048xf32>, %var: !aten.tensor<64xf32>, %y: !aten.tensor<2048xf32>) -> (!aten.tensor<2048xf32>, !aten.tensor<64xf32>, !aten.tensor<2048xf32>) {
  host.launch @norm(%x, %var, %y)
  host.return %x, %var, %y
}

// CHECK-LABEL: @norm
// CHECK: [[ROW:%[a-z0-9_]+]] = kernel.local : !kernel.buffer<f32, 64, local>
// CHECK-NEXT: kernel.for i2 in 0 to 64 map vector tile 16 {
// CHECK: math.exp
// CHECK-NEXT: kernel.store %{{.*}}, [[ROW]][i2]
// CHECK: kernel.for i0 in 0 to 32 {
// CHECK-NEXT: kernel.for i1 in 0 to 64 map vector tile 16 {
// CHECK-NEXT: kernel.load [[ROW]][i1]
// CHECK-NOT: math.exp

// -----

// Few rows: one thread would compute in front of them what all threads compute in them.

kernel.func @few(%x: !kernel.buffer<f32, 256>, %var: !kernel.buffer<f32, 64>, %y: !kernel.buffer<f32, 256>) target "cpp" {
  kernel.for i0 in 0 to 4 {
    kernel.for i1 in 0 to 64 map vector tile 16 {
      %a = kernel.load %var[i1]
      %e = math.exp %a : f32
      %v = kernel.load %x[64*i0 + i1]
      %q = arith.mulf %v, %e : f32
      kernel.store %q, %y[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @run(%x: !aten.tensor<256xf32>, %var: !aten.tensor<64xf32>, %y: !aten.tensor<256xf32>) -> (!aten.tensor<256xf32>, !aten.tensor<64xf32>, !aten.tensor<256xf32>) {
  host.launch @few(%x, %var, %y)
  host.return %x, %var, %y
}

// CHECK-LABEL: @few
// CHECK-NOT: kernel.local
