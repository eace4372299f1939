// RUN: inductile-opt %s --target cuda:90 -p 'graph-pad-products,graph-hoist-weights' | filecheck %s
// RUN: inductile-opt %s --target cuda:90 -p 'graph-pad-products,graph-hoist-weights' --remarks 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: inductile-opt %s --target cuda:90 --pipeline default | filecheck %s --check-prefix=HOST

// The vocabulary of a masked language model: its weight, which the embedding reads too, its bias and zeros lie side by
// side once. Without `frozen` they are put together in each call.
// CHECK-LABEL: func.func @logits(
// CHECK: %[[R:.*]] = func.call @logits_weights(%w, %b) {kept}
// CHECK: aten.embedding(%w, %ids)
// CHECK-NOT: aten.cat
// CHECK: %[[T:.*]] = aten.permute(%[[R]], dims = [1, 0])
// CHECK: aten.mm(%{{.*}}, %[[T]]) {implementation = "turns"}
// CHECK: func.func private @logits_weights(
// CHECK: aten.cat({{.*}}) {packing} : !aten.tensor<30522x776xbf16, device = "cuda:0">
// CHECK-NEXT: func.return
// REMARK: passed: aten.cat: it is computed once: 45.2 MiB kept of 44.8 MiB of weights bytes=47370144
// HOST-LABEL: host.func @logits(
// HOST: host.call kept @logits_weights(%w, %b)
// HOST: host.func @logits_weights(
// HOST-SAME: kept {
func.func @logits(%ids: !aten.tensor<8192xi64, device = "cuda:0">, %w: !aten.tensor<30522x768xbf16, device = "cuda:0"> {frozen}, %b: !aten.tensor<30522xbf16, device = "cuda:0"> {frozen}) -> !aten.tensor<8192x30522xbf16, device = "cuda:0"> {
  %e = aten.embedding(%w, %ids) : !aten.tensor<8192x768xbf16, device = "cuda:0">
  %t = aten.t(%w) : !aten.tensor<768x30522xbf16, strides = [1, 768], device = "cuda:0">
  %0 = aten.addmm(%b, %e, %t) : !aten.tensor<8192x30522xbf16, device = "cuda:0">
  func.return %0 : !aten.tensor<8192x30522xbf16, device = "cuda:0">
}
