// RUN: inductile-opt %s --verify-each -p lower-loop-to-kernel | filecheck %s

// Sums over whole images and parts of their rows, beside what each row is divided by: the loop over the rows of a part
// carries the sums, and the last part has fewer rows.
func.func @carried(%x: !aten.tensor<2x(s0)x64xf32>) -> (!aten.tensor<2x(s0)x64xf32>, !aten.tensor<2x4x64xf32>) attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 1, min = 2, hint = 30>]} {
  %d = loop.empty : !aten.tensor<2x4x64xf32>
  %y, %p = loop.fusion (a0 in 2, a1 in s0 | a2 in 64) {
    %m = loop.generate (i0 in 2, i1 in s0) on (a0, a1) {
      %r = loop.reduce max (r0 in 64) on (a2) {
        %v = loop.load %x[i0, i1, r0]
        loop.yield %v
      }
      loop.yield %r
    } : !aten.tensor<2x(s0)xf32>
    %e = loop.generate (i0 in 2, i1 in s0, i2 in 64) on (a0, a1, a2) {
      %v = loop.load %x[i0, i1, i2]
      %t = loop.load %m[i0, i1]
      %q = arith.divf %v, %t : f32
      loop.yield %q
    } : !aten.tensor<2x(s0)x64xf32>
    %s = loop.scatter add (r0 in 2, r1 in s0, i0 in 64) into %d[r0, r1 floordiv ((s0 + 3) floordiv 4), i0] from_zero on (a0, a1, a2) {
      %v = loop.load %e[r0, r1, i0]
      loop.yield %v
    } : !aten.tensor<2x4x64xf32>
    loop.yield %e, %s
  } : !aten.tensor<2x(s0)x64xf32>, !aten.tensor<2x4x64xf32>
  func.return %y, %p : !aten.tensor<2x(s0)x64xf32>, !aten.tensor<2x4x64xf32>
}
// CHECK-LABEL: kernel.func @max_sum_0(%x: {{.*}}, %p: {{.*}}, %y: {{.*}}) symbols (s0) {
// CHECK-NEXT:    kernel.for i0 in 0 to 2 {
// CHECK-NEXT:      kernel.for i3 in 0 to 4 {
// CHECK:             %s = kernel.local : !kernel.buffer<f32, 64, local>
// CHECK-NEXT:        kernel.for i2 in 0 to 64 {
// CHECK:               kernel.store %{{.*}}, %s[i2]
// CHECK:             kernel.for i1 in 0 to min({{.*}}) {
// CHECK:               kernel.reduce max i2 in 0 to 64 {
// CHECK:               %[[OLD:.*]] = kernel.load %s[i2]
// CHECK-NEXT:          %[[NEW:.*]] = arith.addf %[[OLD]], %{{.*}} : f32
// CHECK-NEXT:          kernel.store %[[NEW]], %s[i2]
// CHECK:             kernel.for i2 in 0 to 64 {
// CHECK-NEXT:          %[[ALL:.*]] = kernel.load %s[i2]
// CHECK-NEXT:          kernel.store %[[ALL]], %p[256*i0 + 64*i3 + i2]

// Where columns are parallel too, the loops over what is summed are reductions: of images as a whole, and parts of rows.
func.func @reduced(%x: !aten.tensor<3x32x64xf32>) -> (!aten.tensor<3x32x64xf32>, !aten.tensor<4x64xf32>) {
  %d = loop.empty : !aten.tensor<4x64xf32>
  %y, %p = loop.fusion (a0 in 3, a1 in 32, a2 in 64) {
    %e = loop.generate (i0 in 3, i1 in 32, i2 in 64) on (a0, a1, a2) {
      %v = loop.load %x[i0, i1, i2]
      %q = math.exp %v : f32
      loop.yield %q
    } : !aten.tensor<3x32x64xf32>
    %s = loop.scatter add (r0 in 3, r1 in 32, i0 in 64) into %d[r1 floordiv 8, i0] from_zero on (a0, a1, a2) {
      %v = loop.load %e[r0, r1, i0]
      loop.yield %v
    } : !aten.tensor<4x64xf32>
    loop.yield %e, %s
  } : !aten.tensor<3x32x64xf32>, !aten.tensor<4x64xf32>
  func.return %y, %p : !aten.tensor<3x32x64xf32>, !aten.tensor<4x64xf32>
}
// CHECK-LABEL: kernel.func @exp_sum_0
// CHECK-NEXT:    kernel.for i3 in 0 to 4 {
// CHECK-NEXT:      kernel.for i2 in 0 to 64 {
// CHECK-NEXT:        %[[S:.*]] = kernel.reduce sum i0 in 0 to 3 {
// CHECK-NEXT:          %[[T:.*]] = kernel.reduce sum i1 in 0 to 8 {
// CHECK-NEXT:            %v = kernel.load %x[2048*i0 + 512*i3 + 64*i1 + i2]
// CHECK-NEXT:            %q = math.exp %v : f32
// CHECK-NEXT:            kernel.store %q, %y[2048*i0 + 512*i3 + 64*i1 + i2]
// CHECK-NEXT:            kernel.yield %q
// CHECK:               kernel.yield %[[T]]
// CHECK:             kernel.store %[[S]], %p[64*i3 + i2]
