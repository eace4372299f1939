// RUN: inductile-opt %s --target cuda:90 -p graph-pad-products | filecheck %s
// RUN: inductile-opt %s --target cuda:90 -p graph-pad-products --remarks 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: inductile-opt %s --target cuda:90 -p 'graph-pad-products{allow-tf32=true}' | filecheck %s --check-prefix=TF32
// RUN: inductile-opt %s --target cpp -p graph-pad-products | filecheck %s --check-prefix=OFF
// RUN: inductile-opt %s --target cuda:90 -p 'graph-pad-products{pad-products=false}' | filecheck %s --check-prefix=OFF
// RUN: inductile-opt %s --target hip:gfx942 -p graph-pad-products | filecheck %s --check-prefix=OFF
// OFF-NOT: constant_pad_nd
// OFF-NOT: implementation

// A masked language model: nothing of 8192 x 30522 elements is made twice, the bias is a row more of the depth.
func.func @bert(%b: !aten.tensor<30522xbf16, device = "cuda:0">, %x: !aten.tensor<8192x768xbf16, device = "cuda:0">, %v: !aten.tensor<30522x768xbf16, device = "cuda:0">) -> !aten.tensor<8192x30522xbf16, device = "cuda:0"> {
  %1 = aten.t(%v) : !aten.tensor<768x30522xbf16, strides = [1, 768], device = "cuda:0">
  %g = aten.gelu(%x) : !aten.tensor<8192x768xbf16, device = "cuda:0">
  %0 = aten.addmm(%b, %g, %1) : !aten.tensor<8192x30522xbf16, device = "cuda:0">
  func.return %0 : !aten.tensor<8192x30522xbf16, device = "cuda:0">
}
// CHECK-LABEL: @bert
// CHECK: %[[G:.*]] = aten.gelu(%x)
// CHECK: %[[L:.*]] = aten.constant_pad_nd(%[[G]], pad = [0, 8], value = 1.0) : !aten.tensor<8192x776xbf16
// CHECK: %[[R:.*]] = aten.cat([%{{.*}}, %{{.*}}, %{{.*}}], dim = 1) : !aten.tensor<30522x776xbf16
// CHECK: %[[T:.*]] = aten.permute(%[[R]], dims = [1, 0])
// CHECK: %[[Y:.*]] = aten.mm(%[[L]], %[[T]]) {implementation = "turns"} : !aten.tensor<8192x30522xbf16, device = "cuda:0">
// CHECK: return %[[Y]]
// REMARK: passed: aten.addmm: its rows begin at unaligned addresses: its first operand is padded, its second operand is padded, its rows are computed in 4 turns; estimated at

func.func @gpt2(%x: !aten.tensor<4096x768xbf16, device = "cuda:0">, %v: !aten.tensor<50257x768xbf16, device = "cuda:0">) -> !aten.tensor<4096x50257xbf16, device = "cuda:0"> {
  %1 = aten.t(%v) : !aten.tensor<768x50257xbf16, strides = [1, 768], device = "cuda:0">
  %0 = aten.mm(%x, %1) : !aten.tensor<4096x50257xbf16, device = "cuda:0">
  func.return %0 : !aten.tensor<4096x50257xbf16, device = "cuda:0">
}
// CHECK-LABEL: @gpt2
// CHECK: aten.mm(%x, %{{.*}}) {implementation = "turns"} : !aten.tensor<4096x50257xbf16
// REMARK: passed: aten.mm: its rows begin at unaligned addresses: its rows are computed in 8 turns; estimated at

// Both gradients read one padded operand, which the nest that makes it writes so; rows are cut off by a view.
func.func @backward(%l: !aten.tensor<4096x50257xbf16, device = "cuda:0">, %s: !aten.tensor<4096x1xbf16, device = "cuda:0">, %x: !aten.tensor<4096x768xbf16, device = "cuda:0">, %v: !aten.tensor<50257x768xbf16, device = "cuda:0">) -> (!aten.tensor<4096x768xbf16, device = "cuda:0">, !aten.tensor<50257x768xbf16, device = "cuda:0">) {
  %d = aten.sub.Tensor(%l, %s) : !aten.tensor<4096x50257xbf16, device = "cuda:0">
  %g = aten.exp(%d) : !aten.tensor<4096x50257xbf16, device = "cuda:0">
  %0 = aten.mm(%g, %v) : !aten.tensor<4096x768xbf16, device = "cuda:0">
  %gt = aten.t(%g) : !aten.tensor<50257x4096xbf16, strides = [1, 50257], device = "cuda:0">
  %1 = aten.mm(%gt, %x) : !aten.tensor<50257x768xbf16, device = "cuda:0">
  func.return %0, %1 : !aten.tensor<4096x768xbf16, device = "cuda:0">, !aten.tensor<50257x768xbf16, device = "cuda:0">
}
// CHECK-LABEL: @backward
// CHECK: %[[E:.*]] = aten.exp
// CHECK: %[[L:.*]] = aten.constant_pad_nd(%[[E]], pad = [0, 7], value = 0.0) : !aten.tensor<4096x50264xbf16
// CHECK: %[[R:.*]] = aten.constant_pad_nd(%v, pad = [0, 0, 0, 7], value = 0.0) : !aten.tensor<50264x768xbf16
// CHECK: %[[X:.*]] = aten.mm(%[[L]], %[[R]])
// CHECK: %[[T:.*]] = aten.permute(%[[L]], dims = [1, 0])
// CHECK: %[[P:.*]] = aten.mm(%[[T]], %x)
// CHECK: %[[W:.*]] = aten.slice.Tensor(%[[P]], start = 0, end = 50257) : !aten.tensor<50257x768xbf16, device = "cuda:0">
// CHECK: return %[[X]], %[[W]]

// Too little work: the copies would take longer. What is added is no bias. One row. Rows that are a symbol are aligned.
func.func @kept(%q: !aten.tensor<768x197x64xbf16, device = "cuda:0">, %k: !aten.tensor<768x64x197xbf16, strides = [12608, 1, 64], device = "cuda:0">, %x: !aten.tensor<4096x768xbf16, device = "cuda:0">, %v: !aten.tensor<768x50257xbf16, strides = [1, 768], device = "cuda:0">, %a: !aten.tensor<4096x50257xbf16, device = "cuda:0">, %r: !aten.tensor<1x768xbf16, device = "cuda:0">) -> (!aten.tensor<768x197x197xbf16, device = "cuda:0">, !aten.tensor<4096x50257xbf16, device = "cuda:0">, !aten.tensor<1x50257xbf16, device = "cuda:0">) {
  %0 = aten.bmm(%q, %k) : !aten.tensor<768x197x197xbf16, device = "cuda:0">
  %1 = aten.addmm(%a, %x, %v) : !aten.tensor<4096x50257xbf16, device = "cuda:0">
  %2 = aten.mm(%r, %v) : !aten.tensor<1x50257xbf16, device = "cuda:0">
  func.return %0, %1, %2 : !aten.tensor<768x197x197xbf16, device = "cuda:0">, !aten.tensor<4096x50257xbf16, device = "cuda:0">, !aten.tensor<1x50257xbf16, device = "cuda:0">
}
// CHECK-LABEL: @kept
// CHECK-NEXT: aten.bmm(%q, %k)
// CHECK-NEXT: aten.addmm(%a, %x, %v) : !aten
// CHECK-NEXT: aten.mm(%r, %v) : !aten
// REMARK: missed: aten.bmm: its rows begin at unaligned addresses, but aligned ones are estimated at
// REMARK: missed: aten.addmm: its rows begin at unaligned addresses, but what is added is no bias of its columns
// REMARK: missed: aten.mm: its rows begin at unaligned addresses, but it is a product with a vector

// Any number of rows, as with dynamic sizes.
func.func @dynamic(%x: !aten.tensor<(s0)x768xbf16, device = "cuda:0">, %v: !aten.tensor<768x50257xbf16, strides = [1, 768], device = "cuda:0">) -> !aten.tensor<(s0)x50257xbf16, device = "cuda:0"> attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0, min = 2, hint = 2048>]} {
  %0 = aten.mm(%x, %v) : !aten.tensor<(s0)x50257xbf16, device = "cuda:0">
  func.return %0 : !aten.tensor<(s0)x50257xbf16, device = "cuda:0">
}
// CHECK-LABEL: @dynamic
// CHECK: aten.mm(%x, %v) {implementation = "turns"}

// Few rows: each turn would read all of the weight.
func.func @few(%x: !aten.tensor<128x768xbf16, device = "cuda:0">, %v: !aten.tensor<768x50257xbf16, strides = [1, 768], device = "cuda:0">) -> !aten.tensor<128x50257xbf16, device = "cuda:0"> {
  %0 = aten.mm(%x, %v) : !aten.tensor<128x50257xbf16, device = "cuda:0">
  func.return %0 : !aten.tensor<128x50257xbf16, device = "cuda:0">
}
// CHECK-LABEL: @few
// CHECK: aten.mm(%x, %v) {implementation = "scratch"}
// REMARK: passed: aten.mm: its rows begin at unaligned addresses: its rows are computed into scratch memory; estimated at

// In TF32 rows of float32 pay as well, where they begin at multiples of 16 bytes; without it they take as long as others.
func.func @float32(%x: !aten.tensor<4096x768xf32, device = "cuda:0">, %v: !aten.tensor<50257x768xf32, device = "cuda:0">, %a: !aten.tensor<4096x1001xf32, device = "cuda:0">, %b: !aten.tensor<1001x4096xf32, device = "cuda:0">) -> (!aten.tensor<4096x50257xf32, device = "cuda:0">, !aten.tensor<4096x4096xf32, device = "cuda:0">) {
  %1 = aten.t(%v) : !aten.tensor<768x50257xf32, strides = [1, 768], device = "cuda:0">
  %0 = aten.mm(%x, %1) : !aten.tensor<4096x50257xf32, device = "cuda:0">
  %2 = aten.mm(%a, %b) : !aten.tensor<4096x4096xf32, device = "cuda:0">
  func.return %0, %2 : !aten.tensor<4096x50257xf32, device = "cuda:0">, !aten.tensor<4096x4096xf32, device = "cuda:0">
}
// CHECK-LABEL: @float32
// CHECK-NOT: constant_pad_nd
// CHECK-NOT: implementation
// TF32-LABEL: @float32
// TF32: aten.mm(%x, %{{.*}}) {implementation = "turns"} : !aten.tensor<4096x50257xf32
// TF32: aten.constant_pad_nd(%a, pad = [0, 3], value = 0.0) : !aten.tensor<4096x1004xf32
