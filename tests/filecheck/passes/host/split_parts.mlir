// RUN: inductile-opt %s --split-input-file --verify-each -p 'host-split-parts{cudagraphs=true least=2},host-free' | filecheck %s
// RUN: inductile-opt %s --split-input-file -p 'host-split-parts{cudagraphs=true least=2 graph-partition=false}' | filecheck %s --check-prefix=WHOLE

kernel.func @k(%x: !kernel.buffer<f32, 4>, %y: !kernel.buffer<f32, 4>) {
  kernel.for i0 in 0 to 4 { %v = kernel.load %x[i0]  kernel.store %v, %y[i0]  kernel.yield }
  kernel.yield
}

// Launches that do not depend on the synchronising call join the part in front of it. A view is made again where it is
// needed; what is returned of a part is a view of its result.

host.func @f(%x: !aten.tensor<4xf32, device = "cuda:0">) -> (!aten.tensor<2xf32, device = "cuda:0">, !aten.tensor<(u0)x1xi64, device = "cuda:0">) symbols [#sym.symbol<u0>] {
  %a = host.empty : !aten.tensor<4xf32, device = "cuda:0">
  host.launch @k(%x, %a)
  %n = aten.nonzero(%a) binds [u0] : !aten.tensor<(u0)x1xi64, device = "cuda:0">
  %b = host.empty : !aten.tensor<4xf32, device = "cuda:0">
  host.launch @k(%a, %b)
  %v = host.view %b offset 2 : !aten.tensor<2xf32, device = "cuda:0">
  host.return %v, %n
}

// CHECK-LABEL: host.func @f(
// CHECK-NEXT:    [[A:%.*]], [[B:%.*]] = host.call @f_part_0(%x)
// CHECK-NEXT:    host.free %x
// CHECK-NEXT:    %n = aten.nonzero([[A]]) binds [u0]
// CHECK-NEXT:    host.free [[A]]
// CHECK-NEXT:    [[V:%.*]] = host.view [[B]] offset 2
// CHECK-NEXT:    host.return [[V]], %n
// CHECK-LABEL: host.func @f_part_0(
// CHECK-SAME:    recorded {
// CHECK-NEXT:    %a = host.empty
// CHECK-NEXT:    host.launch @k(%x, %a)
// CHECK-NEXT:    host.free %x
// CHECK-NEXT:    %b = host.empty
// CHECK-NEXT:    host.launch @k(%a, %b)
// CHECK-NEXT:    host.return %a, %b

// WHOLE-NOT: recorded

// -----

kernel.func @k(%x: !kernel.buffer<f32, n>, %y: !kernel.buffer<f32, n>) symbols (n) {
  kernel.for i0 in 0 to n { %v = kernel.load %x[i0]  kernel.store %v, %y[i0]  kernel.yield }
  kernel.yield
}

// What depends on the call on the CPU comes behind it; sizes are given to parts as integers. A part of one launch runs.

host.func @g(%x: !aten.tensor<(s0)xf32, device = "cuda:0">) -> (!aten.tensor<(s0)xf32, device = "cuda:0">) symbols [#sym.symbol<s0, arg = 0, dim = 0, min = 2>] {
  %a = host.empty : !aten.tensor<(s0)xf32, device = "cuda:0">
  host.launch @k(%x, %a) [s0]
  %c = aten._to_copy(%a, device = device("cpu")) : !aten.tensor<(s0)xf32>
  %d = aten.sin(%c) : !aten.tensor<(s0)xf32>
  %e = aten._to_copy(%d, device = device("cuda:0")) : !aten.tensor<(s0)xf32, device = "cuda:0">
  %b = host.empty : !aten.tensor<(s0)xf32, device = "cuda:0">
  host.launch @k(%e, %b) [s0]
  %f = aten.exp(%b) : !aten.tensor<(s0)xf32, device = "cuda:0">
  host.return %f
}

// CHECK-LABEL: host.func @g(
// CHECK-NEXT:    %a = host.empty
// CHECK-NEXT:    host.launch @k(%x, %a) [s0]
// CHECK:         %e = aten._to_copy
// CHECK:         [[S:%.*]] = sym.int s0
// CHECK-NEXT:    [[F:%.*]] = host.call @g_part_0(%e, [[S]])
// CHECK:         host.return [[F]]
// CHECK-LABEL: host.func @g_part_0(
// CHECK-SAME:    symbols [#sym.symbol<s0, arg = 1, min = 2>] recorded {
// CHECK-NEXT:    %b = host.empty
// CHECK-NEXT:    host.launch @k(%e, %b) [s0]
// CHECK:         %f = aten.exp(%b)
// CHECK:         host.return %f

// -----

// What attention gives beside its result, and nobody reads, crosses no border: it is recorded with what is around it.

host.func @attention(%q: !aten.tensor<1x2x8x8xf16, device = "cuda:0">) -> (!aten.tensor<1x2x8x8xf16, device = "cuda:0">, !aten.tensor<(u0)x4xi64, device = "cuda:0">) symbols [#sym.symbol<u0>] {
  %n = aten.nonzero(%q) binds [u0] : !aten.tensor<(u0)x4xi64, device = "cuda:0">
  %e = aten.exp(%q) : !aten.tensor<1x2x8x8xf16, device = "cuda:0">
  %o:9 = aten._scaled_dot_product_cudnn_attention(%q, %q, %e, compute_log_sumexp = false) : !aten.tensor<1x2x8x8xf16, device = "cuda:0">, !aten.tensor<0xf32, device = "cuda:0">, none, none, index, index, !aten.tensor<i64, device = "cuda:0">, !aten.tensor<i64, device = "cuda:0">, none
  host.return %o#0, %n
}

// CHECK-LABEL: host.func @attention(
// CHECK:         aten.nonzero
// CHECK-LABEL: host.func @attention_part_0(
// CHECK-NEXT:    aten.exp
// CHECK-NEXT:    aten._scaled_dot_product_cudnn_attention
