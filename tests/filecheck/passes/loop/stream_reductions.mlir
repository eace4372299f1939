// RUN: inductile-opt %s --target cuda:90 -p 'loop-stream-reductions{loop-products=true}' | filecheck %s
// RUN: inductile-opt %s --target cuda:90 -p 'loop-stream-reductions{loop-products=true}' --remarks 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: inductile-opt %s --target cuda:90 -p loop-stream-reductions | filecheck %s --check-prefix=OFF
// RUN: inductile-opt %s --target cuda:90 -p 'loop-stream-reductions{loop-products=true emulate-precision-casts=true}' | filecheck %s --check-prefix=OFF
// RUN: inductile-opt %s --target cpp -p 'loop-stream-reductions{loop-products=true}' | filecheck %s --check-prefix=OFF
// OFF-NOT: softmax_sum

// The maximum, the sum and the weighted sum follow one another in one pass; the scores are computed where they are read.
func.func @attention(%q: !aten.tensor<50x16xf32, device = "cuda:0">, %k: !aten.tensor<40x16xf32, device = "cuda:0">,
                     %v: !aten.tensor<40x8xf32, device = "cuda:0">) -> !aten.tensor<50x8xf32, device = "cuda:0"> {
  %x = loop.generate (i0 in 50, i1 in 40) {
    %p = loop.reduce sum (r0 in 16) {
      %a = loop.load %q[i0, r0]
      %b = loop.load %k[i1, r0]
      %c = arith.mulf %a, %b : f32
      loop.yield %c
    }
    loop.yield %p
  } : !aten.tensor<50x40xf32, device = "cuda:0">
  %m = loop.generate (i0 in 50) {
    %r = loop.reduce max (r0 in 40) {
      %a = loop.load %x[i0, r0]
      loop.yield %a
    }
    loop.yield %r
  } : !aten.tensor<50xf32, device = "cuda:0">
  %e = loop.generate (i0 in 50, i1 in 40) {
    %a = loop.load %x[i0, i1]
    %b = loop.load %m[i0]
    %c = arith.subf %a, %b : f32
    %d = math.exp %c : f32
    loop.yield %d
  } : !aten.tensor<50x40xf32, device = "cuda:0">
  %s = loop.generate (i0 in 50) {
    %r = loop.reduce sum (r1 in 40) {
      %a = loop.load %e[i0, r1]
      loop.yield %a
    }
    loop.yield %r
  } : !aten.tensor<50xf32, device = "cuda:0">
  %o = loop.generate (i0 in 50, i1 in 8) {
    %r = loop.reduce sum (r0 in 40) {
      %a = loop.load %e[i0, r0]
      %b = loop.load %s[i0]
      %c = arith.divf %a, %b : f32
      %d = loop.load %v[r0, i1]
      %f = arith.mulf %c, %d : f32
      loop.yield %f
    }
    loop.yield %r
  } : !aten.tensor<50x8xf32, device = "cuda:0">
  func.return %o : !aten.tensor<50x8xf32, device = "cuda:0">
}
// CHECK-LABEL: func.func @attention
// CHECK-NEXT:    %o = loop.generate (i0 in 50, i1 in 8) {
// CHECK-NEXT:      %highest, %total, %weighted = loop.reduce softmax_sum (r0 in 40) {
// CHECK-NEXT:        %p = loop.reduce sum (r1 in 16) {
// CHECK-NEXT:          %a = loop.load %q[i0, r1]
// CHECK-NEXT:          %b = loop.load %k[r0, r1]
// CHECK:             loop.yield %p, %{{.*}}, %d
// CHECK:           %[[ZERO:.*]] = arith.subf %highest, %highest : f32
// CHECK-NEXT:      %[[TOTAL:.*]] = arith.addf %total, %[[ZERO]] : f32
// CHECK:           %[[SUM:.*]] = arith.addf %weighted, %
// CHECK-NEXT:      %[[R:.*]] = arith.divf %[[SUM]], %[[TOTAL]] : f32
// CHECK-NEXT:      loop.yield %[[R]]
// CHECK-NOT:     loop.generate
// REMARK: passed: {{.*}}a sum over a softmax is one pass over its rows

// Two softmaxes in one sum are two reductions.
func.func @difference(%x: !aten.tensor<50x40xf32, device = "cuda:0">, %y: !aten.tensor<50x40xf32, device = "cuda:0">,
                      %v: !aten.tensor<40x8xf32, device = "cuda:0">) -> !aten.tensor<50x8xf32, device = "cuda:0"> {
  %m = loop.generate (i0 in 50) {
    %r = loop.reduce max (r0 in 40) { %a = loop.load %x[i0, r0]  loop.yield %a }
    loop.yield %r
  } : !aten.tensor<50xf32, device = "cuda:0">
  %n = loop.generate (i0 in 50) {
    %r = loop.reduce max (r0 in 40) { %a = loop.load %y[i0, r0]  loop.yield %a }
    loop.yield %r
  } : !aten.tensor<50xf32, device = "cuda:0">
  %o = loop.generate (i0 in 50, i1 in 8) {
    %r = loop.reduce sum (r0 in 40) {
      %a = loop.load %x[i0, r0]
      %b = loop.load %m[i0]
      %c = arith.subf %a, %b : f32
      %d = math.exp %c : f32
      %e = loop.load %y[i0, r0]
      %f = loop.load %n[i0]
      %g = arith.subf %e, %f : f32
      %h = math.exp %g : f32
      %i = arith.subf %d, %h : f32
      %j = loop.load %v[r0, i1]
      %k = arith.mulf %i, %j : f32
      loop.yield %k
    }
    loop.yield %r
  } : !aten.tensor<50x8xf32, device = "cuda:0">
  func.return %o : !aten.tensor<50x8xf32, device = "cuda:0">
}
// CHECK-LABEL: func.func @difference
// CHECK-COUNT-2: loop.reduce softmax_sum

// What is returned is in memory anyway; the maximum of another row is another number.
func.func @kept(%x: !aten.tensor<50x40xf32, device = "cuda:0">, %v: !aten.tensor<40x8xf32, device = "cuda:0">)
    -> (!aten.tensor<50x8xf32, device = "cuda:0">, !aten.tensor<50x40xf32, device = "cuda:0">) {
  %m = loop.generate (i0 in 50) {
    %r = loop.reduce max (r0 in 40) { %a = loop.load %x[i0, r0]  loop.yield %a }
    loop.yield %r
  } : !aten.tensor<50xf32, device = "cuda:0">
  %e = loop.generate (i0 in 50, i1 in 40) {
    %a = loop.load %x[i0, i1]
    %b = loop.load %m[i0]
    %c = arith.subf %a, %b : f32
    %d = math.exp %c : f32
    loop.yield %d
  } : !aten.tensor<50x40xf32, device = "cuda:0">
  %o = loop.generate (i0 in 50, i1 in 8) {
    %r = loop.reduce sum (r0 in 40) {
      %a = loop.load %e[i0, r0]
      %d = loop.load %v[r0, i1]
      %f = arith.mulf %a, %d : f32
      loop.yield %f
    }
    loop.yield %r
  } : !aten.tensor<50x8xf32, device = "cuda:0">
  func.return %o, %e : !aten.tensor<50x8xf32, device = "cuda:0">, !aten.tensor<50x40xf32, device = "cuda:0">
}
// CHECK-LABEL: func.func @kept
// CHECK-NOT: softmax_sum
// REMARK: missed: {{.*}}a sum over a softmax is not streamed: something else reads what it is made of

func.func @other_row(%x: !aten.tensor<50x40xf32, device = "cuda:0">, %v: !aten.tensor<40x8xf32, device = "cuda:0">)
    -> !aten.tensor<50x8xf32, device = "cuda:0"> {
  %m = loop.generate (i0 in 50) {
    %r = loop.reduce max (r0 in 40) { %a = loop.load %x[i0, r0]  loop.yield %a }
    loop.yield %r
  } : !aten.tensor<50xf32, device = "cuda:0">
  %o = loop.generate (i0 in 50, i1 in 8) {
    %r = loop.reduce sum (r0 in 40) {
      %a = loop.load %x[i0, r0]
      %b = loop.load %m[-i0 + 49]
      %c = arith.subf %a, %b : f32
      %d = math.exp %c : f32
      %j = loop.load %v[r0, i1]
      %k = arith.mulf %d, %j : f32
      loop.yield %k
    }
    loop.yield %r
  } : !aten.tensor<50x8xf32, device = "cuda:0">
  func.return %o : !aten.tensor<50x8xf32, device = "cuda:0">
}
// CHECK-LABEL: func.func @other_row
// CHECK-NOT: softmax_sum
// REMARK: missed: {{.*}}a sum over a softmax is not streamed: the maximum is that of another row

// A row without elements sums up to 0, not to 0 / 0.
func.func @perhaps_empty(%x: !aten.tensor<50x(s0)xf32, device = "cuda:0">, %v: !aten.tensor<(s0)x8xf32, device = "cuda:0">)
    -> !aten.tensor<50x8xf32, device = "cuda:0"> attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 1, min = 0>]} {
  %m = loop.generate (i0 in 50) {
    %r = loop.reduce max (r0 in s0) { %a = loop.load %x[i0, r0]  loop.yield %a }
    loop.yield %r
  } : !aten.tensor<50xf32, device = "cuda:0">
  %o = loop.generate (i0 in 50, i1 in 8) {
    %r = loop.reduce sum (r0 in s0) {
      %a = loop.load %x[i0, r0]
      %b = loop.load %m[i0]
      %c = arith.subf %a, %b : f32
      %d = math.exp %c : f32
      %j = loop.load %v[r0, i1]
      %k = arith.mulf %d, %j : f32
      loop.yield %k
    }
    loop.yield %r
  } : !aten.tensor<50x8xf32, device = "cuda:0">
  func.return %o : !aten.tensor<50x8xf32, device = "cuda:0">
}
// CHECK-LABEL: func.func @perhaps_empty
// CHECK-NOT: softmax_sum
// REMARK: missed: {{.*}}a sum over a softmax is not streamed: its row may be empty, and sums 0 then

// A row that sees nothing is 0, which is chosen behind the sum; the condition reads the maximum that the sum follows.
func.func @safe(%x: !aten.tensor<50x40xf32, device = "cuda:0">, %v: !aten.tensor<40x8xf32, device = "cuda:0">)
    -> !aten.tensor<50x8xf32, device = "cuda:0"> {
  %m = loop.generate (i0 in 50) {
    %r = loop.reduce max (r0 in 40) { %a = loop.load %x[i0, r0]  loop.yield %a }
    loop.yield %r
  } : !aten.tensor<50xf32, device = "cuda:0">
  %o = loop.generate (i0 in 50, i1 in 8) {
    %r = loop.reduce sum (r0 in 40) {
      %a = loop.load %x[i0, r0]
      %b = loop.load %m[i0]
      %c = arith.subf %a, %b : f32
      %d = math.exp %c : f32
      %n = arith.constant 0xFF800000 : f32
      %h = arith.cmpf oeq, %b, %n : f32
      %z = arith.constant 0.000000e+00 : f32
      %w = arith.select %h, %z, %d : f32
      %f = loop.load %v[r0, i1]
      %g = arith.mulf %w, %f : f32
      loop.yield %g
    }
    loop.yield %r
  } : !aten.tensor<50x8xf32, device = "cuda:0">
  func.return %o : !aten.tensor<50x8xf32, device = "cuda:0">
}
// CHECK-LABEL: func.func @safe
// CHECK:           %highest, %total, %weighted = loop.reduce softmax_sum
// CHECK:           %[[SUM:.*]] = arith.addf %weighted
// CHECK:           %[[HIDDEN:.*]] = arith.cmpf oeq, %highest
// CHECK:           arith.select %[[HIDDEN]], %{{.*}}, %[[SUM]] : f32
// CHECK-NOT:     loop.generate

// What is returned of a row is made of the maximum and the sum at hand; the first column stores it.
func.func @statistics(%x: !aten.tensor<50x40xf32, device = "cuda:0">, %v: !aten.tensor<40x8xf32, device = "cuda:0">)
    -> (!aten.tensor<50x8xf32, device = "cuda:0">, !aten.tensor<50x1xf32, device = "cuda:0">, !aten.tensor<50x1xf32, device = "cuda:0">) {
  %m = loop.generate (i0 in 50, i1 in 1) {
    %r = loop.reduce max (r0 in 40) { %a = loop.load %x[i0, r0]  loop.yield %a }
    loop.yield %r
  } : !aten.tensor<50x1xf32, device = "cuda:0">
  %e = loop.generate (i0 in 50, i1 in 40) {
    %a = loop.load %x[i0, i1]
    %b = loop.load %m[i0, 0]
    %c = arith.subf %a, %b : f32
    %d = math.exp %c : f32
    loop.yield %d
  } : !aten.tensor<50x40xf32, device = "cuda:0">
  %l = loop.generate (i0 in 50, i1 in 1) {
    %r = loop.reduce sum (r0 in 40) { %a = loop.load %e[i0, r0]  loop.yield %a }
    %b = loop.load %m[i0, 0]
    %c = math.log %r : f32
    %d = arith.addf %b, %c : f32
    loop.yield %d
  } : !aten.tensor<50x1xf32, device = "cuda:0">
  %p = loop.generate (i0 in 50, i1 in 40) {
    %a = loop.load %e[i0, i1]
    %b = loop.load %l[i0, 0]
    %c = arith.mulf %a, %b : f32
    loop.yield %c
  } : !aten.tensor<50x40xf32, device = "cuda:0">
  %o = loop.generate (i0 in 50, i1 in 8) {
    %r = loop.reduce sum (r0 in 40) {
      %a = loop.load %p[i0, r0]
      %j = loop.load %v[r0, i1]
      %k = arith.mulf %a, %j : f32
      loop.yield %k
    }
    loop.yield %r
  } : !aten.tensor<50x8xf32, device = "cuda:0">
  func.return %o, %m, %l : !aten.tensor<50x8xf32, device = "cuda:0">, !aten.tensor<50x1xf32, device = "cuda:0">, !aten.tensor<50x1xf32, device = "cuda:0">
}
// CHECK-LABEL: func.func @statistics
// CHECK: %o, %m, %l = loop.generate (i0 in 50, i1 in 8) {
// CHECK-NEXT: %highest, %total, %weighted = loop.reduce softmax_sum (r0 in 40)
// CHECK: %[[SUM:.*]] = arith.addf %total, %
// CHECK: %[[LOG:.*]] = math.log %[[SUM]]
// CHECK-NEXT: %[[L:.*]] = arith.addf %highest, %[[LOG]]
// CHECK: arith.mulf %{{.*}}, %[[L]]
// CHECK-NEXT: loop.yield %{{.*}}, %highest, %[[L]]
// CHECK: loop.scatter set (i0 in 50, i1 in 8) into %{{.*}}[i0, 0] unique masked {
// CHECK-NEXT: %[[V:.*]] = loop.load %m[i0, i1]
// CHECK-NEXT: loop.index i1
// CHECK: loop.scatter set (i0 in 50, i1 in 8) into %{{.*}}[i0, 0] unique masked {
// CHECK-NOT: loop.reduce max

// A row is read in front of the sum: it is reduced there.
func.func @early(%x: !aten.tensor<50x40xf32, device = "cuda:0">, %v: !aten.tensor<40x8xf32, device = "cuda:0">)
    -> (!aten.tensor<50x8xf32, device = "cuda:0">, !aten.tensor<50xf32, device = "cuda:0">) {
  %m = loop.generate (i0 in 50) {
    %r = loop.reduce max (r0 in 40) { %a = loop.load %x[i0, r0]  loop.yield %a }
    loop.yield %r
  } : !aten.tensor<50xf32, device = "cuda:0">
  %n = loop.generate (i0 in 50) {
    %a = loop.load %m[i0]
    %b = loop.load %x[i0, 0]
    %c = arith.subf %b, %a : f32
    loop.yield %c
  } : !aten.tensor<50xf32, device = "cuda:0">
  %e = loop.generate (i0 in 50, i1 in 40) {
    %a = loop.load %x[i0, i1]
    %b = loop.load %m[i0]
    %c = arith.subf %a, %b : f32
    %d = math.exp %c : f32
    loop.yield %d
  } : !aten.tensor<50x40xf32, device = "cuda:0">
  %o = loop.generate (i0 in 50, i1 in 8) {
    %r = loop.reduce sum (r0 in 40) {
      %d = loop.load %e[i0, r0]
      %j = loop.load %v[r0, i1]
      %k = arith.mulf %d, %j : f32
      loop.yield %k
    }
    loop.yield %r
  } : !aten.tensor<50x8xf32, device = "cuda:0">
  func.return %o, %n : !aten.tensor<50x8xf32, device = "cuda:0">, !aten.tensor<50xf32, device = "cuda:0">
}
// CHECK-LABEL: func.func @early
// CHECK: loop.reduce max
// CHECK: loop.reduce softmax_sum
// CHECK-NOT: loop.scatter

// What is made of rows alone is computed behind the sum, too, although it stands in front of it.
func.func @made(%x: !aten.tensor<50x40xf32, device = "cuda:0">, %v: !aten.tensor<40x8xf32, device = "cuda:0">)
    -> (!aten.tensor<50x8xf32, device = "cuda:0">, !aten.tensor<50xf32, device = "cuda:0">) {
  %m = loop.generate (i0 in 50) {
    %r = loop.reduce max (r0 in 40) { %a = loop.load %x[i0, r0]  loop.yield %a }
    loop.yield %r
  } : !aten.tensor<50xf32, device = "cuda:0">
  %n = loop.generate (i0 in 50) {
    %a = loop.load %m[i0]
    %b = math.exp %a : f32
    loop.yield %b
  } : !aten.tensor<50xf32, device = "cuda:0">
  %e = loop.generate (i0 in 50, i1 in 40) {
    %a = loop.load %x[i0, i1]
    %b = loop.load %m[i0]
    %c = arith.subf %a, %b : f32
    %d = math.exp %c : f32
    loop.yield %d
  } : !aten.tensor<50x40xf32, device = "cuda:0">
  %o = loop.generate (i0 in 50, i1 in 8) {
    %r = loop.reduce sum (r0 in 40) {
      %d = loop.load %e[i0, r0]
      %j = loop.load %v[r0, i1]
      %k = arith.mulf %d, %j : f32
      loop.yield %k
    }
    loop.yield %r
  } : !aten.tensor<50x8xf32, device = "cuda:0">
  func.return %o, %n : !aten.tensor<50x8xf32, device = "cuda:0">, !aten.tensor<50xf32, device = "cuda:0">
}
// CHECK-LABEL: func.func @made
// CHECK: loop.reduce softmax_sum
// CHECK: %[[E:.*]] = math.exp %highest
// CHECK: loop.yield %{{.*}}, %[[E]]
// CHECK-NOT: loop.reduce max
