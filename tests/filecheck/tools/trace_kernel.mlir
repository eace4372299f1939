// RUN: inductile-opt %s --pipeline default --target cuda:90 --trace-kernel softmax | filecheck %s
// RUN: not inductile-opt %s --pipeline default --trace-kernel matmul 2>&1 | filecheck %s --check-prefix=NONE

// One kernel of two, behind each pass that changed it, with the file of the pass; then its code, with those that wrote it.
func.func @forward(%x: !aten.tensor<64x4096xf32>) -> (!aten.tensor<64x4096xf32>, !aten.tensor<64x4096xf32>) {
  %y = aten._softmax(%x, dim = -1, half_to_float = false) : !aten.tensor<64x4096xf32>
  %z = aten.cumsum(%y, dim = 0) : !aten.tensor<64x4096xf32>
  func.return %y, %z : !aten.tensor<64x4096xf32>, !aten.tensor<64x4096xf32>
}
// CHECK-NOT: graph-canonicalize
// CHECK: IR Dump After lower-loop-to-kernel (lowering/loop_to_kernel/convert.py)
// CHECK-NEXT: kernel.func @softmax_0
// CHECK-NOT: cumsum
// CHECK: IR Dump After kernel-tile (passes/kernel/tile.py)
// CHECK-NEXT: kernel.func @softmax_0{{.*}} target "cuda:90" per_thread 16 {
// CHECK-NOT: kernel-bound-steps
// CHECK: IR Dump As triton
// CHECK: backends/triton/kernel_emitter.py
// CHECK: backends/triton/reductions.py
// CHECK: def softmax_0(x, y
// CHECK-NOT: cumsum

// NONE: error: no kernel has a name with 'matmul'; the kernels are softmax_0, cumsum_0
