// RUN: inductile-opt %s -p graph-round-decisions | filecheck %s
// RUN: inductile-opt %s -p graph-round-decisions,lower-aten-to-loop | filecheck %s --check-prefix=LOOP
// RUN: inductile-opt %s -p graph-round-decisions --remarks 2>&1 | filecheck %s --check-prefix=REMARK

// The product is computed where it is compared and where the maximum is taken: both see what memory would hold.
func.func @compare(%x: !aten.tensor<4x8xbf16>, %y: !aten.tensor<4x8xbf16>) -> (!aten.tensor<4x8xi1>, !aten.tensor<4x8xbf16>) {
  %p = aten.mul.Tensor(%x, %y) : !aten.tensor<4x8xbf16>
  %v = aten.view(%p, size = [4, 8]) : !aten.tensor<4x8xbf16>
  %m = aten.amax(%v, dim = [-1], keepdim = true) : !aten.tensor<4x1xbf16>
  %e = aten.eq.Tensor(%p, %m) : !aten.tensor<4x8xi1>
  %s = aten.sin(%p) : !aten.tensor<4x8xbf16>
  func.return %e, %s : !aten.tensor<4x8xi1>, !aten.tensor<4x8xbf16>
}
// CHECK-LABEL: @compare
// CHECK: aten.mul.Tensor(%x, %y) {rounded}
// CHECK: aten.view({{.*}}) {rounded}
// CHECK: aten.amax({{.*}}) {rounded}
// CHECK: aten.eq.Tensor({{[^{]*}}:
// CHECK: aten.sin({{[^{]*}}:
// LOOP-LABEL: @compare
// LOOP: arith.mulf
// LOOP-NEXT: scalar.cast {{.*}} : f32 to bf16
// LOOP: loop.reduce
// LOOP: scalar.cast {{.*}} : f32 to bf16
// LOOP: math.sin
// LOOP-NEXT: scalar.narrow
// LOOP-NOT: rounded
// REMARK: remark: [graph-round-decisions] passed: aten.mul.Tensor: rounded wherever it is used, as a decision depends on it

// A product of matrices lies in memory: what is in front of it cannot differ. Steps and indices decide as well.
func.func @stops(%x: !aten.tensor<4x4xf16>) -> (!aten.tensor<4x4xf16>, !aten.tensor<4xi64>) {
  %a = aten.sin(%x) : !aten.tensor<4x4xf16>
  %p = aten.mm(%a, %a) : !aten.tensor<4x4xf16>
  %c = aten.cos(%p) : !aten.tensor<4x4xf16>
  %f = aten.floor(%c) : !aten.tensor<4x4xf16>
  %w = aten._to_copy(%p, dtype = torch.float32) : !aten.tensor<4x4xf32>
  %i = aten.argmax(%w, dim = 1) : !aten.tensor<4xi64>
  func.return %f, %i : !aten.tensor<4x4xf16>, !aten.tensor<4xi64>
}
// CHECK-LABEL: @stops
// CHECK-NEXT: aten.sin({{[^{]*}}:
// CHECK-NEXT: aten.mm({{[^{]*}}:
// CHECK-NEXT: aten.cos({{.*}}) {rounded}
// CHECK-NEXT: aten.floor({{[^{]*}}:
// CHECK-NEXT: aten._to_copy({{[^{]*}}:
// CHECK-NEXT: aten.argmax
