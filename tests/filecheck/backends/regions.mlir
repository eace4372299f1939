// RUN: inductile-opt %s | filecheck %s
// RUN: inductile-opt %s --pipeline default --target cpp | filecheck %s --check-prefix=HOST
// RUN: inductile-run %s --random 0 --backend reference | filecheck %s --check-prefix=VALUES
// RUN: inductile-run %s --random 0 --backend cpp | filecheck %s --check-prefix=VALUES
// RUN: inductile-run %s --random 0 --backend cpp --unchecked | filecheck %s --check-prefix=VALUES
// Bodies of higher-order operators are functions of the module. They go through all passes, and every backend runs them.

func.func @f(%x: !aten.tensor<4x3xf32>, %p: !aten.tensor<f32>) -> (!aten.tensor<4x3xf32>, !aten.tensor<3xf32>, !aten.tensor<4x3xf32>, !aten.tensor<3xf32>, !aten.tensor<i64>) {
  %q = aten.gt.Scalar(%p, other = 1000) : !aten.tensor<i1>
  %0 = aten.call "higher_order::cond"(%q, @yes, @no, [%x]) : !aten.tensor<4x3xf32>
  %1 = aten.sum.dim_IntList(%x, dim = [0]) : !aten.tensor<3xf32>
  %2, %3 = aten.call "higher_order::scan"(@step, [%1], [%0], []) : !aten.tensor<3xf32>, !aten.tensor<4x3xf32>
  %n = aten.full(size = [], fill_value = 0, dtype = torch.int64) : !aten.tensor<i64>
  %m, %4 = aten.call "higher_order::while_loop"(@less, @half, [%n, %1], []) : !aten.tensor<i64>, !aten.tensor<3xf32>
  func.return %0, %2, %3, %4, %m : !aten.tensor<4x3xf32>, !aten.tensor<3xf32>, !aten.tensor<4x3xf32>, !aten.tensor<3xf32>, !aten.tensor<i64>
}
func.func @yes(%x: !aten.tensor<4x3xf32>) -> !aten.tensor<4x3xf32> {
  %0 = aten.sin(%x) : !aten.tensor<4x3xf32>
  %1 = aten.exp(%0) : !aten.tensor<4x3xf32>
  func.return %1 : !aten.tensor<4x3xf32>
}
func.func @no(%x: !aten.tensor<4x3xf32>) -> !aten.tensor<4x3xf32> {
  func.return %x : !aten.tensor<4x3xf32>
}
func.func @step(%c: !aten.tensor<3xf32>, %x: !aten.tensor<3xf32>) -> (!aten.tensor<3xf32>, !aten.tensor<3xf32>) {
  %0 = aten.add.Tensor(%c, %x) : !aten.tensor<3xf32>
  %1 = aten.mul.Tensor(%c, %0) : !aten.tensor<3xf32>
  func.return %0, %1 : !aten.tensor<3xf32>, !aten.tensor<3xf32>
}
func.func @less(%n: !aten.tensor<i64>, %x: !aten.tensor<3xf32>) -> !aten.tensor<i1> {
  %0 = aten.lt.Scalar(%n, other = 3) : !aten.tensor<i1>
  func.return %0 : !aten.tensor<i1>
}
func.func @half(%n: !aten.tensor<i64>, %x: !aten.tensor<3xf32>) -> (!aten.tensor<i64>, !aten.tensor<3xf32>) {
  %0 = aten.add.Scalar(%n, other = 1) : !aten.tensor<i64>
  %1 = aten.mul.Scalar(%x, other = 0.5) : !aten.tensor<3xf32>
  func.return %0, %1 : !aten.tensor<i64>, !aten.tensor<3xf32>
}

// CHECK:       aten.call "higher_order::cond"(%q, @yes, @no, [%x]) : !aten.tensor<4x3xf32>
// CHECK:       func.func @yes(

// HOST-LABEL:  host.func @f
// HOST:        aten.call "higher_order::cond"(%{{.*}}, @yes, @no, [%x])
// HOST:        aten.call "higher_order::scan"(@step,
// HOST:        aten.call "higher_order::while_loop"(@less, @half,
// HOST:        host.return
// HOST-LABEL:  host.func @yes
// HOST-NEXT:     %0 = host.empty
// HOST-NEXT:     host.launch @sin_exp_0(%x, %0)
// HOST-LABEL:  host.func @no
// HOST-NEXT:     host.return %x
// HOST-LABEL:  host.func @step
// HOST:          host.launch @add_mul_0
// HOST-NOT:    func.func

// VALUES:      result 2: float32[4, 3]
// VALUES-NEXT: tensor({{\[\[}} 7.7003,  1.6253, 25.8948],
// VALUES:      result 3: float32[3]
// VALUES-NEXT: tensor([ 0.2637, -0.1421, -0.5143])
// VALUES-NEXT: result 4: int64[]
// VALUES-NEXT: 3
