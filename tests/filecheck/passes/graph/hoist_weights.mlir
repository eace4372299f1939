// RUN: inductile-opt %s --split-input-file -p 'graph-hoist-weights{small=0}' | filecheck %s
// RUN: inductile-opt %s --split-input-file -p 'graph-hoist-weights{small=0}' --remarks 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: inductile-opt %s --split-input-file -p 'graph-hoist-weights{small=0},graph-hoist-weights{small=0}' --verify-each=numerics | filecheck %s

// What frozen weights alone decide is a function of its own; a view of it is made where it is read.
// CHECK-LABEL: func.func @normalised(
// CHECK-SAME: %w: !aten.tensor<64x48xf32> {frozen}
// CHECK: %[[W:.*]] = func.call @normalised_weights(%w) {kept}
// CHECK-NEXT: %[[T:.*]] = aten.t(%[[W]])
// CHECK-NEXT: aten.mm(%x, %[[T]])
// CHECK: func.func private @normalised_weights(
// CHECK-SAME: attributes {kept
// CHECK: %[[S:.*]] = aten.exp
// CHECK: aten.div.Tensor
// REMARK: passed: aten.div.Tensor: it is computed once: 12.0 KiB kept of 12.0 KiB of weights
func.func @normalised(%x: !aten.tensor<8x48xf32>, %w: !aten.tensor<64x48xf32> {frozen}) -> !aten.tensor<8x64xf32> {
  %e = aten.exp(%w) : !aten.tensor<64x48xf32>
  %n = aten.sum.dim_IntList(%e, dim = [1], keepdim = true) : !aten.tensor<64x1xf32>
  %s = aten.div.Tensor(%w, %n) : !aten.tensor<64x48xf32>
  %t = aten.t(%s) : !aten.tensor<48x64xf32, strides = [1, 48]>
  %0 = aten.mm(%x, %t) : !aten.tensor<8x64xf32>
  func.return %0 : !aten.tensor<8x64xf32>
}

// -----

// A dequantised weight takes more memory than what it is made of: it is computed in each call.
// CHECK-LABEL: func.func @dequantised(
// CHECK-NOT: func.call
// CHECK: aten._to_copy
// CHECK-NOT: private
// REMARK: missed: aten.mul.Tensor: it is computed in each call: 6.0 KiB would be kept of 3.1 KiB of weights
func.func @dequantised(%x: !aten.tensor<8x64xbf16>, %w: !aten.tensor<64x48xi8> {frozen}, %scale: !aten.tensor<48xbf16> {frozen}) -> !aten.tensor<8x48xbf16> {
  %c = aten._to_copy(%w, dtype = torch.bfloat16) : !aten.tensor<64x48xbf16>
  %s = aten.mul.Tensor(%c, %scale) : !aten.tensor<64x48xbf16>
  %0 = aten.mm(%x, %s) : !aten.tensor<8x48xbf16>
  func.return %0 : !aten.tensor<8x48xbf16>
}

// -----

// Another weight that is read twice in other forms: together they would double it, so the smaller one stays.
// CHECK-LABEL: func.func @twice(
// CHECK: %[[K:.*]] = func.call @twice_weights(%w) {kept} : (!aten.tensor<64x48xf32>) -> !aten.tensor<64x48xf32>
// CHECK-NEXT: aten.mm(%x, %[[K]])
// CHECK-NOT: func.call
// CHECK: aten.sin
// CHECK: func.func private @twice_weights
func.func @twice(%x: !aten.tensor<8x64xf32>, %y: !aten.tensor<8x32xf32>, %w: !aten.tensor<64x48xf32> {frozen}) -> (!aten.tensor<8x48xf32>, !aten.tensor<8x48xf32>) {
  %e = aten.exp(%w) : !aten.tensor<64x48xf32>
  %0 = aten.mm(%x, %e) : !aten.tensor<8x48xf32>
  %h = aten.slice.Tensor(%w, dim = 0, start = 0, end = 32) : !aten.tensor<32x48xf32>
  %s = aten.sin(%h) : !aten.tensor<32x48xf32>
  %1 = aten.mm(%y, %s) : !aten.tensor<8x48xf32>
  func.return %0, %1 : !aten.tensor<8x48xf32>, !aten.tensor<8x48xf32>
}

// -----

// A result of the function is never in memory that is kept, nor a view of it; what the function writes is not frozen.
// CHECK-LABEL: func.func @returned(
// CHECK-NOT: func.call
// CHECK: func.return
func.func @returned(%w: !aten.tensor<64x64xf32> {frozen}, %b: !aten.tensor<64x64xf32> {frozen}, %x: !aten.tensor<64x64xf32>) -> (!aten.tensor<64x64xf32>, !aten.tensor<64x64xf32>) {
  %e = aten.exp(%w) : !aten.tensor<64x64xf32>
  %t = aten.t(%e) : !aten.tensor<64x64xf32, strides = [1, 64]>
  %c = aten.clone(%t, memory_format = torch.contiguous_format) : !aten.tensor<64x64xf32>
  %0 = aten.mm(%e, %x) : !aten.tensor<64x64xf32>
  %s = aten.sin(%b) : !aten.tensor<64x64xf32>
  %1 = aten.mm(%s, %x) : !aten.tensor<64x64xf32>
  %2 = aten.copy_(%b, %1) : !aten.tensor<64x64xf32>
  func.return %e, %0 : !aten.tensor<64x64xf32>, !aten.tensor<64x64xf32>
}

// -----

// What fuses with what reads it saves no traffic when it is kept; half as many bytes do.
// CHECK-LABEL: func.func @fused(
// CHECK: %[[K:.*]] = func.call @fused_weights(%v) {kept}
// CHECK: aten.add.Tensor(%w
// CHECK: aten.mul.Tensor(%{{.*}}, %[[K]])
// CHECK: func.func private @fused_weights(
// CHECK: aten._to_copy
func.func @fused(%x: !aten.tensor<64x64xbf16>, %w: !aten.tensor<64x64xbf16> {frozen}, %v: !aten.tensor<64x64xf32> {frozen}) -> !aten.tensor<64x64xbf16> {
  %one = aten.full(size = [], fill_value = 1.0, dtype = torch.bfloat16, device = "cpu") : !aten.tensor<bf16>
  %a = aten.add.Tensor(%w, %one) : !aten.tensor<64x64xbf16>
  %c = aten._to_copy(%v, dtype = torch.bfloat16) : !aten.tensor<64x64xbf16>
  %0 = aten.mul.Tensor(%x, %a) : !aten.tensor<64x64xbf16>
  %1 = aten.mul.Tensor(%0, %c) : !aten.tensor<64x64xbf16>
  func.return %1 : !aten.tensor<64x64xbf16>
}
