// RUN: inductile-opt %s -p graph-merge-seeds | filecheck %s

func.func @seeds(%x: !aten.tensor<8xf32>) -> (!aten.tensor<8xf32>, !aten.tensor<8xf32>, !aten.tensor<1xi64>) {
  %0 = aten.randint.low(low = 0, high = 9223372036854775807, size = [1], dtype = torch.int64, device = "cpu") : !aten.tensor<1xi64>
  %1 = aten.call pure "inductile::random"(%0, [8], dtype = torch.float32, normal = false) : !aten.tensor<8xf32>
  %2 = aten.randint.low(low = 0, high = 10, size = [1], dtype = torch.int64, device = "cpu") : !aten.tensor<1xi64>
  %3 = aten.randint.low(low = 0, high = 9223372036854775807, size = [1], dtype = torch.int64, device = "cpu") : !aten.tensor<1xi64>
  %4 = aten.call pure "inductile::random"(%3, [8], dtype = torch.float32, normal = false) : !aten.tensor<8xf32>
  func.return %1, %4, %2 : !aten.tensor<8xf32>, !aten.tensor<8xf32>, !aten.tensor<1xi64>
}
// CHECK-LABEL: @seeds
// CHECK: %[[ALL:.*]] = aten.randint.low({{.*}}size = [2]{{.*}}) : !aten.tensor<2xi64>
// CHECK: %[[A:.*]] = aten.slice.Tensor(%[[ALL]], start = 0, end = 1)
// CHECK: "inductile::random"(%[[A]],
// CHECK: aten.randint.low({{.*}}high = 10
// CHECK: %[[B:.*]] = aten.slice.Tensor(%[[ALL]], start = 1, end = 2)
// CHECK: "inductile::random"(%[[B]],
