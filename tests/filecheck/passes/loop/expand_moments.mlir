// RUN: inductile-opt %s -p loop-expand-moments | filecheck %s
// RUN: inductile-opt %s -p 'loop-expand-moments{programs=4}' | filecheck %s --check-prefix=WHOLE
// WHOLE-NOT: welford

// A mean and squares of deviations from it, over columns that are cut into parts, stay one reduction.
func.func @columns(%x: !aten.tensor<4096x64xbf16, device = "cuda:0">) -> (!aten.tensor<64xf32, device = "cuda:0">, !aten.tensor<64xf32, device = "cuda:0">) {
  %m, %q = loop.generate (i0 in 64) {
    %s, %a, %b, %c = loop.reduce [sum, welford] (r0 in 4096) {
      %v = loop.load %x[r0, i0]
      %w = scalar.widen %v : bf16 to f32
      %zero = arith.constant 0.0 : f32
      %one = arith.constant 1.0 : f32
      loop.yield %w, %w, %zero, %one
    }
    %n = arith.constant 4096.0 : f32
    %mean = arith.divf %s, %n : f32
    %d = arith.subf %mean, %a : f32
    %p = arith.mulf %d, %d : f32
    %t = arith.mulf %p, %c : f32
    %squares = arith.addf %b, %t : f32
    loop.yield %mean, %squares
  } : !aten.tensor<64xf32, device = "cuda:0">, !aten.tensor<64xf32, device = "cuda:0">
  func.return %m, %q : !aten.tensor<64xf32, device = "cuda:0">, !aten.tensor<64xf32, device = "cuda:0">
}

// A program has a row at hand for both; the number of its elements is an index.
func.func @rows(%x: !aten.tensor<4096x1x(s0)xf32, device = "cuda:0">) -> (!aten.tensor<4096x1xf32, device = "cuda:0">, !aten.tensor<4096x1xf32, device = "cuda:0">) attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 2, min = 2, hint = 64>]} {
  %m, %q = loop.generate (i0 in 4096, i1 in 1) {
    %s, %a, %b, %c = loop.reduce [sum, welford] (r0 in s0) {
      %v = loop.load %x[i0, 0, r0]
      %zero = arith.constant 0.0 : f32
      %one = arith.constant 1.0 : f32
      loop.yield %v, %v, %zero, %one
    }
    %i = loop.index s0
    %n = scalar.cast %i : i64 to f32
    %mean = arith.divf %s, %n : f32
    %d = arith.subf %mean, %a : f32
    %p = arith.mulf %d, %d : f32
    %t = arith.mulf %p, %c : f32
    %squares = arith.addf %b, %t : f32
    loop.yield %mean, %squares
  } : !aten.tensor<4096x1xf32, device = "cuda:0">, !aten.tensor<4096x1xf32, device = "cuda:0">
  func.return %m, %q : !aten.tensor<4096x1xf32, device = "cuda:0">, !aten.tensor<4096x1xf32, device = "cuda:0">
}

// Only the squares are wanted: the mean is a nest all the same.
func.func @squares(%x: !aten.tensor<4096x64xf32, device = "cuda:0">) -> !aten.tensor<4096xf32, device = "cuda:0"> {
  %q = loop.generate (i0 in 4096) {
    %s, %a, %b, %c = loop.reduce [sum, welford] (r0 in 64) {
      %v = loop.load %x[i0, r0]
      %zero = arith.constant 0.0 : f32
      %one = arith.constant 1.0 : f32
      loop.yield %v, %v, %zero, %one
    }
    %n = arith.constant 64.0 : f32
    %mean = arith.divf %s, %n : f32
    %d = arith.subf %mean, %a : f32
    %p = arith.mulf %d, %d : f32
    %t = arith.mulf %p, %c : f32
    %squares = arith.addf %b, %t : f32
    loop.yield %squares
  } : !aten.tensor<4096xf32, device = "cuda:0">
  func.return %q : !aten.tensor<4096xf32, device = "cuda:0">
}

// CHECK-LABEL: func.func @columns
// CHECK-NEXT: loop.generate (i0 in 64) {
// CHECK-NEXT: loop.reduce [sum, welford] (r0 in 4096)
// CHECK-NOT: loop.generate
// CHECK-LABEL: func.func @rows
// CHECK-NEXT: %m = loop.generate (i0 in 4096, i1 in 1) {
// CHECK-NEXT: %[[S:.*]] = loop.reduce sum (r0 in s0) {
// CHECK-NEXT: %[[V:.*]] = loop.load %x[i0, 0, r0]
// CHECK-NEXT: loop.yield %[[V]]
// CHECK: %[[N:.*]] = scalar.cast
// CHECK-NEXT: arith.divf %[[S]], %[[N]]
// CHECK: %q = loop.generate (i0 in 4096, i1 in 1) {
// CHECK-NEXT: loop.reduce sum (r0 in s0) {
// CHECK-NEXT: %[[V:.*]] = loop.load %x[i0, 0, r0]
// CHECK-NEXT: %[[M:.*]] = loop.load %m[i0, 0]
// CHECK-NEXT: %[[D:.*]] = arith.subf %[[V]], %[[M]]
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[D]], %[[D]]
// CHECK-NEXT: loop.yield %[[P]]
// CHECK: func.return %m, %q
// CHECK-LABEL: func.func @squares
// CHECK-COUNT-2: loop.reduce sum
// CHECK-NOT: welford
