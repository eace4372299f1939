// RUN: inductile-opt %s --split-input-file --verify-each -p lower-loop-to-kernel | filecheck %s

// Softmax: a reduction's result is a scalar of the row, the exponentials are a local row.

func.func @softmax(%x: !aten.tensor<(s0)x4096xf32>) -> !aten.tensor<(s0)x4096xf32> attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0>]} {
  %y = loop.fusion (a0 in s0 | a1 in 4096) {
    %m = loop.generate (i0 in s0) on (a0) {
      %r = loop.reduce max (r0 in 4096) on (a1) {
        %v = loop.load %x[i0, r0]
        loop.yield %v
      }
      loop.yield %r
    } : !aten.tensor<(s0)xf32>
    %e = loop.generate (i0 in s0, i1 in 4096) on (a0, a1) {
      %v = loop.load %x[i0, i1]
      %mm = loop.load %m[i0]
      %d = arith.subf %v, %mm : f32
      %x1 = math.exp %d : f32
      loop.yield %x1
    } : !aten.tensor<(s0)x4096xf32>
    %s = loop.generate (i0 in s0) on (a0) {
      %r = loop.reduce sum (r0 in 4096) on (a1) {
        %v = loop.load %e[i0, r0]
        loop.yield %v
      }
      loop.yield %r
    } : !aten.tensor<(s0)xf32>
    %o = loop.generate (i0 in s0, i1 in 4096) on (a0, a1) {
      %v = loop.load %e[i0, i1]
      %ss = loop.load %s[i0]
      %q = arith.divf %v, %ss : f32
      loop.yield %q
    } : !aten.tensor<(s0)x4096xf32>
    loop.yield %o
  } : !aten.tensor<(s0)x4096xf32>
  func.return %y : !aten.tensor<(s0)x4096xf32>
}

// CHECK-BLESS
// CHECK: builtin.module {
// CHECK-NEXT:   kernel.func @softmax_0(%x: !kernel.buffer<f32, 4096*s0>, %y: !kernel.buffer<f32, 4096*s0>) symbols (s0) {
// CHECK-NEXT:     kernel.for i0 in 0 to s0 {
// CHECK-NEXT:       %r = kernel.reduce max i1 in 0 to 4096 {
// CHECK-NEXT:         %v = kernel.load %x[4096*i0 + i1]
// CHECK-NEXT:         kernel.yield %v
// CHECK-NEXT:       }
// CHECK-NEXT:       %e = kernel.local : !kernel.buffer<f32, 4096, local>
// CHECK-NEXT:       kernel.for i1 in 0 to 4096 {
// CHECK-NEXT:         %v_1 = kernel.load %x[4096*i0 + i1]
// CHECK-NEXT:         %d = arith.subf %v_1, %r : f32
// CHECK-NEXT:         %x1 = math.exp %d : f32
// CHECK-NEXT:         kernel.store %x1, %e[i1]
// CHECK-NEXT:         kernel.yield
// CHECK-NEXT:       }
// CHECK-NEXT:       %r_1 = kernel.reduce sum i1 in 0 to 4096 {
// CHECK-NEXT:         %v_2 = kernel.load %e[i1]
// CHECK-NEXT:         kernel.yield %v_2
// CHECK-NEXT:       }
// CHECK-NEXT:       kernel.for i1 in 0 to 4096 {
// CHECK-NEXT:         %v_3 = kernel.load %e[i1]
// CHECK-NEXT:         %q = arith.divf %v_3, %r_1 : f32
// CHECK-NEXT:         kernel.store %q, %y[4096*i0 + i1]
// CHECK-NEXT:         kernel.yield
// CHECK-NEXT:       }
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   host.func @softmax(%x: !aten.tensor<(s0)x4096xf32>) -> (!aten.tensor<(s0)x4096xf32>) symbols [#sym.symbol<s0, arg = 0, dim = 0>] {
// CHECK-NEXT:     %y = host.empty : !aten.tensor<(s0)x4096xf32>
// CHECK-NEXT:     host.launch @softmax_0(%x, %y) [s0]
// CHECK-NEXT:     host.return %y
// CHECK-NEXT:   }
// CHECK-NEXT: }

// -----

// An embedding: dynamic index, mask, check of the index; the table is column-major.

func.func @embedding(%w: !aten.tensor<10x8xf32, strides = [1, 10]>, %i: !aten.tensor<5xi64>) -> !aten.tensor<5x8xf32> attributes {symbols = []} {
  %y = loop.fusion (a0 in 5, a1 in 8) {
    %e = loop.generate (i0 in 5, i1 in 8) on (a0, a1) {
      %j = loop.load %i[i0]
      %n = loop.index 10
      %z = arith.constant 0.0 : f32
      %ok = arith.cmpi ult, %j, %n : i64
      loop.assert %ok, "index out of range in self" : IndexError
      %v = loop.load %w[d0, i1] (d0 = %j) if %ok else %z
      loop.yield %v
    } : !aten.tensor<5x8xf32>
    loop.yield %e
  } : !aten.tensor<5x8xf32>
  func.return %y : !aten.tensor<5x8xf32>
}

// CHECK-BLESS
// CHECK: builtin.module {
// CHECK-NEXT:   kernel.func @gather_0(%i: !kernel.buffer<i64, 5>, %w: !kernel.buffer<f32, 80>, %y: !kernel.buffer<f32, 40>) errors ["IndexError: index out of range in self"] {
// CHECK-NEXT:     kernel.for i0 in 0 to 5 {
// CHECK-NEXT:       kernel.for i1 in 0 to 8 {
// CHECK-NEXT:         %j = kernel.load %i[i0]
// CHECK-NEXT:         %n = kernel.index 10
// CHECK-NEXT:         %z = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:         %ok = arith.cmpi ult, %j, %n : i64
// CHECK-NEXT:         kernel.assert %ok, 1
// CHECK-NEXT:         %v = kernel.load %w[10*i1 + d0] (d0 = %j) if %ok else %z
// CHECK-NEXT:         kernel.store %v, %y[8*i0 + i1]
// CHECK-NEXT:         kernel.yield
// CHECK-NEXT:       }
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   host.func @embedding(%w: !aten.tensor<10x8xf32, strides = [1, 10]>, %i: !aten.tensor<5xi64>) -> (!aten.tensor<5x8xf32>) {
// CHECK-NEXT:     %y = host.empty : !aten.tensor<5x8xf32>
// CHECK-NEXT:     host.launch @gather_0(%i, %w, %y)
// CHECK-NEXT:     host.return %y
// CHECK-NEXT:   }
// CHECK-NEXT: }

// -----

// argmax over two axes: the loops nest, and the index is that of the whole domain. A value that is read inside and
// returned is stored and kept. A masked read of a scalar is a select.

func.func @argmax(%x: !aten.tensor<4x3x5xf32>) -> (!aten.tensor<4xf32>, !aten.tensor<4xi64>, !aten.tensor<4xf32>) attributes {symbols = []} {
  %v, %i, %t = loop.fusion (a0 in 4 | a1 in 3, a2 in 5) {
    %m, %k = loop.generate (i0 in 4) on (a0) {
      %a, %b = loop.reduce argmax (r0 in 3, r1 in 5) on (a1, a2) {
        %e = loop.load %x[i0, r0, r1]
        %p = loop.index 5*r0 + r1
        loop.yield %e, %p
      }
      loop.yield %a, %b
    } : !aten.tensor<4xf32>, !aten.tensor<4xi64>
    %u = loop.generate (i0 in 4) on (a0) {
      %j = loop.load %k[i0]
      %n = loop.index 7
      %z = arith.constant 0.0 : f32
      %low = arith.cmpi slt, %j, %n : i64
      %e = loop.load %m[i0] if %low else %z
      loop.yield %e
    } : !aten.tensor<4xf32>
    loop.yield %m, %k, %u
  } : !aten.tensor<4xf32>, !aten.tensor<4xi64>, !aten.tensor<4xf32>
  func.return %v, %i, %t : !aten.tensor<4xf32>, !aten.tensor<4xi64>, !aten.tensor<4xf32>
}

// CHECK-BLESS
// CHECK: builtin.module {
// CHECK-NEXT:   kernel.func @argmax_0(%x: !kernel.buffer<f32, 60>, %v: !kernel.buffer<f32, 4>, %i: !kernel.buffer<i64, 4>, %t: !kernel.buffer<f32, 4>) {
// CHECK-NEXT:     kernel.for i0 in 0 to 4 {
// CHECK-NEXT:       %a, %b = kernel.reduce argmax i1 in 0 to 3 {
// CHECK-NEXT:         %0, %1 = kernel.reduce argmax i2 in 0 to 5 {
// CHECK-NEXT:           %e = kernel.load %x[15*i0 + 5*i1 + i2]
// CHECK-NEXT:           %p = kernel.index 5*i1 + i2
// CHECK-NEXT:           kernel.yield %e, %p
// CHECK-NEXT:         }
// CHECK-NEXT:         kernel.yield %0, %1
// CHECK-NEXT:       }
// CHECK-NEXT:       kernel.store %a, %v[i0]
// CHECK-NEXT:       kernel.store %b, %i[i0]
// CHECK-NEXT:       %n = kernel.index 7
// CHECK-NEXT:       %z = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:       %low = arith.cmpi slt, %b, %n : i64
// CHECK-NEXT:       %e_1 = arith.select %low, %a, %z : f32
// CHECK-NEXT:       kernel.store %e_1, %t[i0]
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   host.func @argmax(%x: !aten.tensor<4x3x5xf32>) -> (!aten.tensor<4xf32>, !aten.tensor<4xi64>, !aten.tensor<4xf32>) {
// CHECK-NEXT:     %v = host.empty : !aten.tensor<4xf32>
// CHECK-NEXT:     %i = host.empty : !aten.tensor<4xi64>
// CHECK-NEXT:     %t = host.empty : !aten.tensor<4xf32>
// CHECK-NEXT:     host.launch @argmax_0(%x, %v, %i, %t)
// CHECK-NEXT:     host.return %v, %i, %t
// CHECK-NEXT:   }
// CHECK-NEXT: }

// -----

// A reduction with its own combination.

func.func @custom(%x: !aten.tensor<4x6xf32>) -> !aten.tensor<f32> attributes {symbols = []} {
  %y = loop.fusion (| a0 in 4, a1 in 6) {
    %m = loop.generate () {
      %one = arith.constant 1.0 : f32
      %r = loop.reduce custom init(%one) (r0 in 4, r1 in 6) on (a0, a1) {
        %e = loop.load %x[r0, r1]
        loop.yield %e
      } combine {
      ^bb0(%a: f32, %b: f32):
        %c = arith.mulf %a, %b : f32
        loop.yield %c
      }
      loop.yield %r
    } : !aten.tensor<f32>
    loop.yield %m
  } : !aten.tensor<f32>
  func.return %y : !aten.tensor<f32>
}

// CHECK-BLESS
// CHECK: builtin.module {
// CHECK-NEXT:   kernel.func @reduce_0(%x: !kernel.buffer<f32, 24>, %y: !kernel.buffer<f32, 1>) {
// CHECK-NEXT:     %one = arith.constant 1.000000e+00 : f32
// CHECK-NEXT:     %r = kernel.reduce custom init(%one) i0 in 0 to 4 {
// CHECK-NEXT:       %0 = kernel.reduce custom init(%one) i1 in 0 to 6 {
// CHECK-NEXT:         %e = kernel.load %x[6*i0 + i1]
// CHECK-NEXT:         kernel.yield %e
// CHECK-NEXT:       } combine {
// CHECK-NEXT:       ^bb0(%a: f32, %b: f32):
// CHECK-NEXT:         %c = arith.mulf %a, %b : f32
// CHECK-NEXT:         kernel.yield %c
// CHECK-NEXT:       }
// CHECK-NEXT:       kernel.yield %0
// CHECK-NEXT:     } combine {
// CHECK-NEXT:     ^bb0(%a_1: f32, %b_1: f32):
// CHECK-NEXT:       %c_1 = arith.mulf %a_1, %b_1 : f32
// CHECK-NEXT:       kernel.yield %c_1
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.store %r, %y[0]
// CHECK-NEXT:     kernel.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   host.func @custom(%x: !aten.tensor<4x6xf32>) -> (!aten.tensor<f32>) {
// CHECK-NEXT:     %y = host.empty : !aten.tensor<f32>
// CHECK-NEXT:     host.launch @reduce_0(%x, %y)
// CHECK-NEXT:     host.return %y
// CHECK-NEXT:   }
// CHECK-NEXT: }

// -----

// A cat is two scatters into one buffer, in one launch; nothing is copied into memory that is empty.

func.func @cat(%x: !aten.tensor<4x3xf32>, %y: !aten.tensor<2x3xf32>) -> !aten.tensor<6x3xf32> attributes {symbols = []} {
  %d = loop.empty : !aten.tensor<6x3xf32>
  %r = loop.fusion () {
    %s = loop.scatter set (i0 in 4, i1 in 3) into %d[i0, i1] unique {
      %v = loop.load %x[i0, i1]
      loop.yield %v
    } : !aten.tensor<6x3xf32>
    %t = loop.scatter set (i0 in 2, i1 in 3) into %s[i0 + 4, i1] unique in_place {
      %v = loop.load %y[i0, i1]
      loop.yield %v
    } : !aten.tensor<6x3xf32>
    loop.yield %t
  } : !aten.tensor<6x3xf32>
  func.return %r : !aten.tensor<6x3xf32>
}

// CHECK-BLESS
// CHECK: builtin.module {
// CHECK-NEXT:   kernel.func @copy_0(%x: !kernel.buffer<f32, 12>, %r: !kernel.buffer<f32, 18>, %y: !kernel.buffer<f32, 6>) {
// CHECK-NEXT:     kernel.for j0 in 0 to 4 {
// CHECK-NEXT:       kernel.for j1 in 0 to 3 {
// CHECK-NEXT:         %v = kernel.load %x[3*j0 + j1]
// CHECK-NEXT:         kernel.store %v, %r[3*j0 + j1]
// CHECK-NEXT:         kernel.yield
// CHECK-NEXT:       }
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.for j0 in 0 to 2 {
// CHECK-NEXT:       kernel.for j1 in 0 to 3 {
// CHECK-NEXT:         %v_1 = kernel.load %y[3*j0 + j1]
// CHECK-NEXT:         kernel.store %v_1, %r[3*j0 + j1 + 12]
// CHECK-NEXT:         kernel.yield
// CHECK-NEXT:       }
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   host.func @cat(%x: !aten.tensor<4x3xf32>, %y: !aten.tensor<2x3xf32>) -> (!aten.tensor<6x3xf32>) {
// CHECK-NEXT:     %r = host.empty : !aten.tensor<6x3xf32>
// CHECK-NEXT:     host.launch @copy_0(%x, %r, %y)
// CHECK-NEXT:     host.return %r
// CHECK-NEXT:   }
// CHECK-NEXT: }

// -----

// Scatters that may meet: sums are atomic, the last of two sets wins. The first is in place, the second works on a copy.

func.func @meet(%x: !aten.tensor<10xf32>, %i: !aten.tensor<5xi64>, %k: !aten.tensor<5xi1>) -> (!aten.tensor<10xf32>, !aten.tensor<10xf32>) attributes {symbols = []} {
  %a, %b = loop.fusion (a0 in 5) {
    %s = loop.scatter set (i0 in 5) into %x[d0] masked on (a0) {
      %j = loop.load %i[i0]
      %m = loop.load %k[i0]
      %c = arith.constant 1.0 : f32
      loop.yield %c, %j, %m
    } : !aten.tensor<10xf32>
    %t = loop.scatter add (i0 in 5) into %x[d0] in_place on (a0) {
      %j = loop.load %i[i0]
      %c = arith.constant 1.0 : f32
      loop.yield %c, %j
    } : !aten.tensor<10xf32>
    loop.yield %s, %t
  } : !aten.tensor<10xf32>, !aten.tensor<10xf32>
  func.return %a, %b : !aten.tensor<10xf32>, !aten.tensor<10xf32>
}

// CHECK-BLESS
// CHECK: builtin.module {
// CHECK-NEXT:   kernel.func @scatter_0(%i: !kernel.buffer<i64, 5>, %k: !kernel.buffer<i1, 5>, %x: !kernel.buffer<f32, 10>, %x_1: !kernel.buffer<f32, 10>) {
// CHECK-NEXT:     kernel.for i0 in 0 to 5 {
// CHECK-NEXT:       %j = kernel.load %i[i0]
// CHECK-NEXT:       %m = kernel.load %k[i0]
// CHECK-NEXT:       %c = arith.constant 1.000000e+00 : f32
// CHECK-NEXT:       kernel.store ordered %c, %x[d0] (d0 = %j) if %m
// CHECK-NEXT:       %j_1 = kernel.load %i[i0]
// CHECK-NEXT:       %c_1 = arith.constant 1.000000e+00 : f32
// CHECK-NEXT:       kernel.store add atomic %c_1, %x_1[d0] (d0 = %j_1)
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   host.func @meet(%x: !aten.tensor<10xf32>, %i: !aten.tensor<5xi64>, %k: !aten.tensor<5xi1>) -> (!aten.tensor<10xf32>, !aten.tensor<10xf32>) {
// CHECK-NEXT:     %a = host.empty : !aten.tensor<10xf32>
// CHECK-NEXT:     host.copy %x to %a
// CHECK-NEXT:     host.launch @scatter_0(%i, %k, %a, %x)
// CHECK-NEXT:     host.return %a, %x
// CHECK-NEXT:   }
// CHECK-NEXT: }

// -----

// A scan; its running values are read by another member, and the identity of a custom one moves in.

func.func @scan(%x: !aten.tensor<4x5x6xf32>) -> !aten.tensor<4x5x6xf32> attributes {symbols = []} {
  %zero = arith.constant 0.0 : f32
  %y = loop.fusion (a0 in 4 | a1 in 5, a2 in 6) {
    %c = loop.scan custom init(%zero) (i0 in 4, i1 in 5, i2 in 6) along i1 on (a0, a1, a2) {
      %v = loop.load %x[i0, i1, i2]
      loop.yield %v
    } combine {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      loop.yield %s
    } : !aten.tensor<4x5x6xf32>
    %d = loop.generate (i0 in 4, i1 in 5, i2 in 6) on (a0, a1, a2) {
      %v = loop.load %c[i0, i1, i2]
      %w = math.absf %v : f32
      loop.yield %w
    } : !aten.tensor<4x5x6xf32>
    loop.yield %d
  } : !aten.tensor<4x5x6xf32>
  func.return %y : !aten.tensor<4x5x6xf32>
}

// CHECK-BLESS
// CHECK: builtin.module {
// CHECK-NEXT:   kernel.func @scan_abs_0(%x: !kernel.buffer<f32, 120>, %y: !kernel.buffer<f32, 120>) {
// CHECK-NEXT:     kernel.for i0 in 0 to 4 {
// CHECK-NEXT:       %c = kernel.local : !kernel.buffer<f32, 30, local>
// CHECK-NEXT:       kernel.for i2 in 0 to 6 {
// CHECK-NEXT:         %zero = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:         kernel.scan custom init(%zero) i1 in 0 to 5 {
// CHECK-NEXT:           %v = kernel.load %x[30*i0 + 6*i1 + i2]
// CHECK-NEXT:           kernel.yield %v
// CHECK-NEXT:         } then {
// CHECK-NEXT:         ^bb0(%0: f32):
// CHECK-NEXT:           kernel.store %0, %c[6*i1 + i2]
// CHECK-NEXT:           kernel.yield
// CHECK-NEXT:         } combine {
// CHECK-NEXT:         ^bb0(%a: f32, %b: f32):
// CHECK-NEXT:           %s = arith.addf %a, %b : f32
// CHECK-NEXT:           kernel.yield %s
// CHECK-NEXT:         }
// CHECK-NEXT:         kernel.yield
// CHECK-NEXT:       }
// CHECK-NEXT:       kernel.for i1 in 0 to 5 {
// CHECK-NEXT:         kernel.for i2 in 0 to 6 {
// CHECK-NEXT:           %v_1 = kernel.load %c[6*i1 + i2]
// CHECK-NEXT:           %w = math.absf %v_1 : f32
// CHECK-NEXT:           kernel.store %w, %y[30*i0 + 6*i1 + i2]
// CHECK-NEXT:           kernel.yield
// CHECK-NEXT:         }
// CHECK-NEXT:         kernel.yield
// CHECK-NEXT:       }
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   host.func @scan(%x: !aten.tensor<4x5x6xf32>) -> (!aten.tensor<4x5x6xf32>) {
// CHECK-NEXT:     %y = host.empty : !aten.tensor<4x5x6xf32>
// CHECK-NEXT:     host.launch @scan_abs_0(%x, %y)
// CHECK-NEXT:     host.return %y
// CHECK-NEXT:   }
// CHECK-NEXT: }

// -----

// Horizontal: members without shared axes, one of them over an empty domain, one without dimensions.

func.func @horizontal(%x: !aten.tensor<0x3xf32>, %y: !aten.tensor<f32>) -> (!aten.tensor<0x3xf32>, !aten.tensor<f32>) attributes {symbols = []} {
  %a, %b = loop.fusion () {
    %g = loop.generate (i0 in 0, i1 in 3) {
      %v = loop.load %x[i0, i1]
      loop.yield %v
    } : !aten.tensor<0x3xf32>
    %h = loop.generate () {
      %v = loop.load %y[]
      %w = arith.negf %v : f32
      loop.yield %w
    } : !aten.tensor<f32>
    loop.yield %g, %h
  } : !aten.tensor<0x3xf32>, !aten.tensor<f32>
  func.return %a, %b : !aten.tensor<0x3xf32>, !aten.tensor<f32>
}

// CHECK-BLESS
// CHECK: builtin.module {
// CHECK-NEXT:   kernel.func @neg_0(%x: !kernel.buffer<f32, 0>, %y: !kernel.buffer<f32, 1>, %a: !kernel.buffer<f32, 0>, %b: !kernel.buffer<f32, 1>) {
// CHECK-NEXT:     kernel.for j0 in 0 to 0 {
// CHECK-NEXT:       kernel.for j1 in 0 to 3 {
// CHECK-NEXT:         %v = kernel.load %x[3*j0 + j1]
// CHECK-NEXT:         kernel.store %v, %a[3*j0 + j1]
// CHECK-NEXT:         kernel.yield
// CHECK-NEXT:       }
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     %v_1 = kernel.load %y[0]
// CHECK-NEXT:     %w = arith.negf %v_1 : f32
// CHECK-NEXT:     kernel.store %w, %b[0]
// CHECK-NEXT:     kernel.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   host.func @horizontal(%x: !aten.tensor<0x3xf32>, %y: !aten.tensor<f32>) -> (!aten.tensor<0x3xf32>, !aten.tensor<f32>) {
// CHECK-NEXT:     %a = host.empty : !aten.tensor<0x3xf32>
// CHECK-NEXT:     %b = host.empty : !aten.tensor<f32>
// CHECK-NEXT:     host.launch @neg_0(%x, %y, %a, %b)
// CHECK-NEXT:     host.return %a, %b
// CHECK-NEXT:   }
// CHECK-NEXT: }

// -----

// A view that is left becomes a strided view of its source; an update of an argument a copy. Symbols that look like
// axes are passed over.

func.func @views(%x: !aten.tensor<(i0)x4x6xf32>) -> !aten.tensor<(i0)x3x1xf32, strides = [24, 2, 7]> attributes {symbols = [#sym.symbol<i0, arg = 0, dim = 0>]} {
  %y = loop.fusion (a0 in i0, a1 in 4, a2 in 6) {
    %e = loop.generate (i1 in i0, i2 in 4, i3 in 6) on (a0, a1, a2) {
      %v = loop.load %x[i1, i2, i3]
      %w = math.exp %v : f32
      loop.yield %w
    } : !aten.tensor<(i0)x4x6xf32>
    loop.yield %e
  } : !aten.tensor<(i0)x4x6xf32>
  %t = loop.view %y[i1, 1, 2*i2] (i1 in i0, i2 in 3, i3 in 1) : !aten.tensor<(i0)x3x1xf32, strides = [24, 2, 7]>
  func.return %t : !aten.tensor<(i0)x3x1xf32, strides = [24, 2, 7]>
}

// CHECK-BLESS
// CHECK: builtin.module {
// CHECK-NEXT:   kernel.func @exp_0(%x: !kernel.buffer<f32, 24*i0>, %y: !kernel.buffer<f32, 24*i0>) symbols (i0) {
// CHECK-NEXT:     kernel.for i1 in 0 to i0 {
// CHECK-NEXT:       kernel.for i2 in 0 to 4 {
// CHECK-NEXT:         kernel.for i3 in 0 to 6 {
// CHECK-NEXT:           %v = kernel.load %x[24*i1 + 6*i2 + i3]
// CHECK-NEXT:           %w = math.exp %v : f32
// CHECK-NEXT:           kernel.store %w, %y[24*i1 + 6*i2 + i3]
// CHECK-NEXT:           kernel.yield
// CHECK-NEXT:         }
// CHECK-NEXT:         kernel.yield
// CHECK-NEXT:       }
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   host.func @views(%x: !aten.tensor<(i0)x4x6xf32>) -> (!aten.tensor<(i0)x3x1xf32, strides = [24, 2, 7]>) symbols [#sym.symbol<i0, arg = 0, dim = 0>] {
// CHECK-NEXT:     %y = host.empty : !aten.tensor<(i0)x4x6xf32>
// CHECK-NEXT:     host.launch @exp_0(%x, %y) [i0]
// CHECK-NEXT:     %t = host.view %y offset 6 : !aten.tensor<(i0)x3x1xf32, strides = [24, 2, 7]>
// CHECK-NEXT:     host.return %t
// CHECK-NEXT:   }
// CHECK-NEXT: }

// -----

// Updates of inputs: one that the kernel wrote in place already, and one that is left to a copy.

func.func @update(%p: !aten.tensor<4xf32>, %q: !aten.tensor<4xf32>) attributes {symbols = []} {
  %u, %v = loop.fusion (a0 in 4) {
    %g = loop.scatter set (i0 in 4) into %p[i0] unique in_place on (a0) {
      %a = loop.load %p[i0]
      %b = arith.addf %a, %a : f32
      loop.yield %b
    } : !aten.tensor<4xf32>
    %h = loop.generate (i0 in 4) on (a0) {
      %a = loop.load %q[i0]
      %b = arith.mulf %a, %a : f32
      loop.yield %b
    } : !aten.tensor<4xf32>
    loop.yield %g, %h
  } : !aten.tensor<4xf32>, !aten.tensor<4xf32>
  %c = aten.copy_(%p, %u) : !aten.tensor<4xf32>
  %d = aten.copy_(%q, %v) : !aten.tensor<4xf32>
  func.return
}

// CHECK-BLESS
// CHECK: builtin.module {
// CHECK-NEXT:   kernel.func @add_mul_0(%p: !kernel.buffer<f32, 4>, %q: !kernel.buffer<f32, 4>, %v: !kernel.buffer<f32, 4>) {
// CHECK-NEXT:     kernel.for i0 in 0 to 4 {
// CHECK-NEXT:       %a = kernel.load %p[i0]
// CHECK-NEXT:       %b = arith.addf %a, %a : f32
// CHECK-NEXT:       kernel.store %b, %p[i0]
// CHECK-NEXT:       %a_1 = kernel.load %q[i0]
// CHECK-NEXT:       %b_1 = arith.mulf %a_1, %a_1 : f32
// CHECK-NEXT:       kernel.store %b_1, %v[i0]
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   host.func @update(%p: !aten.tensor<4xf32>, %q: !aten.tensor<4xf32>) {
// CHECK-NEXT:     %v = host.empty : !aten.tensor<4xf32>
// CHECK-NEXT:     host.launch @add_mul_0(%p, %q, %v)
// CHECK-NEXT:     host.copy %v to %q
// CHECK-NEXT:     host.return
// CHECK-NEXT:   }
// CHECK-NEXT: }

// -----

// An ATen call between kernels stays as it is; a quotient and a remainder meet in the linear index.

func.func @call(%x: !aten.tensor<6x4xf32>, %w: !aten.tensor<4x6xf32>) -> !aten.tensor<6x6xf32> attributes {symbols = []} {
  %y = loop.fusion (a0 in 24) {
    %g = loop.generate (i0 in 24) on (a0) {
      %a = loop.load %x[i0 floordiv 4, i0 mod 4]
      %b = math.tanh %a : f32
      loop.yield %b
    } : !aten.tensor<24xf32>
    loop.yield %g
  } : !aten.tensor<24xf32>
  %v = loop.view %y[4*i0 + i1] (i0 in 6, i1 in 4) : !aten.tensor<6x4xf32>
  %m = aten.mm(%v, %w) : !aten.tensor<6x6xf32>
  func.return %m : !aten.tensor<6x6xf32>
}

// CHECK-BLESS
// CHECK: builtin.module {
// CHECK-NEXT:   kernel.func @tanh_0(%x: !kernel.buffer<f32, 24>, %y: !kernel.buffer<f32, 24>) {
// CHECK-NEXT:     kernel.for i0 in 0 to 24 {
// CHECK-NEXT:       %a = kernel.load %x[i0]
// CHECK-NEXT:       %b = math.tanh %a : f32
// CHECK-NEXT:       kernel.store %b, %y[i0]
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   host.func @call(%x: !aten.tensor<6x4xf32>, %w: !aten.tensor<4x6xf32>) -> (!aten.tensor<6x6xf32>) {
// CHECK-NEXT:     %y = host.empty : !aten.tensor<24xf32>
// CHECK-NEXT:     host.launch @tanh_0(%x, %y)
// CHECK-NEXT:     %v = host.view %y offset 0 : !aten.tensor<6x4xf32>
// CHECK-NEXT:     %m = aten.mm(%v, %w) : !aten.tensor<6x6xf32>
// CHECK-NEXT:     host.return %m
// CHECK-NEXT:   }
// CHECK-NEXT: }

// -----

// Accesses with a checked index are masked by the check: the error is raised when the kernel is done. An index that
// nothing checks is followed as it is. A check in a reduction protects nothing behind it.

func.func @guards(%w: !aten.tensor<10x8xf32>, %i: !aten.tensor<5xi64>, %j: !aten.tensor<5xi64>, %d: !aten.tensor<10xf32>) -> (!aten.tensor<5xf32>, !aten.tensor<10xf32>) attributes {symbols = []} {
  %y, %z = loop.fusion (a0 in 5 | a1 in 8) {
    %e = loop.generate (i0 in 5) on (a0) {
      %k = loop.load %i[i0]
      %n = loop.index 10
      %s = loop.reduce sum (r0 in 8) on (a1) {
        %ok = arith.cmpi ult, %k, %n : i64
        loop.assert %ok, "index out of range" : IndexError
        %l = loop.load %j[i0]
        %u = loop.load %w[d0, r0] (d0 = %l)
        %v = loop.load %w[d0, r0] (d0 = %k)
        %t = arith.addf %u, %v : f32
        loop.yield %t
      }
      %v = loop.load %w[d0, 0] (d0 = %k)
      %t = arith.addf %s, %v : f32
      loop.yield %t
    } : !aten.tensor<5xf32>
    %f = loop.scatter add (i0 in 5) into %d[d0] masked in_place on (a0) {
      %k = loop.load %j[i0]
      %n = loop.index 10
      %z = loop.index 0
      %ok = arith.cmpi slt, %k, %n : i64
      loop.assert %ok, "index out of range" : IndexError
      %positive = arith.cmpi sgt, %k, %z : i64
      %c = arith.constant 1.0 : f32
      loop.yield %c, %k, %positive
    } : !aten.tensor<10xf32>
    loop.yield %e, %f
  } : !aten.tensor<5xf32>, !aten.tensor<10xf32>
  func.return %y, %z : !aten.tensor<5xf32>, !aten.tensor<10xf32>
}

// CHECK-BLESS
// CHECK: builtin.module {
// CHECK-NEXT:   kernel.func @gather_sum_scatter_0(%i: !kernel.buffer<i64, 5>, %j: !kernel.buffer<i64, 5>, %w: !kernel.buffer<f32, 80>, %d: !kernel.buffer<f32, 10>, %y: !kernel.buffer<f32, 5>) errors ["IndexError: index out of range"] {
// CHECK-NEXT:     kernel.for i0 in 0 to 5 {
// CHECK-NEXT:       %k = kernel.load %i[i0]
// CHECK-NEXT:       %n = kernel.index 10
// CHECK-NEXT:       %s = kernel.reduce sum i1 in 0 to 8 {
// CHECK-NEXT:         %ok = arith.cmpi ult, %k, %n : i64
// CHECK-NEXT:         kernel.assert %ok, 1
// CHECK-NEXT:         %l = kernel.load %j[i0]
// CHECK-NEXT:         %u = kernel.load %w[8*d0 + i1] (d0 = %l)
// CHECK-NEXT:         %0 = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:         %v = kernel.load %w[8*d0 + i1] (d0 = %k) if %ok else %0
// CHECK-NEXT:         %t = arith.addf %u, %v : f32
// CHECK-NEXT:         kernel.yield %t
// CHECK-NEXT:       }
// CHECK-NEXT:       %v_1 = kernel.load %w[8*d0] (d0 = %k)
// CHECK-NEXT:       %t_1 = arith.addf %s, %v_1 : f32
// CHECK-NEXT:       kernel.store %t_1, %y[i0]
// CHECK-NEXT:       %k_1 = kernel.load %j[i0]
// CHECK-NEXT:       %n_1 = kernel.index 10
// CHECK-NEXT:       %z = kernel.index 0
// CHECK-NEXT:       %ok_1 = arith.cmpi slt, %k_1, %n_1 : i64
// CHECK-NEXT:       kernel.assert %ok_1, 1
// CHECK-NEXT:       %positive = arith.cmpi sgt, %k_1, %z : i64
// CHECK-NEXT:       %c = arith.constant 1.000000e+00 : f32
// CHECK-NEXT:       %1 = arith.andi %positive, %ok_1 : i1
// CHECK-NEXT:       kernel.store add atomic %c, %d[d0] (d0 = %k_1) if %1
// CHECK-NEXT:       kernel.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     kernel.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   host.func @guards(%w: !aten.tensor<10x8xf32>, %i: !aten.tensor<5xi64>, %j: !aten.tensor<5xi64>, %d: !aten.tensor<10xf32>) -> (!aten.tensor<5xf32>, !aten.tensor<10xf32>) {
// CHECK-NEXT:     %y = host.empty : !aten.tensor<5xf32>
// CHECK-NEXT:     host.launch @gather_sum_scatter_0(%i, %j, %w, %d, %y)
// CHECK-NEXT:     host.return %y, %d
// CHECK-NEXT:   }
// CHECK-NEXT: }

// -----

// What is copied is repeated along the dimensions that it lacks.

func.func @repeated(%x: !aten.tensor<4x3x2xf32>, %y: !aten.tensor<3x1xf32>) {
  %c = aten.copy_(%x, %y) : !aten.tensor<4x3x2xf32>
  func.return
}

// CHECK-LABEL: host.func @repeated
// CHECK-NEXT:     %0 = host.view %y offset 0 : !aten.tensor<4x3x2xf32, strides = [0, 1, 0]>
// CHECK-NEXT:     host.copy %0 to %x
