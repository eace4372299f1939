// RUN: inductile-opt %s -p loop-accumulate,loop-dce --split-input-file --verify-each=numerics | filecheck %s
// RUN: inductile-opt %s --split-input-file -p loop-accumulate,loop-dce,loop-fuse,loop-bufferize | filecheck %s --check-prefix=BUFFER

// The gradient of a weight that is read by rows and multiplied with: the rows are added to the product itself. The zero
// that was added to all others makes 0 of -0.0.
func.func @tied(%i: !aten.tensor<5xi64>, %g: !aten.tensor<5x8xf32>, %a: !aten.tensor<9x3xf32>, %b: !aten.tensor<3x8xf32>) -> !aten.tensor<9x8xf32> attributes {symbols = []} {
  %m = aten.mm(%a, %b) : !aten.tensor<9x8xf32>
  %z = loop.generate (i0 in 9, i1 in 8) {
    %c = arith.constant 0.0 : f32
    loop.yield %c
  } : !aten.tensor<9x8xf32>
  %s = loop.scatter add (i0 in 5, i1 in 8) into %z[d0, i1] {
    %v = loop.load %g[i0, i1]
    %r = loop.load %i[i0]
    loop.yield %v, %r
  } : !aten.tensor<9x8xf32>
  %t = loop.generate (i0 in 9, i1 in 8) {
    %x = loop.load %m[i0, i1]
    %y = loop.load %s[i0, i1]
    %w = arith.addf %x, %y : f32
    loop.yield %w
  } : !aten.tensor<9x8xf32>
  func.return %t : !aten.tensor<9x8xf32>
}

// CHECK-LABEL: func.func @tied
// CHECK-NEXT: %m = aten.mm
// CHECK-NEXT: %t = loop.generate (i0 in 9, i1 in 8) {
// CHECK-NEXT:   [[X:%.*]] = loop.load %m[i0, i1]
// CHECK-NEXT:   [[C:%.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:   [[W:%.*]] = arith.addf [[X]], [[C]] : f32
// CHECK-NEXT:   loop.yield [[W]]
// CHECK:      loop.scatter add (i0 in 5, i1 in 8) into %t[d0, i1] {
// CHECK-NEXT:   loop.load %g[i0, i1]
// CHECK-NOT:  loop.generate
// BUFFER-LABEL: func.func @tied
// BUFFER: loop.scatter add (i0 in 5, i1 in 8) into %{{.*}}[d0, i1] in_place

// -----

// Two tables of sums become one; a sum that starts at zero is not -0.0, so that the second needs no zero of its own.
func.func @twice(%i: !aten.tensor<5xi64>, %g: !aten.tensor<5xf32>, %h: !aten.tensor<4xf32>) -> !aten.tensor<9xf32> attributes {symbols = []} {
  %z = loop.generate (i0 in 9) {
    %c = arith.constant 0.0 : f32
    loop.yield %c
  } : !aten.tensor<9xf32>
  %s = loop.scatter add (i0 in 5) into %z[d0] {
    %v = loop.load %g[i0]
    %r = loop.load %i[i0]
    loop.yield %v, %r
  } : !aten.tensor<9xf32>
  %u = loop.scatter add (i0 in 4) into %z[d0] {
    %v = loop.load %h[i0]
    %r = loop.load %i[i0]
    loop.yield %v, %r
  } : !aten.tensor<9xf32>
  %t = loop.generate (i0 in 9) {
    %x = loop.load %s[i0]
    %y = loop.load %u[i0]
    %w = arith.addf %x, %y : f32
    loop.yield %w
  } : !aten.tensor<9xf32>
  func.return %t : !aten.tensor<9xf32>
}

// CHECK-LABEL: func.func @twice
// CHECK:     %z = loop.generate
// CHECK:     %u = loop.scatter add (i0 in 4) into %z[d0] {
// CHECK:     loop.scatter add (i0 in 5) into %u[d0] {
// CHECK-NOT: loop.generate

// -----

// What is yielded need not be a plain sum of tensors, and a column has an axis of one element.
func.func @column(%i: !aten.tensor<5xi64>, %g: !aten.tensor<5xf32>, %x: !aten.tensor<9x1xf32>) -> !aten.tensor<9x1xf32> attributes {symbols = []} {
  %z = loop.generate (i0 in 9, i1 in 1) {
    %c = arith.constant 0.0 : f32
    loop.yield %c
  } : !aten.tensor<9x1xf32>
  %s = loop.scatter add (i0 in 5) into %z[d0, 0] {
    %v = loop.load %g[i0]
    %r = loop.load %i[i0]
    loop.yield %v, %r
  } : !aten.tensor<9x1xf32>
  %t = loop.generate (i0 in 9, i1 in 1) {
    %y = loop.load %s[i0, i1]
    %a = loop.load %x[i0, 0]
    %e = math.exp %a : f32
    %w = arith.addf %y, %e : f32
    loop.yield %w
  } : !aten.tensor<9x1xf32>
  func.return %t : !aten.tensor<9x1xf32>
}

// CHECK-LABEL: func.func @column
// CHECK-NEXT: %t = loop.generate
// CHECK:      math.exp
// CHECK:      loop.scatter add (i0 in 5) into %t[d0, 0] {

// -----

// The order of the sums is fixed.
func.func @deterministic(%i: !aten.tensor<5xi64>, %g: !aten.tensor<5xf32>, %x: !aten.tensor<9xf32>) -> !aten.tensor<9xf32> attributes {symbols = []} {
  %z = loop.generate (i0 in 9) {
    %c = arith.constant 0.0 : f32
    loop.yield %c
  } : !aten.tensor<9xf32>
  %s = loop.scatter add (i0 in 5) into %z[d0] deterministic {
    %v = loop.load %g[i0]
    %r = loop.load %i[i0]
    loop.yield %v, %r
  } : !aten.tensor<9xf32>
  %t = loop.generate (i0 in 9) {
    %y = loop.load %s[i0]
    %a = loop.load %x[i0]
    %w = arith.addf %y, %a : f32
    loop.yield %w
  } : !aten.tensor<9xf32>
  func.return %t : !aten.tensor<9xf32>
}

// CHECK-LABEL: func.func @deterministic
// CHECK: loop.scatter add (i0 in 5) into %z[d0] deterministic {
// CHECK: loop.generate
// CHECK: arith.addf

// -----

// The sums are used by themselves too.
func.func @also(%i: !aten.tensor<5xi64>, %g: !aten.tensor<5xf32>, %x: !aten.tensor<9xf32>) -> (!aten.tensor<9xf32>, !aten.tensor<9xf32>) attributes {symbols = []} {
  %z = loop.generate (i0 in 9) {
    %c = arith.constant 0.0 : f32
    loop.yield %c
  } : !aten.tensor<9xf32>
  %s = loop.scatter add (i0 in 5) into %z[d0] {
    %v = loop.load %g[i0]
    %r = loop.load %i[i0]
    loop.yield %v, %r
  } : !aten.tensor<9xf32>
  %t = loop.generate (i0 in 9) {
    %y = loop.load %s[i0]
    %a = loop.load %x[i0]
    %w = arith.addf %y, %a : f32
    loop.yield %w
  } : !aten.tensor<9xf32>
  func.return %s, %t : !aten.tensor<9xf32>, !aten.tensor<9xf32>
}

// CHECK-LABEL: func.func @also
// CHECK: loop.scatter add (i0 in 5) into %z[d0] {

// -----

// What is added up is written in between; what it starts from matters too, when it is -0.0.
func.func @written(%i: !aten.tensor<5xi64>, %g: !aten.tensor<5xf32>, %h: !aten.tensor<5xf32>, %x: !aten.tensor<9xf32>) -> !aten.tensor<9xf32> attributes {symbols = []} {
  %z = loop.generate (i0 in 9) {
    %c = arith.constant 0.0 : f32
    loop.yield %c
  } : !aten.tensor<9xf32>
  %s = loop.scatter add (i0 in 5) into %z[d0] {
    %v = loop.load %g[i0]
    %r = loop.load %i[i0]
    loop.yield %v, %r
  } : !aten.tensor<9xf32>
  %o = aten.copy_(%g, %h) : !aten.tensor<5xf32>
  %n = loop.generate (i0 in 9) {
    %k = arith.constant -0.0 : f32
    loop.yield %k
  } : !aten.tensor<9xf32>
  %u = loop.scatter add (i0 in 5) into %n[d0] {
    %v = loop.load %h[i0]
    %r = loop.load %i[i0]
    loop.yield %v, %r
  } : !aten.tensor<9xf32>
  %t = loop.generate (i0 in 9) {
    %y = loop.load %s[i0]
    %a = loop.load %u[i0]
    %w = arith.addf %y, %a : f32
    loop.yield %w
  } : !aten.tensor<9xf32>
  func.return %t : !aten.tensor<9xf32>
}

// CHECK-LABEL: func.func @written
// CHECK: loop.scatter add (i0 in 5) into %z[d0] {
// CHECK: loop.scatter add (i0 in 5) into %n[d0] {
// CHECK: arith.addf

// -----

// An input is written before the sum is used: by then an index that is wrong must have been reported.
func.func @checked(%i: !aten.tensor<5xi64>, %g: !aten.tensor<5xf32>, %o: !aten.tensor<9xf32>, %h: !aten.tensor<9xf32>, %x: !aten.tensor<9xf32>) -> !aten.tensor<9xf32> attributes {symbols = []} {
  %z = loop.generate (i0 in 9) {
    %c = arith.constant 0.0 : f32
    loop.yield %c
  } : !aten.tensor<9xf32>
  %s = loop.scatter add (i0 in 5) into %z[d0] {
    %v = loop.load %g[i0]
    %r = loop.load %i[i0]
    %n = loop.index 9
    %f = arith.cmpi slt, %r, %n : i64
    loop.assert %f, "index out of range" : IndexError
    loop.yield %v, %r
  } : !aten.tensor<9xf32>
  %w = aten.copy_(%o, %h) : !aten.tensor<9xf32>
  %t = loop.generate (i0 in 9) {
    %y = loop.load %s[i0]
    %a = loop.load %x[i0]
    %b = arith.addf %y, %a : f32
    loop.yield %b
  } : !aten.tensor<9xf32>
  func.return %t : !aten.tensor<9xf32>
}

// CHECK-LABEL: func.func @checked
// CHECK: loop.scatter add (i0 in 5) into %z[d0] {
// CHECK: aten.copy_
// CHECK: arith.addf

// -----

// The zeros are another result of the nest: what is added to are ones.
func.func @second(%i: !aten.tensor<5xi64>, %g: !aten.tensor<5xf32>, %x: !aten.tensor<9xf32>) -> (!aten.tensor<9xf32>, !aten.tensor<9xf32>) attributes {symbols = []} {
  %z, %o = loop.generate (i0 in 9) {
    %c = arith.constant 0.0 : f32
    %d = arith.constant 1.0 : f32
    loop.yield %c, %d
  } : !aten.tensor<9xf32>, !aten.tensor<9xf32>
  %s = loop.scatter add (i0 in 5) into %o[d0] {
    %v = loop.load %g[i0]
    %r = loop.load %i[i0]
    loop.yield %v, %r
  } : !aten.tensor<9xf32>
  %t = loop.generate (i0 in 9) {
    %y = loop.load %x[i0]
    %u = loop.load %s[i0]
    %w = arith.addf %y, %u : f32
    loop.yield %w
  } : !aten.tensor<9xf32>
  func.return %t, %z : !aten.tensor<9xf32>, !aten.tensor<9xf32>
}

// CHECK-LABEL: func.func @second
// CHECK: loop.scatter add (i0 in 5) into %o[d0] {
// CHECK: arith.addf
