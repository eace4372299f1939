// RUN: inductile-opt %s --target cuda:90 -p 'graph-pad-products{always=true}' | filecheck %s
// RUN: inductile-opt %s --target cuda:90 -p 'graph-pad-products{always=true}' --remarks 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: inductile-opt %s --target cuda:90 --pipeline 'default{always=true}' --start-at graph-pad-products --stop-after loop-inline | filecheck %s --check-prefix=FUSED

// Columns of the result are unaligned, and the bias is a row more of the depth.
// CHECK-LABEL: @logits
// CHECK: %[[G:.*]] = aten.relu(%x)
// CHECK: %[[L:.*]] = aten.constant_pad_nd(%[[G]], pad = [0, 8], value = 1.0) : !aten.tensor<24x24xbf16
// CHECK: %[[R:.*]] = aten.cat([%{{.*}}, %{{.*}}, %{{.*}}], dim = 1) : !aten.tensor<50x24xbf16
// CHECK: %[[T:.*]] = aten.permute(%[[R]], dims = [1, 0])
// CHECK: %[[Y:.*]] = aten.mm(%[[L]], %[[T]]) {implementation = "scratch"} : !aten.tensor<24x50xbf16, device = "cuda:0">
// CHECK: return %[[Y]]
// REMARK: passed: aten.addmm: its rows begin at unaligned addresses: its first operand is padded, its second operand is padded, its rows are computed into scratch memory
func.func @logits(%b: !aten.tensor<50xbf16, device = "cuda:0">, %x: !aten.tensor<24x16xbf16, device = "cuda:0">, %w: !aten.tensor<16x50xbf16, strides = [1, 16], device = "cuda:0">) -> !aten.tensor<24x50xbf16, device = "cuda:0"> {
  %g = aten.relu(%x) : !aten.tensor<24x16xbf16, device = "cuda:0">
  %0 = aten.addmm(%b, %g, %w) : !aten.tensor<24x50xbf16, device = "cuda:0">
  func.return %0 : !aten.tensor<24x50xbf16, device = "cuda:0">
}

// Both gradients read one padded operand, which the nest that computes it writes so; rows are cut off by a view.
// CHECK-LABEL: @gradients
// CHECK: %[[E:.*]] = aten.exp(%l)
// CHECK: %[[L:.*]] = aten.constant_pad_nd(%[[E]], pad = [0, 5], value = 0.0) : !aten.tensor<16x56xbf16
// CHECK: %[[R:.*]] = aten.constant_pad_nd(%w, pad = [0, 0, 0, 5], value = 0.0) : !aten.tensor<56x24xbf16
// CHECK: %[[X:.*]] = aten.mm(%[[L]], %[[R]])
// CHECK: %[[T:.*]] = aten.permute(%[[L]], dims = [1, 0])
// CHECK: %[[P:.*]] = aten.mm(%[[T]], %x)
// CHECK: %[[W:.*]] = aten.slice.Tensor(%[[P]], start = 0, end = 51) : !aten.tensor<51x24xbf16, device = "cuda:0">
// CHECK: return %[[X]], %[[W]]
// FUSED-LABEL: @gradients
// FUSED: loop.generate (i0 in 16, i1 in 56)
// FUSED: math.exp
// FUSED: !aten.tensor<16x56xbf16
// FUSED-NOT: !aten.tensor<16x51xbf16
// FUSED: aten.mm
func.func @gradients(%l: !aten.tensor<16x51xbf16, device = "cuda:0">, %x: !aten.tensor<16x24xbf16, device = "cuda:0">, %w: !aten.tensor<51x24xbf16, device = "cuda:0">) -> (!aten.tensor<16x24xbf16, device = "cuda:0">, !aten.tensor<51x24xbf16, device = "cuda:0">) {
  %g = aten.exp(%l) : !aten.tensor<16x51xbf16, device = "cuda:0">
  %0 = aten.mm(%g, %w) : !aten.tensor<16x24xbf16, device = "cuda:0">
  %t = aten.t(%g) : !aten.tensor<51x16xbf16, strides = [1, 51], device = "cuda:0">
  %1 = aten.mm(%t, %x) : !aten.tensor<51x24xbf16, device = "cuda:0">
  func.return %0, %1 : !aten.tensor<16x24xbf16, device = "cuda:0">, !aten.tensor<51x24xbf16, device = "cuda:0">
}

// A batch of products is padded and cut; a nest that reads it needs no copy.
// CHECK-LABEL: @scores
// CHECK: %[[R:.*]] = aten.constant_pad_nd(%{{.*}}, pad = [0, 0, 0, 3], value = 0.0) : !aten.tensor<2x24x8xbf16
// CHECK: %[[T:.*]] = aten.permute(%[[R]], dims = [0, 2, 1])
// CHECK: %[[P:.*]] = aten.bmm(%q, %[[T]]) : !aten.tensor<2x16x24xbf16
// CHECK: aten.slice.Tensor(%[[P]], dim = 2, start = 0, end = 21) : !aten.tensor<2x16x21xbf16, strides = [384, 24, 1]
func.func @scores(%q: !aten.tensor<2x16x8xbf16, device = "cuda:0">, %k: !aten.tensor<2x8x21xbf16, strides = [168, 1, 8], device = "cuda:0">) -> !aten.tensor<2x16x21xbf16, device = "cuda:0"> {
  %0 = aten.bmm(%q, %k) : !aten.tensor<2x16x21xbf16, device = "cuda:0">
  %1 = aten.neg(%0) : !aten.tensor<2x16x21xbf16, device = "cuda:0">
  func.return %1 : !aten.tensor<2x16x21xbf16, device = "cuda:0">
}
