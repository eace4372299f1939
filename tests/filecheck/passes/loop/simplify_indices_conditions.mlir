// RUN: inductile-opt %s -p loop-simplify-indices,loop-dce --verify-each numerics | filecheck %s

// A choice between true and false is its condition, and the opposite of a comparison is one: of floats an unordered one.

func.func @conditions(%x: !aten.tensor<8xf32>, %j: !aten.tensor<8xi64>) -> (!aten.tensor<8xi1>, !aten.tensor<8xi1>, !aten.tensor<8xi1>, !aten.tensor<8xi1>, !aten.tensor<8xi1>) {
  %a, %b, %c, %d, %e = loop.generate (i0 in 8) {
    %true = arith.constant true
    %false = arith.constant false
    %v = loop.load %x[i0]
    %k = loop.load %j[i0]
    %n = arith.constant 3 : i64
    %zero = arith.constant 0.0 : f32
    %less = arith.cmpf olt, %v, %zero : f32
    %chosen = arith.select %less, %true, %false : i1
    %not = arith.select %less, %false, %true : i1
    %above = arith.cmpi sgt, %k, %n : i64
    %flipped = arith.xori %above, %true : i1
    %twice = arith.xori %flipped, %true : i1
    %both = arith.andi %above, %less : i1
    %odd = arith.xori %both, %true : i1
    %even = arith.xori %odd, %true : i1
    %same = arith.xori %even, %false : i1
    loop.yield %chosen, %not, %flipped, %twice, %same
  } : !aten.tensor<8xi1>, !aten.tensor<8xi1>, !aten.tensor<8xi1>, !aten.tensor<8xi1>, !aten.tensor<8xi1>
  func.return %a, %b, %c, %d, %e : !aten.tensor<8xi1>, !aten.tensor<8xi1>, !aten.tensor<8xi1>, !aten.tensor<8xi1>, !aten.tensor<8xi1>
}

// CHECK-LABEL: func.func @conditions
// CHECK-NOT: arith.select
// CHECK-NOT: arith.xori
// CHECK: %less = arith.cmpf olt, %v, %zero : f32
// CHECK: [[NOT:%.*]] = arith.cmpf uge, %v, %zero : f32
// CHECK: %above = arith.cmpi sgt, %k, %n : i64
// CHECK: [[FLIPPED:%.*]] = arith.cmpi sle, %k, %n : i64
// CHECK: [[TWICE:%.*]] = arith.cmpi sgt, %k, %n : i64
// CHECK: %both = arith.andi %above, %less : i1
// CHECK: loop.yield %less, [[NOT]], [[FLIPPED]], [[TWICE]], %both
