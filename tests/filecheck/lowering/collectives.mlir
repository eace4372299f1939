// RUN: inductile-opt --allow-effects %s --pipeline default --verify-each | filecheck %s

// Collectives stay, once each and in the order of the program, whatever is fused around them: other processes take
// part in them. Two equal ones are two, and one whose result nobody reads is still run.
func.func @collectives(%x: !aten.tensor<8xf32>, %y: !aten.tensor<8xf32>) -> (!aten.tensor<8xf32>, !aten.tensor<16xf32>, !aten.tensor<8xf32>) {
  %0 = aten.exp(%x) : !aten.tensor<8xf32>
  %1 = aten.call "_c10d_functional::all_reduce"(%y, "sum", "0") : !aten.tensor<8xf32>
  %2 = aten.call "_c10d_functional::all_gather_into_tensor"(%0, 2, "0") : !aten.tensor<16xf32>
  %3 = aten.sin(%x) : !aten.tensor<8xf32>
  %4 = aten.call "_c10d_functional::all_reduce"(%y, "sum", "0") : !aten.tensor<8xf32>
  %5 = aten.call "_c10d_functional::wait_tensor"(%2) : !aten.tensor<16xf32>
  %6 = aten.call "_c10d_functional::wait_tensor"(%1) : !aten.tensor<8xf32>
  %7 = aten.add.Tensor(%6, %3) : !aten.tensor<8xf32>
  %8 = aten.call "_c10d_functional::all_reduce"(%3, "max", "0") : !aten.tensor<8xf32>
  %9 = aten.call "_c10d_functional::wait_tensor"(%8) : !aten.tensor<8xf32>
  %10 = aten.mul.Scalar(%5, other = 2.0) : !aten.tensor<16xf32>
  %11 = aten.cos(%7) : !aten.tensor<8xf32>
  func.return %7, %10, %11 : !aten.tensor<8xf32>, !aten.tensor<16xf32>, !aten.tensor<8xf32>
}
// CHECK-LABEL: host.func @collectives
// CHECK: %[[FIRST:.*]] = aten.call "_c10d_functional::all_reduce"(%y, "sum", "0")
// CHECK: %[[GATHERED:.*]] = aten.call "_c10d_functional::all_gather_into_tensor"(
// CHECK: aten.call "_c10d_functional::all_reduce"(%y, "sum", "0")
// CHECK: aten.call "_c10d_functional::wait_tensor"(%[[GATHERED]])
// CHECK: aten.call "_c10d_functional::wait_tensor"(%[[FIRST]])
// CHECK: %[[LAST:.*]] = aten.call "_c10d_functional::all_reduce"({{.*}}, "max", "0")
// CHECK: aten.call "_c10d_functional::wait_tensor"(%[[LAST]])
