// RUN: inductile-opt %s --target cpp -p graph-panel-products | filecheck %s
// RUN: inductile-opt %s --target cpp -p graph-panel-products --remarks 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: inductile-opt %s --target cpp -p 'graph-panel-products{panel=0}' | filecheck %s --check-prefix=OFF
// OFF-NOT: map_impl

// Any number of rows; two weights of one shape share a body. A bias is a part of each panel.
func.func @shared(%m: index, %x: !aten.tensor<(2*s0)x2048xf32>, %w: !aten.tensor<2048x2048xi8>, %v: !aten.tensor<2048x2048xi8>, %b: !aten.tensor<2048xf32>) -> (!aten.tensor<(2*s0)x2048xf32>, !aten.tensor<(2*s0)x2048xf32>, !aten.tensor<(2*s0)x2048xf32>) attributes {symbols = [#sym.symbol<s0, arg = 0, min = 2>]} {
  %0 = aten.t(%w) : !aten.tensor<2048x2048xi8, strides = [1, 2048]>
  %1 = aten._to_copy(%0, dtype = torch.float32) : !aten.tensor<2048x2048xf32, strides = [1, 2048]>
  %2 = aten.mm(%x, %1) : !aten.tensor<(2*s0)x2048xf32>
  %3 = aten.t(%v) : !aten.tensor<2048x2048xi8, strides = [1, 2048]>
  %4 = aten._to_copy(%3, dtype = torch.float32) : !aten.tensor<2048x2048xf32, strides = [1, 2048]>
  %5 = aten.mm(%x, %4) : !aten.tensor<(2*s0)x2048xf32>
  %6 = aten._to_copy(%3, dtype = torch.float32) : !aten.tensor<2048x2048xf32, strides = [1, 2048]>
  %7 = aten.addmm(%b, %x, %6) : !aten.tensor<(2*s0)x2048xf32>
  func.return %2, %5, %7 : !aten.tensor<(2*s0)x2048xf32>, !aten.tensor<(2*s0)x2048xf32>, !aten.tensor<(2*s0)x2048xf32>
}
// CHECK-LABEL: func.func @shared
// CHECK: [[W:%.*]] = aten.view(%w, size = [8, 256, 2048])
// CHECK-NEXT: [[Y:%.*]] = aten.call pure "higher_order::map_impl"(@panel_0, {{.}}[[W]]], [%x]) : !aten.tensor<8x(2*s0)x256xf32, strides = [256, 2048, 1]>
// CHECK-NEXT: [[P:%.*]] = aten.permute([[Y]], dims = [1, 0, 2])
// CHECK-NEXT: aten.view([[P]], size = [2*s0, 2048])
// CHECK: aten.call pure "higher_order::map_impl"(@panel_0
// CHECK: [[B:%.*]] = aten.view(%b, size = [8, 256])
// CHECK: aten.call pure "higher_order::map_impl"(@panel_1, {{.*}}, [[B]]], [%x])
// REMARK: passed: aten.mm: panels of 256 columns: 16.0 MiB are not in memory at once

// Numbers of 4 bits with scales of groups; columns that no panels divide; and what declines: a small matrix, and columns
// that lie side by side.
func.func @groups(%x: !aten.tensor<64x2048xf32>, %w: !aten.tensor<2048x1024xui8>, %s: !aten.tensor<2048x64xf32>, %u: !aten.tensor<2053x2048xi8>, %t: !aten.tensor<256x2048xi8>, %r: !aten.tensor<2048x2048xi8>) -> (!aten.tensor<64x2048xf32>, !aten.tensor<64x2053xf32>, !aten.tensor<64x256xf32>, !aten.tensor<64x2048xf32>) {
  %0 = aten.bitwise_and.Scalar(%w, other = 15) : !aten.tensor<2048x1024xui8>
  %1 = aten.__rshift__.Scalar(%w, other = 4) : !aten.tensor<2048x1024xui8>
  %2 = aten.stack([%0, %1], dim = -1) : !aten.tensor<2048x1024x2xui8>
  %3 = aten.view(%2, size = [2048, 64, 32]) : !aten.tensor<2048x64x32xui8>
  %4 = aten._to_copy(%3, dtype = torch.float32) : !aten.tensor<2048x64x32xf32>
  %5 = aten.unsqueeze(%s, dim = -1) : !aten.tensor<2048x64x1xf32>
  %6 = aten.mul.Tensor(%4, %5) : !aten.tensor<2048x64x32xf32>
  %7 = aten.view(%6, size = [2048, 2048]) : !aten.tensor<2048x2048xf32>
  %8 = aten.t(%7) : !aten.tensor<2048x2048xf32, strides = [1, 2048]>
  %9 = aten.mm(%x, %8) : !aten.tensor<64x2048xf32>
  %10 = aten.t(%u) : !aten.tensor<2048x2053xi8, strides = [1, 2048]>
  %11 = aten._to_copy(%10, dtype = torch.float32) : !aten.tensor<2048x2053xf32, strides = [1, 2048]>
  %12 = aten.mm(%x, %11) : !aten.tensor<64x2053xf32>
  %13 = aten.t(%t) : !aten.tensor<2048x256xi8, strides = [1, 2048]>
  %14 = aten._to_copy(%13, dtype = torch.float32) : !aten.tensor<2048x256xf32, strides = [1, 2048]>
  %15 = aten.mm(%x, %14) : !aten.tensor<64x256xf32>
  %16 = aten._to_copy(%r, dtype = torch.float32) : !aten.tensor<2048x2048xf32>
  %17 = aten.mm(%x, %16) : !aten.tensor<64x2048xf32>
  func.return %9, %12, %15, %17 : !aten.tensor<64x2048xf32>, !aten.tensor<64x2053xf32>, !aten.tensor<64x256xf32>, !aten.tensor<64x2048xf32>
}
// CHECK-LABEL: func.func @groups
// CHECK: [[S:%.*]] = aten.view(%s, size = [8, 256, 64])
// CHECK: aten.call pure "higher_order::map_impl"(@panel_2, {{.*}}, [[S]]], [%x])
// CHECK: [[U:%.*]] = aten.slice.Tensor(%u, start = 0, end = 2048)
// CHECK-NEXT: aten.view([[U]], size = [8, 256, 2048])
// CHECK: [[M:%.*]] = aten.view({{.*}}, size = [64, 2048])
// CHECK: aten.slice.Tensor(%u, start = 2048, end = 2053)
// CHECK: [[R:%.*]] = aten.mm({{.*}}) : !aten.tensor<64x5xf32>
// CHECK: aten.cat({{.}}[[M]], [[R]]], dim = 1) : !aten.tensor<64x2053xf32>
// CHECK-NOT: map_impl
// REMARK: missed: aten.mm: its matrix is made as a whole, 16.0 MiB: its columns do not lie one behind the other

// CHECK-LABEL: func.func private @panel_0(%{{.*}}: !aten.tensor<256x2048xi8>, %{{.*}}: !aten.tensor<(n)x2048xf32>) -> !aten.tensor<(n)x256xf32> attributes {symbols = [#sym.symbol<n, arg = 1, dim = 0, min = 4>]}
// CHECK: aten._to_copy({{.*}}) : !aten.tensor<2048x256xf32, strides = [1, 2048]>
// CHECK: aten.mm(
// CHECK-LABEL: func.func private @panel_1
// CHECK: aten.addmm(
// CHECK-LABEL: func.func private @panel_2
// CHECK: aten.stack({{.*}}) : !aten.tensor<256x1024x2xui8>
// CHECK: aten.view({{.*}}, size = [256, 64, 32])
