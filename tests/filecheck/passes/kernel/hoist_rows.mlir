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

// -----

// Places to read are kept as numbers are, for rows of any length; what is the same in all lanes needs no buffer.

kernel.func @places(%x: !kernel.buffer<f32, 32*s0>, %k: !kernel.buffer<f32, 1>, %y: !kernel.buffer<f32, 32*s0>) symbols (s0) target "cpp" {
  kernel.for i0 in 0 to 32 {
    kernel.for i1 in 0 to s0 map vector tile 16 {
      %i = kernel.index i1
      %n = kernel.load %k[0]
      %m = math.exp %n : f32
      %f = scalar.cast %i : i64 to f32
      %e = math.exp %f : f32
      %q = scalar.cast %e : f32 to i64
      %p = arith.minsi %q, %i : i64
      %v = kernel.load %x[i0*s0 + d0] (d0 = %p)
      %u = arith.mulf %v, %m : f32
      kernel.store %u, %y[i0*s0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @run(%x: !aten.tensor<32x(s0)xf32>, %k: !aten.tensor<1xf32>, %y: !aten.tensor<32x(s0)xf32>) -> (!aten.tensor<32x(s0)xf32>, !aten.tensor<1xf32>, !aten.tensor<32x(s0)xf32>) symbols [#sym.symbol<s0, arg = 0, dim = 1, min = 2, hint = 9>] {
  host.launch @places(%x, %k, %y) [s0]
  host.return %x, %k, %y
}

// CHECK-LABEL: @places
// CHECK: [[ROW:%[a-z0-9_]+]] = kernel.local : !kernel.buffer<i64, s0, local>
// CHECK-NEXT: kernel.for i2 in 0 to s0 map vector tile 16 {
// CHECK: kernel.store %{{.*}}, [[ROW]][i2]
// CHECK-NOT: kernel.store
// CHECK: kernel.for i0 in 0 to 32 {
// CHECK: [[P:%[a-z0-9_]+]] = kernel.load [[ROW]][i1]
