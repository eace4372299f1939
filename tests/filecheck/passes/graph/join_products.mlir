// RUN: inductile-opt %s --target cuda:90 -p 'graph-canonicalize,graph-join-products' | filecheck %s
// RUN: inductile-opt %s --target cuda:90 -p 'graph-canonicalize,graph-join-products' --remarks 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: inductile-opt %s --target cuda:90 -p 'graph-canonicalize,graph-join-products,graph-hoist-weights' | filecheck %s --check-prefix=ONCE

// Queries, keys and values are views of one product; so are the heads that attention reads.
// CHECK-LABEL: func.func @heads(
// CHECK: %[[W:.*]] = aten.cat({{.*}}) {packing} : !aten.tensor<192x64xbf16
// CHECK: %[[T:.*]] = aten.permute(%[[W]], dims = [1, 0])
// CHECK: %[[B:.*]] = aten.cat([%bq, %bk, %bv]) {packing} : !aten.tensor<192xbf16
// CHECK: %[[Y:.*]] = aten.addmm(%[[B]], %x, %[[T]]) : !aten.tensor<128x192xbf16
// CHECK-DAG: %[[Q:.*]] = aten.slice.Tensor(%[[Y]], dim = 1, start = 0, end = 64) : !aten.tensor<128x64xbf16, strides = [192, 1]
// CHECK-DAG: %[[K:.*]] = aten.slice.Tensor(%[[Y]], dim = 1, start = 64, end = 128)
// CHECK-DAG: %[[V:.*]] = aten.slice.Tensor(%[[Y]], dim = 1, start = 128, end = 192)
// CHECK: aten.view(%[[Q]], size = [2, 64, 4, 16]) : !aten.tensor<2x64x4x16xbf16, strides = [12288, 192, 16, 1]
// CHECK: aten.permute(%{{.*}}, dims = [0, 2, 1, 3]) : !aten.tensor<2x4x64x16xbf16, strides = [12288, 16, 192, 1]
// CHECK-NOT: aten.addmm
// REMARK: passed: aten.addmm: products of one operand are one: 3; estimated at
// REMARK: missed: aten.mm: it is not joined with other products of its operand: aten.mm reads it
// ONCE-LABEL: func.func @heads(
// ONCE: func.call @heads_weights(
// ONCE-NOT: aten.cat
// ONCE: func.func private @heads_weights
func.func @heads(%x: !aten.tensor<128x64xbf16, device = "cuda:0">, %wq: !aten.tensor<64x64xbf16, device = "cuda:0"> {frozen}, %bq: !aten.tensor<64xbf16, device = "cuda:0"> {frozen}, %wk: !aten.tensor<64x64xbf16, device = "cuda:0"> {frozen}, %bk: !aten.tensor<64xbf16, device = "cuda:0"> {frozen}, %wv: !aten.tensor<64x64xbf16, device = "cuda:0"> {frozen}, %bv: !aten.tensor<64xbf16, device = "cuda:0"> {frozen}) -> !aten.tensor<2x4x64x16xbf16, strides = [4096, 16, 64, 1], device = "cuda:0"> {
  %tq = aten.t(%wq) : !aten.tensor<64x64xbf16, strides = [1, 64], device = "cuda:0">
  %q0 = aten.addmm(%bq, %x, %tq) : !aten.tensor<128x64xbf16, device = "cuda:0">
  %q1 = aten.view(%q0, size = [2, 64, 4, 16]) : !aten.tensor<2x64x4x16xbf16, device = "cuda:0">
  %q2 = aten.permute(%q1, dims = [0, 2, 1, 3]) : !aten.tensor<2x4x64x16xbf16, strides = [4096, 16, 64, 1], device = "cuda:0">
  %tk = aten.t(%wk) : !aten.tensor<64x64xbf16, strides = [1, 64], device = "cuda:0">
  %k0 = aten.addmm(%bk, %x, %tk) : !aten.tensor<128x64xbf16, device = "cuda:0">
  %k1 = aten.view(%k0, size = [2, 64, 4, 16]) : !aten.tensor<2x64x4x16xbf16, device = "cuda:0">
  %k2 = aten.permute(%k1, dims = [0, 2, 1, 3]) : !aten.tensor<2x4x64x16xbf16, strides = [4096, 16, 64, 1], device = "cuda:0">
  %tv = aten.t(%wv) : !aten.tensor<64x64xbf16, strides = [1, 64], device = "cuda:0">
  %v0 = aten.addmm(%bv, %x, %tv) : !aten.tensor<128x64xbf16, device = "cuda:0">
  %v1 = aten.view(%v0, size = [2, 64, 4, 16]) : !aten.tensor<2x64x4x16xbf16, device = "cuda:0">
  %v2 = aten.permute(%v1, dims = [0, 2, 1, 3]) : !aten.tensor<2x4x64x16xbf16, strides = [4096, 16, 64, 1], device = "cuda:0">
  %0, %1, %2, %3 = aten._scaled_dot_product_efficient_attention(%q2, %k2, %v2, compute_log_sumexp = false) : !aten.tensor<2x4x64x16xbf16, strides = [4096, 16, 64, 1], device = "cuda:0">, !aten.tensor<2x4x0xf32, device = "cuda:0">, !aten.tensor<i64>, !aten.tensor<i64>
  func.return %0 : !aten.tensor<2x4x64x16xbf16, strides = [4096, 16, 64, 1], device = "cuda:0">
}

// Gates are read by a nest; a product that another product reads, or that is returned, is not joined.
// CHECK-LABEL: func.func @gates(
// CHECK: %[[W:.*]] = aten.cat([%a, %b], dim = 1) {packing} : !aten.tensor<64x192xbf16
// CHECK: %[[Y:.*]] = aten.mm(%x, %[[W]]) : !aten.tensor<(s0)x192xbf16
// CHECK: aten.slice.Tensor(%[[Y]], dim = 1, start = 0, end = 64)
// CHECK: aten.slice.Tensor(%[[Y]], dim = 1, start = 64, end = 192)
// CHECK: aten.mm(%x, %c)
func.func @gates(%x: !aten.tensor<(s0)x64xbf16, device = "cuda:0">, %a: !aten.tensor<64x64xbf16, device = "cuda:0"> {frozen}, %b: !aten.tensor<64x128xbf16, device = "cuda:0"> {frozen}, %c: !aten.tensor<64x64xbf16, device = "cuda:0"> {frozen}) -> (!aten.tensor<(s0)x64xbf16, device = "cuda:0">, !aten.tensor<(s0)x64xbf16, device = "cuda:0">, !aten.tensor<(s0)x64xbf16, device = "cuda:0">) attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0, min = 2, hint = 64>]} {
  %g = aten.mm(%x, %a) : !aten.tensor<(s0)x64xbf16, device = "cuda:0">
  %s = aten.silu(%g) : !aten.tensor<(s0)x64xbf16, device = "cuda:0">
  %u = aten.mm(%x, %b) : !aten.tensor<(s0)x128xbf16, device = "cuda:0">
  %e = aten.exp(%u) : !aten.tensor<(s0)x128xbf16, device = "cuda:0">
  %l = aten.slice.Tensor(%e, dim = 1, start = 0, end = 64) : !aten.tensor<(s0)x64xbf16, strides = [128, 1], device = "cuda:0">
  %p = aten.mul.Tensor(%s, %l) : !aten.tensor<(s0)x64xbf16, device = "cuda:0">
  %r = aten.mm(%x, %c) : !aten.tensor<(s0)x64xbf16, device = "cuda:0">
  %0 = aten.mm(%r, %a) : !aten.tensor<(s0)x64xbf16, device = "cuda:0">
  func.return %p, %0, %s : !aten.tensor<(s0)x64xbf16, device = "cuda:0">, !aten.tensor<(s0)x64xbf16, device = "cuda:0">, !aten.tensor<(s0)x64xbf16, device = "cuda:0">
}
