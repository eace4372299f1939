// RUN: inductile-opt %s --target cuda:90 --pipeline 'default{loop-products=true}' -t triton | filecheck %s

// Two numbers of 4 bits a byte: each byte is read once, for two products.
func.func @packed(%x: !aten.tensor<4x512xbf16, device = "cuda:0">, %w: !aten.tensor<2048x256xui8, device = "cuda:0">) -> !aten.tensor<4x2048xbf16, device = "cuda:0"> {
  %0 = aten.bitwise_and.Scalar(%w, other = 15) : !aten.tensor<2048x256xui8, device = "cuda:0">
  %1 = aten.__rshift__.Scalar(%w, other = 4) : !aten.tensor<2048x256xui8, device = "cuda:0">
  %2 = aten.stack([%0, %1], dim = -1) : !aten.tensor<2048x256x2xui8, device = "cuda:0">
  %3 = aten.view(%2, size = [2048, 512]) : !aten.tensor<2048x512xui8, device = "cuda:0">
  %4 = aten._to_copy(%3, dtype = torch.bfloat16) : !aten.tensor<2048x512xbf16, device = "cuda:0">
  %5 = aten.sub.Scalar(%4, other = 8) : !aten.tensor<2048x512xbf16, device = "cuda:0">
  %6 = aten.t(%5) : !aten.tensor<512x2048xbf16, strides = [1, 512], device = "cuda:0">
  %7 = aten.mm(%x, %6) : !aten.tensor<4x2048xbf16, device = "cuda:0">
  func.return %7 : !aten.tensor<4x2048xbf16, device = "cuda:0">
}
// CHECK: def sum_{{[0-9]}}(
// CHECK: low_digits
// CHECK: tl.dot(
// CHECK: high_digits
// CHECK: tl.dot(
