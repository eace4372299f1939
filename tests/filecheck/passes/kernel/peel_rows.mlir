// RUN: inductile-opt %s --split-input-file --verify-each numerics -p kernel-peel-rows | filecheck %s

// A window along serial rows: masks are decided in the middle, and at each end.

kernel.func @serial(%x: !kernel.buffer<f32, 3584>, %y: !kernel.buffer<f32, 3584>) target "cpp" {
  kernel.for i0 in 0 to 56 {
    kernel.for i1 in 0 to 64 map vector tile 16 {
      %zero = arith.constant 0.0 : f32
      %c = arith.constant 0 : i64
      %i = kernel.index i0 - 1
      %inside = arith.cmpi sge, %i, %c : i64
      %a = kernel.load %x[64*i0 + i1 - 64] if %inside else %zero
      kernel.store %a, %y[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

host.func @run(%x: !aten.tensor<56x64xf32>) -> (!aten.tensor<56x64xf32>) {
  %y = host.empty : !aten.tensor<56x64xf32>
  host.launch @serial(%x, %y)
  host.return %y
}

// CHECK-LABEL: kernel.func @serial
// CHECK:         kernel.for i0 in 0 to 1 {
// CHECK-NOT:       kernel.load
// CHECK:         kernel.for i0 in 1 to 56 {
// CHECK:           kernel.load %x[64*i0 + i1 - 64]{{$}}

// -----

// Threads take rows of four images, and a reduction moves along the window: one of three loops runs.

kernel.func @images(%x: !kernel.buffer<f32, 2048>, %y: !kernel.buffer<f32, 2048>) target "cpp" {
  kernel.for i0 in 0 to 32 map parallel {
    kernel.for i1 in 0 to 64 map vector tile 16 {
      %m = kernel.reduce sum i2 in 0 to 3 {
        %zero = arith.constant 0.0 : f32
        %low = arith.constant 0 : i64
        %high = arith.constant 8 : i64
        %i = kernel.index i2 + i0 mod 8 - 1
        %above = arith.cmpi sge, %i, %low : i64
        %below = arith.cmpi slt, %i, %high : i64
        %inside = arith.andi %above, %below : i1
        %a = kernel.load %x[64*i0 + 64*i2 + i1 - 64] if %inside else %zero
        kernel.yield %a
      }
      kernel.store %m, %y[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

host.func @run(%x: !aten.tensor<32x64xf32>) -> (!aten.tensor<32x64xf32>) {
  %y = host.empty : !aten.tensor<32x64xf32>
  host.launch @images(%x, %y)
  host.return %y
}

// CHECK-LABEL: kernel.func @images
// CHECK:         kernel.for i0 in 0 to 32 map parallel
// CHECK:           kernel.for i3 in i0 mod 8 to min(i0 mod 8 + 1, 1) {
// CHECK:             if %
// CHECK:           kernel.for i3 in max(i0 mod 8, 1) to min(i0 mod 8 + 1, 7) {
// CHECK:             kernel.load %x[512*(i0 floordiv 8) + 64*i2 + 64*i3 + i1 - 64]{{$}}
// CHECK:           kernel.for i3 in max(i0 mod 8, 7) to i0 mod 8 + 1 {
// CHECK:             if %

// -----

// Each row has another condition on its lanes: nothing is decided by rows.

kernel.func @triangle(%x: !kernel.buffer<f32, 4096>, %y: !kernel.buffer<f32, 4096>) target "cpp" {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 64 map vector tile 16 {
      %zero = arith.constant 0.0 : f32
      %i = kernel.index i0
      %j = kernel.index i1
      %below = arith.cmpi sle, %j, %i : i64
      %a = kernel.load %x[64*i0 + i1] if %below else %zero
      kernel.store %a, %y[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

host.func @run(%x: !aten.tensor<64x64xf32>) -> (!aten.tensor<64x64xf32>) {
  %y = host.empty : !aten.tensor<64x64xf32>
  host.launch @triangle(%x, %y)
  host.return %y
}

// CHECK-LABEL: kernel.func @triangle
// CHECK:         kernel.for i0 in 0 to 64 {
// CHECK-NOT:     kernel.for i0
