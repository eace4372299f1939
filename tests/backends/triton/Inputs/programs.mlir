// Softmax of rows that are too long for registers: the exponentials are computed again.

func.func @long_softmax(%x: !aten.tensor<2x20000xf32>) -> !aten.tensor<2x20000xf32> attributes {symbols = []} {
  %y = loop.fusion (a0 in 2 | a1 in 20000) {
    %m = loop.generate (i0 in 2) on (a0) {
      %r = loop.reduce max (r0 in 20000) on (a1) {
        %v = loop.load %x[i0, r0]
        loop.yield %v
      }
      loop.yield %r
    } : !aten.tensor<2xf32>
    %e = loop.generate (i0 in 2, i1 in 20000) on (a0, a1) {
      %v = loop.load %x[i0, i1]
      %mm = loop.load %m[i0]
      %d = arith.subf %v, %mm : f32
      %w = math.exp %d : f32
      loop.yield %w
    } : !aten.tensor<2x20000xf32>
    %s = loop.generate (i0 in 2) on (a0) {
      %r = loop.reduce sum (r0 in 20000) on (a1) {
        %v = loop.load %e[i0, r0]
        loop.yield %v
      }
      loop.yield %r
    } : !aten.tensor<2xf32>
    %o = loop.generate (i0 in 2, i1 in 20000) on (a0, a1) {
      %v = loop.load %e[i0, i1]
      %ss = loop.load %s[i0]
      %q = arith.divf %v, %ss : f32
      loop.yield %q
    } : !aten.tensor<2x20000xf32>
    loop.yield %o
  } : !aten.tensor<2x20000xf32>
  func.return %y : !aten.tensor<2x20000xf32>
}

// -----

// Rows of unknown length, normalised by the largest of their running sums: the sums go through memory.

func.func @cumulative_share(%x: !aten.tensor<3x(s0)xf32>) -> !aten.tensor<3x(s0)xf32> attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 1>]} {
  %y = loop.fusion (a0 in 3 | a1 in s0) {
    %c = loop.scan sum (i0 in 3, i1 in s0) along i1 on (a0, a1) {
      %v = loop.load %x[i0, i1]
      %w = math.absf %v : f32
      loop.yield %w
    } : !aten.tensor<3x(s0)xf32>
    %m = loop.generate (i0 in 3) on (a0) {
      %r = loop.reduce max (r0 in s0) on (a1) {
        %v = loop.load %c[i0, r0]
        loop.yield %v
      }
      loop.yield %r
    } : !aten.tensor<3xf32>
    %o = loop.generate (i0 in 3, i1 in s0) on (a0, a1) {
      %v = loop.load %c[i0, i1]
      %t = loop.load %m[i0]
      %q = arith.divf %v, %t : f32
      loop.yield %q
    } : !aten.tensor<3x(s0)xf32>
    loop.yield %o
  } : !aten.tensor<3x(s0)xf32>
  func.return %y : !aten.tensor<3x(s0)xf32>
}

// -----

// Group norm over channels and pixels with a weight a channel: two inner axes that do not collapse.

func.func @group_norm(%x: !aten.tensor<2x6x35xf32>, %w: !aten.tensor<6xf32>) -> !aten.tensor<2x6x35xf32> attributes {symbols = []} {
  %y = loop.fusion (a0 in 2 | a1 in 6, a2 in 35) {
    %m = loop.generate (i0 in 2) on (a0) {
      %s = loop.reduce sum (r0 in 6, r1 in 35) on (a1, a2) {
        %v = loop.load %x[i0, r0, r1]
        loop.yield %v
      }
      %n = arith.constant 210.0 : f32
      %q = arith.divf %s, %n : f32
      loop.yield %q
    } : !aten.tensor<2xf32>
    %d = loop.generate (i0 in 2, i1 in 6, i2 in 35) on (a0, a1, a2) {
      %v = loop.load %x[i0, i1, i2]
      %mm = loop.load %m[i0]
      %c = arith.subf %v, %mm : f32
      loop.yield %c
    } : !aten.tensor<2x6x35xf32>
    %k = loop.generate (i0 in 2) on (a0) {
      %s = loop.reduce sum (r0 in 6, r1 in 35) on (a1, a2) {
        %v = loop.load %d[i0, r0, r1]
        %p = arith.mulf %v, %v : f32
        loop.yield %p
      }
      %r = math.rsqrt %s : f32
      loop.yield %r
    } : !aten.tensor<2xf32>
    %o = loop.generate (i0 in 2, i1 in 6, i2 in 35) on (a0, a1, a2) {
      %v = loop.load %d[i0, i1, i2]
      %kk = loop.load %k[i0]
      %g = loop.load %w[i1]
      %a = arith.mulf %v, %kk : f32
      %b = arith.mulf %a, %g : f32
      loop.yield %b
    } : !aten.tensor<2x6x35xf32>
    loop.yield %o
  } : !aten.tensor<2x6x35xf32>
  func.return %y : !aten.tensor<2x6x35xf32>
}

// -----

// Sums of channels: rows that are no power of two long, one behind the other in tiles.

func.func @channel_sums(%x: !aten.tensor<5x3x600xf32>) -> (!aten.tensor<3xf32>, !aten.tensor<3xf32>) attributes {symbols = []} {
  %y, %z = loop.fusion (a0 in 3 | a1 in 5, a2 in 600) {
    %s, %m = loop.generate (i0 in 3) on (a0) {
      %t, %n = loop.reduce [sum, max] (r0 in 5, r1 in 600) on (a1, a2) {
        %v = loop.load %x[r0, i0, r1]
        loop.yield %v, %v
      }
      loop.yield %t, %n
    } : !aten.tensor<3xf32>, !aten.tensor<3xf32>
    loop.yield %s, %m
  } : !aten.tensor<3xf32>, !aten.tensor<3xf32>
  func.return %y, %z : !aten.tensor<3xf32>, !aten.tensor<3xf32>
}

// -----

// Few vectors times the rows of a matrix: a program reads a row once for all of them, whose number is no power of two.
func.func @few_vectors(%x: !aten.tensor<3x300xbf16>, %w: !aten.tensor<40x300xbf16>, %b: !aten.tensor<40xf32>) -> !aten.tensor<3x40xf32> {
  %y = loop.fusion (a0 in 3, a1 in 40 | a2 in 300) {
    %0 = loop.generate (i0 in 3, i1 in 40) on (a0, a1) {
      %s = loop.reduce sum (r0 in 300) on (a2) {
        %1 = loop.load %x[i0, r0]
        %2 = scalar.widen %1 : bf16 to f32
        %3 = loop.load %w[i1, r0]
        %4 = scalar.widen %3 : bf16 to f32
        %5 = arith.mulf %2, %4 : f32
        loop.yield %5
      }
      %6 = loop.load %b[i1]
      %7 = arith.addf %s, %6 : f32
      loop.yield %7
    } : !aten.tensor<3x40xf32>
    loop.yield %0
  } : !aten.tensor<3x40xf32>
  func.return %y : !aten.tensor<3x40xf32>
}

// -----

// A sum that each lane does for itself, of few columns.
func.func @few_columns(%x: !aten.tensor<4x16x10xf32>) -> !aten.tensor<4x10xf32> {
  %y = loop.fusion (a0 in 4, a1 in 10 | a2 in 16) {
    %0 = loop.generate (i0 in 4, i1 in 10) on (a0, a1) {
      %s = loop.reduce sum (r0 in 16) on (a2) {
        %1 = loop.load %x[i0, r0, i1]
        loop.yield %1
      }
      loop.yield %s
    } : !aten.tensor<4x10xf32>
    loop.yield %0
  } : !aten.tensor<4x10xf32>
  func.return %y : !aten.tensor<4x10xf32>
}
