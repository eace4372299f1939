// RUN: inductile-opt %s -p loop-spread-copies --target cuda:90 --verify-each | filecheck %s
// RUN: inductile-opt %s --target cuda:90 --verify-each --pipeline default --start-at loop-spread-copies --stop-after kernel-merge-launches | filecheck %s --check-prefix=KERNEL

// The lengths of three caches become one number: all but the first get a nest that copies it.
func.func @lengths(%n: !aten.tensor<i64, device = "cuda:0">, %a: !aten.tensor<i64, device = "cuda:0">, %b: !aten.tensor<i64, device = "cuda:0">, %c: !aten.tensor<i64, device = "cuda:0">) {
  %v = loop.generate () {
    %0 = loop.load %n[]
    %1 = arith.constant 1 : i64
    %2 = arith.addi %0, %1 : i64
    loop.yield %2
  } : !aten.tensor<i64, device = "cuda:0">
  %x = aten.copy_(%a, %v) : !aten.tensor<i64, device = "cuda:0">
  %y = aten.copy_(%b, %v) : !aten.tensor<i64, device = "cuda:0">
  %z = aten.copy_(%c, %v) : !aten.tensor<i64, device = "cuda:0">
  func.return
}
// CHECK-LABEL: @lengths
// CHECK: aten.copy_(%a, %v)
// CHECK-NEXT: %[[B:.*]] = loop.generate () {
// CHECK-NEXT: loop.load %v[]
// CHECK: aten.copy_(%b, %[[B]])
// CHECK-NEXT: %[[C:.*]] = loop.generate () {
// CHECK: aten.copy_(%c, %[[C]])
// KERNEL-LABEL: host.func @lengths
// KERNEL-NEXT: host.launch @{{.*}}(%n, %a, %b, %c)
// KERNEL-NEXT: host.return

// One copy alone, copies of a large tensor, and of a tensor in the host's memory.
func.func @kept(%n: !aten.tensor<i64, device = "cuda:0">, %a: !aten.tensor<i64, device = "cuda:0">, %l: !aten.tensor<4194304xf32, device = "cuda:0">, %m: !aten.tensor<4194304xf32, device = "cuda:0">, %k: !aten.tensor<4194304xf32, device = "cuda:0">, %h: !aten.tensor<i64>, %i: !aten.tensor<i64>, %j: !aten.tensor<i64>) {
  %x = aten.copy_(%a, %n) : !aten.tensor<i64, device = "cuda:0">
  %p = aten.copy_(%m, %l) : !aten.tensor<4194304xf32, device = "cuda:0">
  %q = aten.copy_(%k, %l) : !aten.tensor<4194304xf32, device = "cuda:0">
  %r = aten.copy_(%i, %h) : !aten.tensor<i64>
  %s = aten.copy_(%j, %h) : !aten.tensor<i64>
  func.return
}
// CHECK-LABEL: @kept
// CHECK-NOT: loop.generate
