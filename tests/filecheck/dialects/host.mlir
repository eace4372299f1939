// RUN: inductile-opt %s | inductile-opt - | filecheck %s
// Text in is text out, and what is printed parses back to the same text.

// RUN: inductile-opt %s --print-op-generic | inductile-opt - | filecheck %s
kernel.func @softmax(%x: !kernel.buffer<f32, 4096*s0>, %y: !kernel.buffer<f32, 4096*s0>) symbols (s0) target "cpp" {
  kernel.for i0 in 0 to s0 map parallel {
    %row = kernel.local : !kernel.buffer<f32, 4096, local>
    %m = kernel.reduce max r0 in 0 to 4096 map vector {
      %v = kernel.load %x[4096*i0 + r0]
      kernel.yield %v
    }
    %s = kernel.reduce sum r0 in 0 to 4096 map vector {
      %v = kernel.load %x[4096*i0 + r0]
      %d = arith.subf %v, %m : f32
      %e = math.exp %d : f32
      kernel.store %e, %row[r0]
      kernel.yield %e
    }
    kernel.for r0 in 0 to 4096 map vector tile 16 {
      %e = kernel.load %row[r0]
      %q = arith.divf %e, %s : f32
      kernel.store %q, %y[4096*i0 + r0]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @forward_host(%x: !aten.tensor<(s0)x4096xf32>) -> (!aten.tensor<(s0)x4096xf32>) symbols [#sym.symbol<s0, arg = 0, dim = 0>] given [0] {
  %y = host.empty : !aten.tensor<(s0)x4096xf32>
  host.launch @softmax(%x, %y) [s0]
  %v = host.view %y offset 4 : !aten.tensor<(s0)x4092xf32, strides = [4096, 1]>
  host.free %v
  %pool = host.empty kept : !aten.tensor<64xui8>
  %a = host.empty in %pool at 16 place 1 : !aten.tensor<4xf32>
  %b = host.view %a offset 2 place 0 : !aten.tensor<2xf32>
  host.return %y
}
// CHECK-BLESS
// CHECK: builtin.module {
// CHECK-NEXT:   kernel.func @softmax(%x: !kernel.buffer<f32, 4096*s0>, %y: !kernel.buffer<f32, 4096*s0>) symbols (s0) target "cpp" {
// CHECK-NEXT:     kernel.for i0 in 0 to s0 map parallel {
// CHECK-NEXT:       %row = kernel.local : !kernel.buffer<f32, 4096, local>
// CHECK-NEXT:       %m = kernel.reduce max r0 in 0 to 4096 map vector {
// CHECK-NEXT:         %v = kernel.load %x[4096*i0 + r0]
// CHECK-NEXT:         kernel.yield %v
// CHECK-NEXT:       }
// CHECK-NEXT:       %s = kernel.reduce sum r0 in 0 to 4096 map vector {
// CHECK-NEXT:         %v_1 = kernel.load %x[4096*i0 + r0]
// CHECK-NEXT:         %d = arith.subf %v_1, %m : f32
// CHECK-NEXT:         %e = math.exp %d : f32
// CHECK-NEXT:         kernel.store %e, %row[r0]
// CHECK-NEXT:         kernel.yield %e
// CHECK-NEXT:       }
// CHECK-NEXT:       kernel.for r0 in 0 to 4096 map vector tile 16 {
// CHECK-NEXT:         %e_1 = kernel.load %row[r0]
// CHECK-NEXT:         %q = arith.divf %e_1, %s : f32
// CHECK-NEXT:         kernel.store %q, %y[4096*i0 + r0]
// CHECK-NEXT:         kernel.yield
// CHECK-NEXT:       }
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   host.func @forward_host(%x: !aten.tensor<(s0)x4096xf32>) -> (!aten.tensor<(s0)x4096xf32>) symbols [#sym.symbol<s0, arg = 0, dim = 0>] given [0] {
// CHECK-NEXT:     %y = host.empty : !aten.tensor<(s0)x4096xf32>
// CHECK-NEXT:     host.launch @softmax(%x, %y) [s0]
// CHECK-NEXT:     %v = host.view %y offset 4 : !aten.tensor<(s0)x4092xf32, strides = [4096, 1]>
// CHECK-NEXT:     host.free %v
// CHECK-NEXT:     %pool = host.empty kept : !aten.tensor<64xui8>
// CHECK-NEXT:     %a = host.empty in %pool at 16 place 1 : !aten.tensor<4xf32>
// CHECK-NEXT:     %b = host.view %a offset 2 place 0 : !aten.tensor<2xf32>
// CHECK-NEXT:     host.return %y
// CHECK-NEXT:   }
// CHECK-NEXT: }
