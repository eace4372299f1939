// RUN: inductile-opt %s | inductile-opt - | filecheck %s
// Text in is text out, and what is printed parses back to the same text.

// RUN: inductile-opt %s --print-op-generic | inductile-opt - | filecheck %s
func.func @forward(%x: !aten.tensor<(s0)x4096xf32>) -> !aten.tensor<(s0)x4096xf32> attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0, min = 2>]} {
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
func.func @misc(%x: !aten.tensor<4x6xui8, strides = [1, 4]>, %i: !aten.tensor<5xi64>, %w: !aten.tensor<0x(2*s0 + 1)xbf16, device = "cuda:0">, %size: index) attributes {symbols = [#sym.symbol<s0, arg = 3>]} {
  %t = loop.view %x[i1, i0] (i0 in 6, i1 in 4) : !aten.tensor<6x4xui8>
  %g = loop.generate (i0 in 5, i1 in 6) {
    %j = loop.load %i[i0]
    %z = arith.constant 0 : i8
    %n = loop.index 4
    %ok = arith.cmpi slt, %j, %n : i64
    loop.assert %ok, "index out of range" : IndexError
    %v = loop.load %x[d0, i1] (d0 = %j) if %ok else %z
    %f = scalar.cast %v : ui8 to f32
    %q = scalar.isnan %f : f32
    %h = scalar.fmod %f, %f : f32
    loop.yield %h
  } : !aten.tensor<5x6xf32>
  %d = loop.empty : !aten.tensor<10x6xf32>
  %s = loop.scatter set (i0 in 5, i1 in 6) into %d[i0 + 4, d0] unique {
    %v = loop.load %g[i0, i1]
    %k = loop.index i1
    loop.yield %v, %k
  } : !aten.tensor<10x6xf32>
  %c = loop.scan sum (i0 in 10, i1 in 6) along i1 {
    %v = loop.load %s[i0, i1]
    loop.yield %v
  } : !aten.tensor<10x6xf32>
  %n = sym.int 2*s0 + 1
  func.return
}

func.func @combiners(%x: !aten.tensor<3x(s0)xf32>) -> (!aten.tensor<3xf32>, !aten.tensor<3xi64>, !aten.tensor<3xf32>) attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 1, min = 2, max = 64, divisor = 2, hint = 8>]} {
  %v, %i = loop.generate (i0 in 3) {
    %m, %k = loop.reduce argmax (r0 in s0) {
      %e = loop.load %x[i0, r0]
      %p = loop.index r0
      loop.yield %e, %p
    }
    loop.yield %m, %k
  } : !aten.tensor<3xf32>, !aten.tensor<3xi64>
  %w = loop.generate (i0 in 3) {
    %one = arith.constant 1.0 : f32
    %p, %q = loop.reduce [prod, max] (r0 in s0 floordiv 2) {
      %e = loop.load %x[i0, 2*r0 + 1]
      loop.yield %e, %e
    }
    %c = loop.reduce custom init(%one) (r1 in s0) {
      %e = loop.load %x[i0, r1]
      loop.yield %e
    } combine {
    ^bb0(%a: f32, %b: f32):
      %ab = arith.mulf %a, %b : f32
      loop.yield %ab
    }
    %s = arith.addf %p, %c : f32
    loop.yield %s
  } : !aten.tensor<3xf32>
  func.return %v, %i, %w : !aten.tensor<3xf32>, !aten.tensor<3xi64>, !aten.tensor<3xf32>
}
// CHECK-BLESS
// CHECK: builtin.module {
// CHECK-NEXT:   func.func @forward(%x: !aten.tensor<(s0)x4096xf32>) -> !aten.tensor<(s0)x4096xf32> attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0, min = 2>]} {
// CHECK-NEXT:     %y = loop.fusion (a0 in s0 | a1 in 4096) {
// CHECK-NEXT:       %m = loop.generate (i0 in s0) on (a0) {
// CHECK-NEXT:         %r = loop.reduce max (r0 in 4096) on (a1) {
// CHECK-NEXT:           %v = loop.load %x[i0, r0]
// CHECK-NEXT:           loop.yield %v
// CHECK-NEXT:         }
// CHECK-NEXT:         loop.yield %r
// CHECK-NEXT:       } : !aten.tensor<(s0)xf32>
// CHECK-NEXT:       %e = loop.generate (i0 in s0, i1 in 4096) on (a0, a1) {
// CHECK-NEXT:         %v_1 = loop.load %x[i0, i1]
// CHECK-NEXT:         %mm = loop.load %m[i0]
// CHECK-NEXT:         %d = arith.subf %v_1, %mm : f32
// CHECK-NEXT:         %x1 = math.exp %d : f32
// CHECK-NEXT:         loop.yield %x1
// CHECK-NEXT:       } : !aten.tensor<(s0)x4096xf32>
// CHECK-NEXT:       %s = loop.generate (i0 in s0) on (a0) {
// CHECK-NEXT:         %r_1 = loop.reduce sum (r0 in 4096) on (a1) {
// CHECK-NEXT:           %v_2 = loop.load %e[i0, r0]
// CHECK-NEXT:           loop.yield %v_2
// CHECK-NEXT:         }
// CHECK-NEXT:         loop.yield %r_1
// CHECK-NEXT:       } : !aten.tensor<(s0)xf32>
// CHECK-NEXT:       %o = loop.generate (i0 in s0, i1 in 4096) on (a0, a1) {
// CHECK-NEXT:         %v_3 = loop.load %e[i0, i1]
// CHECK-NEXT:         %ss = loop.load %s[i0]
// CHECK-NEXT:         %q = arith.divf %v_3, %ss : f32
// CHECK-NEXT:         loop.yield %q
// CHECK-NEXT:       } : !aten.tensor<(s0)x4096xf32>
// CHECK-NEXT:       loop.yield %o
// CHECK-NEXT:     } : !aten.tensor<(s0)x4096xf32>
// CHECK-NEXT:     func.return %y : !aten.tensor<(s0)x4096xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @misc(%x: !aten.tensor<4x6xui8, strides = [1, 4]>, %i: !aten.tensor<5xi64>, %w: !aten.tensor<0x(2*s0 + 1)xbf16, device = "cuda:0">, %size: index) attributes {symbols = [#sym.symbol<s0, arg = 3>]} {
// CHECK-NEXT:     %t = loop.view %x[i1, i0] (i0 in 6, i1 in 4) : !aten.tensor<6x4xui8>
// CHECK-NEXT:     %g = loop.generate (i0 in 5, i1 in 6) {
// CHECK-NEXT:       %j = loop.load %i[i0]
// CHECK-NEXT:       %z = arith.constant 0 : i8
// CHECK-NEXT:       %n = loop.index 4
// CHECK-NEXT:       %ok = arith.cmpi slt, %j, %n : i64
// CHECK-NEXT:       loop.assert %ok, "index out of range" : IndexError
// CHECK-NEXT:       %v = loop.load %x[d0, i1] (d0 = %j) if %ok else %z
// CHECK-NEXT:       %f = scalar.cast %v : ui8 to f32
// CHECK-NEXT:       %q = scalar.isnan %f : f32
// CHECK-NEXT:       %h = scalar.fmod %f, %f : f32
// CHECK-NEXT:       loop.yield %h
// CHECK-NEXT:     } : !aten.tensor<5x6xf32>
// CHECK-NEXT:     %d = loop.empty : !aten.tensor<10x6xf32>
// CHECK-NEXT:     %s = loop.scatter set (i0 in 5, i1 in 6) into %d[i0 + 4, d0] unique {
// CHECK-NEXT:       %v_1 = loop.load %g[i0, i1]
// CHECK-NEXT:       %k = loop.index i1
// CHECK-NEXT:       loop.yield %v_1, %k
// CHECK-NEXT:     } : !aten.tensor<10x6xf32>
// CHECK-NEXT:     %c = loop.scan sum (i0 in 10, i1 in 6) along i1 {
// CHECK-NEXT:       %v_2 = loop.load %s[i0, i1]
// CHECK-NEXT:       loop.yield %v_2
// CHECK-NEXT:     } : !aten.tensor<10x6xf32>
// CHECK-NEXT:     %n_1 = sym.int 2*s0 + 1
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @combiners(%x: !aten.tensor<3x(s0)xf32>) -> (!aten.tensor<3xf32>, !aten.tensor<3xi64>, !aten.tensor<3xf32>) attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 1, min = 2, max = 64, divisor = 2, hint = 8>]} {
// CHECK-NEXT:     %v, %i = loop.generate (i0 in 3) {
// CHECK-NEXT:       %m, %k = loop.reduce argmax (r0 in s0) {
// CHECK-NEXT:         %e = loop.load %x[i0, r0]
// CHECK-NEXT:         %p = loop.index r0
// CHECK-NEXT:         loop.yield %e, %p
// CHECK-NEXT:       }
// CHECK-NEXT:       loop.yield %m, %k
// CHECK-NEXT:     } : !aten.tensor<3xf32>, !aten.tensor<3xi64>
// CHECK-NEXT:     %w = loop.generate (i0 in 3) {
// CHECK-NEXT:       %one = arith.constant 1.000000e+00 : f32
// CHECK-NEXT:       %p_1, %q = loop.reduce [prod, max] (r0 in s0 floordiv 2) {
// CHECK-NEXT:         %e_1 = loop.load %x[i0, 2*r0 + 1]
// CHECK-NEXT:         loop.yield %e_1, %e_1
// CHECK-NEXT:       }
// CHECK-NEXT:       %c = loop.reduce custom init(%one) (r1 in s0) {
// CHECK-NEXT:         %e_2 = loop.load %x[i0, r1]
// CHECK-NEXT:         loop.yield %e_2
// CHECK-NEXT:       } combine {
// CHECK-NEXT:       ^bb0(%a: f32, %b: f32):
// CHECK-NEXT:         %ab = arith.mulf %a, %b : f32
// CHECK-NEXT:         loop.yield %ab
// CHECK-NEXT:       }
// CHECK-NEXT:       %s = arith.addf %p_1, %c : f32
// CHECK-NEXT:       loop.yield %s
// CHECK-NEXT:     } : !aten.tensor<3xf32>
// CHECK-NEXT:     func.return %v, %i, %w : !aten.tensor<3xf32>, !aten.tensor<3xi64>, !aten.tensor<3xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
