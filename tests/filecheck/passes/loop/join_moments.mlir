// RUN: inductile-opt %s -p loop-join-moments | filecheck %s
// RUN: inductile-opt %s -p 'loop-join-moments{programs=4}' | filecheck %s --check-prefix=WHOLE
// WHOLE-NOT: welford

// A mean, and squares of deviations from it, over columns that are cut into parts: one reduction.
func.func @columns(%x: !aten.tensor<4096x64xbf16, device = "cuda:0">) -> (!aten.tensor<64xf32, device = "cuda:0">, !aten.tensor<64xf32, device = "cuda:0">) {
  %m = loop.generate (i0 in 64) {
    %s = loop.reduce sum (r0 in 4096) {
      %v = loop.load %x[r0, i0]
      %w = scalar.widen %v : bf16 to f32
      loop.yield %w
    }
    %n = arith.constant 4096.0 : f32
    %d = arith.divf %s, %n : f32
    loop.yield %d
  } : !aten.tensor<64xf32, device = "cuda:0">
  %q = loop.generate (i1 in 64) {
    %s = loop.reduce sum (r1 in 4096) {
      %v = loop.load %x[r1, i1]
      %w = scalar.widen %v : bf16 to f32
      %a = loop.load %m[i1]
      %d = arith.subf %w, %a : f32
      %p = arith.mulf %d, %d : f32
      loop.yield %p
    }
    loop.yield %s
  } : !aten.tensor<64xf32, device = "cuda:0">
  func.return %m, %q : !aten.tensor<64xf32, device = "cuda:0">, !aten.tensor<64xf32, device = "cuda:0">
}

// With a dynamic number of rows the count is an index.
func.func @dynamic(%x: !aten.tensor<(s0)x64xf32, device = "cuda:0">) -> !aten.tensor<64xf32, device = "cuda:0"> attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0, min = 2, hint = 4096>]} {
  %m = loop.generate (i0 in 64) {
    %s = loop.reduce sum (r0 in s0) {
      %v = loop.load %x[r0, i0]
      loop.yield %v
    }
    %i = loop.index s0
    %n = scalar.cast %i : i64 to f32
    %d = arith.divf %s, %n : f32
    loop.yield %d
  } : !aten.tensor<64xf32, device = "cuda:0">
  %q = loop.generate (i0 in 64) {
    %s = loop.reduce sum (r0 in s0) {
      %v = loop.load %x[r0, i0]
      %a = loop.load %m[i0]
      %d = arith.subf %v, %a : f32
      %p = arith.mulf %d, %d : f32
      loop.yield %p
    }
    loop.yield %s
  } : !aten.tensor<64xf32, device = "cuda:0">
  func.return %q : !aten.tensor<64xf32, device = "cuda:0">
}

// No mean: the sum is divided by another number than that of its elements. Nor are deviations of other values joined.
func.func @others(%x: !aten.tensor<4096x64xf32, device = "cuda:0">, %y: !aten.tensor<4096x64xf32, device = "cuda:0">) -> (!aten.tensor<64xf32, device = "cuda:0">, !aten.tensor<64xf32, device = "cuda:0">) {
  %m, %l = loop.generate (i0 in 64) {
    %s, %t = loop.reduce [sum, sum] (r0 in 4096) {
      %v = loop.load %x[r0, i0]
      %w = loop.load %y[r0, i0]
      loop.yield %v, %w
    }
    %n = arith.constant 4095.0 : f32
    %d = arith.divf %s, %n : f32
    loop.yield %d, %t
  } : !aten.tensor<64xf32, device = "cuda:0">, !aten.tensor<64xf32, device = "cuda:0">
  %k = loop.generate (i0 in 64) {
    %s = loop.reduce sum (r0 in 4096) {
      %v = loop.load %y[r0, i0]
      loop.yield %v
    }
    %n = arith.constant 4096.0 : f32
    %d = arith.divf %s, %n : f32
    loop.yield %d
  } : !aten.tensor<64xf32, device = "cuda:0">
  %q, %p = loop.generate (i0 in 64) {
    %s = loop.reduce sum (r0 in 4096) {
      %v = loop.load %x[r0, i0]
      %a = loop.load %m[i0]
      %d = arith.subf %v, %a : f32
      %e = arith.mulf %d, %d : f32
      loop.yield %e
    }
    %t = loop.reduce sum (r1 in 4096) {
      %v = loop.load %x[r1, i0]
      %a = loop.load %k[i0]
      %d = arith.subf %v, %a : f32
      %e = arith.mulf %d, %d : f32
      loop.yield %e
    }
    loop.yield %s, %t
  } : !aten.tensor<64xf32, device = "cuda:0">, !aten.tensor<64xf32, device = "cuda:0">
  func.return %q, %p : !aten.tensor<64xf32, device = "cuda:0">, !aten.tensor<64xf32, device = "cuda:0">
}

// Rows that a program does as a whole, and a CPU, keep two reductions.
func.func @rows(%x: !aten.tensor<4096x64xf32, device = "cuda:0">, %y: !aten.tensor<4096x64xf32>) -> (!aten.tensor<4096xf32, device = "cuda:0">, !aten.tensor<64xf32>) {
  %m = loop.generate (i0 in 4096) {
    %s = loop.reduce sum (r0 in 64) {
      %v = loop.load %x[i0, r0]
      loop.yield %v
    }
    %n = arith.constant 64.0 : f32
    %d = arith.divf %s, %n : f32
    loop.yield %d
  } : !aten.tensor<4096xf32, device = "cuda:0">
  %q = loop.generate (i0 in 4096) {
    %s = loop.reduce sum (r0 in 64) {
      %v = loop.load %x[i0, r0]
      %a = loop.load %m[i0]
      %d = arith.subf %v, %a : f32
      %p = arith.mulf %d, %d : f32
      loop.yield %p
    }
    loop.yield %s
  } : !aten.tensor<4096xf32, device = "cuda:0">
  %k = loop.generate (i0 in 64) {
    %s = loop.reduce sum (r0 in 4096) {
      %v = loop.load %y[r0, i0]
      loop.yield %v
    }
    %n = arith.constant 4096.0 : f32
    %d = arith.divf %s, %n : f32
    loop.yield %d
  } : !aten.tensor<64xf32>
  %l = loop.generate (i0 in 64) {
    %s = loop.reduce sum (r0 in 4096) {
      %v = loop.load %y[r0, i0]
      %a = loop.load %k[i0]
      %d = arith.subf %v, %a : f32
      %p = arith.mulf %d, %d : f32
      loop.yield %p
    }
    loop.yield %s
  } : !aten.tensor<64xf32>
  func.return %q, %l : !aten.tensor<4096xf32, device = "cuda:0">, !aten.tensor<64xf32>
}

// CHECK-LABEL: func.func @columns
// CHECK-NEXT: %[[M:.*]], %[[Q:.*]] = loop.generate (i0 in 64) {
// CHECK-NEXT: %[[S:.*]], %[[A:.*]], %[[B:.*]], %[[N:.*]] = loop.reduce [sum, welford] (r0 in 4096) {
// CHECK: loop.yield %w, %w, %{{.*}}, %{{.*}}
// CHECK: %[[C:.*]] = arith.divf %[[S]], %[[N]]
// CHECK-NEXT: %[[D:.*]] = arith.subf %[[C]], %[[A]]
// CHECK: %[[T:.*]] = arith.addf %[[B]], %{{.*}}
// CHECK-NEXT: loop.yield %[[S]], %[[T]]
// CHECK: %m = loop.generate (i0 in 64) {
// CHECK-NEXT: %[[L:.*]] = loop.load %[[M]][i0]
// CHECK: %d = arith.divf %[[L]], %n
// CHECK: %q = loop.generate (i1 in 64) {
// CHECK-NEXT: %[[L:.*]] = loop.load %[[Q]][i1]
// CHECK-NEXT: loop.yield %[[L]]
// CHECK-LABEL: func.func @dynamic
// CHECK: loop.reduce [sum, welford] (r0 in s0)
// CHECK-NOT: loop.reduce sum
// CHECK-LABEL: func.func @others
// CHECK-NOT: welford
// CHECK-LABEL: func.func @rows
// CHECK-NOT: welford
