// RUN: inductile-opt %s --split-input-file --verify-each=numerics -p "graph-outline-repeats{least=3 saved=4}" | filecheck %s
// RUN: inductile-opt %s --split-input-file -p "graph-outline-repeats{least=3 saved=4}" --remarks 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: inductile-opt %s --split-input-file -p graph-outline-repeats{enabled=false} | filecheck %s --check-prefix=OFF

// RUN: inductile-opt %s --split-input-file --verify-each=numerics --pipeline "default{least=3 saved=4}" --start-at graph-outline-repeats --stop-after host-inline | filecheck %s --check-prefix=LOWERED

// OFF-NOT: func.call

// A layer ends where its product begins. The view of a weight is made in the function.

func.func @layers(%x: !aten.tensor<(s0)x4xf32>, %w0: !aten.tensor<4x4xf32>, %w1: !aten.tensor<4x4xf32>, %w2: !aten.tensor<4x4xf32>) -> !aten.tensor<(s0)x4xf32> attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0>]} {
  %t0 = aten.t(%w0) : !aten.tensor<4x4xf32, strides = [1, 4]>
  %m0 = aten.mm(%x, %t0) : !aten.tensor<(s0)x4xf32>
  %e0 = aten.exp(%m0) : !aten.tensor<(s0)x4xf32>
  %t1 = aten.t(%w1) : !aten.tensor<4x4xf32, strides = [1, 4]>
  %m1 = aten.mm(%e0, %t1) : !aten.tensor<(s0)x4xf32>
  %e1 = aten.exp(%m1) : !aten.tensor<(s0)x4xf32>
  %t2 = aten.t(%w2) : !aten.tensor<4x4xf32, strides = [1, 4]>
  %m2 = aten.mm(%e1, %t2) : !aten.tensor<(s0)x4xf32>
  %e2 = aten.exp(%m2) : !aten.tensor<(s0)x4xf32>
  func.return %e2 : !aten.tensor<(s0)x4xf32>
}
// CHECK-LABEL: func.func @layers
// CHECK: %e0 = func.call @layers_repeat0(%w0, %x)
// CHECK-NEXT: %e1 = func.call @layers_repeat0(%w1, %e0)
// CHECK-NEXT: %e2 = func.call @layers_repeat0(%w2, %e1)
// CHECK-NEXT: func.return %e2
// CHECK: func.func private @layers_repeat0(%w0: !aten.tensor<4x4xf32>, %x: !aten.tensor<(s0)x4xf32>)
// CHECK-SAME: #sym.symbol<s0, arg = 1, dim = 0>
// CHECK-NEXT: aten.t(%w0)
// CHECK-NEXT: aten.mm
// CHECK-NEXT: aten.exp
// CHECK-NEXT: func.return
// LOWERED-LABEL: host.func @layers(
// LOWERED: %m0 = aten.mm
// LOWERED: host.launch @[[EXP:.*]](%m0, %e0)
// LOWERED: %m0_1 = aten.mm
// LOWERED: host.launch @[[EXP]](%m0_1, %e1)
// LOWERED: %m0_2 = aten.mm
// LOWERED: host.launch @[[EXP]](%m0_2, %e2)
// LOWERED-NOT: host.call
// REMARK: passed: {{.*}}equal layers became calls {{.*}}repeats=3

// -----

// No library call stands between the layers: all of it is one kernel.

func.func @pointwise(%x: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> {
  %0 = aten.exp(%x) : !aten.tensor<4xf32>
  %1 = aten.neg(%0) : !aten.tensor<4xf32>
  %2 = aten.exp(%1) : !aten.tensor<4xf32>
  %3 = aten.neg(%2) : !aten.tensor<4xf32>
  %4 = aten.exp(%3) : !aten.tensor<4xf32>
  %5 = aten.neg(%4) : !aten.tensor<4xf32>
  func.return %5 : !aten.tensor<4xf32>
}
// CHECK-LABEL: func.func @pointwise
// CHECK-NOT: func.call
// REMARK: missed: {{.*}}equal layers are compiled one by one: no cut lies beside a call of a library

// -----

// What becomes the new value of an input is made in place where its copy is.

func.func @updates(%x: !aten.tensor<4x4xf32>, %c0: !aten.tensor<4x4xf32>, %c1: !aten.tensor<4x4xf32>, %c2: !aten.tensor<4x4xf32>) -> !aten.tensor<4x4xf32> {
  %m0 = aten.mm(%x, %c0) : !aten.tensor<4x4xf32>
  %e0 = aten.exp(%m0) : !aten.tensor<4x4xf32>
  %m1 = aten.mm(%e0, %c1) : !aten.tensor<4x4xf32>
  %e1 = aten.exp(%m1) : !aten.tensor<4x4xf32>
  %m2 = aten.mm(%e1, %c2) : !aten.tensor<4x4xf32>
  %e2 = aten.exp(%m2) : !aten.tensor<4x4xf32>
  %new = aten.copy_(%c0, %e0) : !aten.tensor<4x4xf32>
  func.return %e2 : !aten.tensor<4x4xf32>
}
// CHECK-LABEL: func.func @updates
// CHECK-NOT: func.call
// REMARK: missed: {{.*}}it makes the new value of an input
