// RUN: not inductile-run %s --random 0 --backend reference --max-steps 1000000 2>&1 | filecheck %s
// RUN: not inductile-run %s --random 0 --backend cpp --max-steps 1000000 2>&1 | filecheck %s
// A loop of a file ends: each run of a body counts as many steps.

func.func @f(%x: !aten.tensor<4xf32>, %p: !aten.tensor<i1>) -> !aten.tensor<4xf32> {
  %0 = aten.call "higher_order::while_loop"(@c, @b, [%x], []) : !aten.tensor<4xf32>
  func.return %0 : !aten.tensor<4xf32>
}
func.func @c(%x: !aten.tensor<4xf32>) -> !aten.tensor<i1> {
  %0 = aten.full(size = [], fill_value = true, dtype = torch.bool) : !aten.tensor<i1>
  func.return %0 : !aten.tensor<i1>
}
func.func @b(%x: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> {
  %0 = aten.sin(%x) : !aten.tensor<4xf32>
  func.return %0 : !aten.tensor<4xf32>
}

// CHECK: error: the program runs its loops more than 1000000 times
