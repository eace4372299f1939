// Layer norm over two dimensions with a residual that is returned as well: rows, scalars, stores beside them.

func.func @layer_norm(%x: !aten.tensor<(s0)x4x16xf32>, %r: !aten.tensor<(s0)x4x16xf32>, %w: !aten.tensor<4x16xf32>) -> (!aten.tensor<(s0)x4x16xf32>, !aten.tensor<(s0)x4x16xf32>) attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0>]} {
  %a, %b = loop.fusion (a0 in s0 | a1 in 4, a2 in 16) {
    %t = loop.generate (i0 in s0, i1 in 4, i2 in 16) on (a0, a1, a2) {
      %u = loop.load %x[i0, i1, i2]
      %v = loop.load %r[i0, i1, i2]
      %s = arith.addf %u, %v : f32
      loop.yield %s
    } : !aten.tensor<(s0)x4x16xf32>
    %m = loop.generate (i0 in s0) on (a0) {
      %s = loop.reduce sum (r0 in 4, r1 in 16) on (a1, a2) {
        %v = loop.load %t[i0, r0, r1]
        loop.yield %v
      }
      %n = arith.constant 64.0 : f32
      %q = arith.divf %s, %n : f32
      loop.yield %q
    } : !aten.tensor<(s0)xf32>
    %d = loop.generate (i0 in s0) on (a0) {
      %s = loop.reduce sum (r0 in 4, r1 in 16) on (a1, a2) {
        %v = loop.load %t[i0, r0, r1]
        %mean = loop.load %m[i0]
        %c = arith.subf %v, %mean : f32
        %p = arith.mulf %c, %c : f32
        loop.yield %p
      }
      %n = arith.constant 64.0 : f32
      %q = arith.divf %s, %n : f32
      %e = arith.constant 1.0e-5 : f32
      %z = arith.addf %q, %e : f32
      %k = math.rsqrt %z : f32
      loop.yield %k
    } : !aten.tensor<(s0)xf32>
    %o = loop.generate (i0 in s0, i1 in 4, i2 in 16) on (a0, a1, a2) {
      %v = loop.load %t[i0, i1, i2]
      %mean = loop.load %m[i0]
      %k = loop.load %d[i0]
      %g = loop.load %w[i1, i2]
      %c = arith.subf %v, %mean : f32
      %p = arith.mulf %c, %k : f32
      %q = arith.mulf %p, %g : f32
      loop.yield %q
    } : !aten.tensor<(s0)x4x16xf32>
    loop.yield %t, %o
  } : !aten.tensor<(s0)x4x16xf32>, !aten.tensor<(s0)x4x16xf32>
  func.return %a, %b : !aten.tensor<(s0)x4x16xf32>, !aten.tensor<(s0)x4x16xf32>
}

// -----

// Three-dimensional pointwise with a bias along the last one, twice: temporaries of one size follow each other.

func.func @bias_chain(%x: !aten.tensor<(s0)x(s1)x7xf32>, %b: !aten.tensor<7xf32>) -> !aten.tensor<(s0)x(s1)x7xf32> attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0>, #sym.symbol<s1, arg = 0, dim = 1>]} {
  %y = loop.fusion (a0 in s0, a1 in s1, a2 in 7) {
    %e = loop.generate (i0 in s0, i1 in s1, i2 in 7) on (a0, a1, a2) {
      %v = loop.load %x[i0, i1, i2]
      %c = loop.load %b[i2]
      %s = arith.addf %v, %c : f32
      loop.yield %s
    } : !aten.tensor<(s0)x(s1)x7xf32>
    loop.yield %e
  } : !aten.tensor<(s0)x(s1)x7xf32>
  %z = loop.fusion (a0 in s0, a1 in s1, a2 in 7) {
    %e = loop.generate (i0 in s0, i1 in s1, i2 in 7) on (a0, a1, a2) {
      %v = loop.load %y[i0, i1, i2]
      %c = loop.load %b[i2]
      %s = arith.addf %v, %c : f32
      loop.yield %s
    } : !aten.tensor<(s0)x(s1)x7xf32>
    loop.yield %e
  } : !aten.tensor<(s0)x(s1)x7xf32>
  %w = loop.fusion (a0 in s0, a1 in s1, a2 in 7) {
    %e = loop.generate (i0 in s0, i1 in s1, i2 in 7) on (a0, a1, a2) {
      %v = loop.load %z[i0, i1, i2]
      %s = math.tanh %v : f32
      loop.yield %s
    } : !aten.tensor<(s0)x(s1)x7xf32>
    loop.yield %e
  } : !aten.tensor<(s0)x(s1)x7xf32>
  func.return %w : !aten.tensor<(s0)x(s1)x7xf32>
}

// -----

// A transposed read, long enough to be blocked, and a sum over rows.

func.func @transposed(%x: !aten.tensor<70x45xf32>, %y: !aten.tensor<45x70xf32>) -> (!aten.tensor<70x45xf32>, !aten.tensor<45xf32>) attributes {symbols = []} {
  %a = loop.fusion (a0 in 70, a1 in 45) {
    %e = loop.generate (i0 in 70, i1 in 45) on (a0, a1) {
      %v = loop.load %x[i0, i1]
      %c = loop.load %y[i1, i0]
      %s = arith.addf %v, %c : f32
      loop.yield %s
    } : !aten.tensor<70x45xf32>
    loop.yield %e
  } : !aten.tensor<70x45xf32>
  %b = loop.fusion (a0 in 45 | a1 in 70) {
    %e = loop.generate (i0 in 45) on (a0) {
      %s = loop.reduce sum (r0 in 70) on (a1) {
        %v = loop.load %a[r0, i0]
        loop.yield %v
      }
      loop.yield %s
    } : !aten.tensor<45xf32>
    loop.yield %e
  } : !aten.tensor<45xf32>
  func.return %a, %b : !aten.tensor<70x45xf32>, !aten.tensor<45xf32>
}

// -----

// Softmax over the first dimension: columns in lanes, a row buffer of lanes.

func.func @softmax_first(%x: !aten.tensor<9x100xf32>) -> !aten.tensor<9x100xf32> attributes {symbols = []} {
  %y = loop.fusion (a0 in 100 | a1 in 9) {
    %m = loop.generate (i0 in 100) on (a0) {
      %r = loop.reduce max (r0 in 9) on (a1) {
        %v = loop.load %x[r0, i0]
        loop.yield %v
      }
      loop.yield %r
    } : !aten.tensor<100xf32>
    %e = loop.generate (i1 in 9, i0 in 100) on (a1, a0) {
      %v = loop.load %x[i1, i0]
      %mm = loop.load %m[i0]
      %d = arith.subf %v, %mm : f32
      %w = math.exp %d : f32
      loop.yield %w
    } : !aten.tensor<9x100xf32>
    %s = loop.generate (i0 in 100) on (a0) {
      %r = loop.reduce sum (r0 in 9) on (a1) {
        %v = loop.load %e[r0, i0]
        loop.yield %v
      }
      loop.yield %r
    } : !aten.tensor<100xf32>
    %o = loop.generate (i1 in 9, i0 in 100) on (a1, a0) {
      %v = loop.load %e[i1, i0]
      %ss = loop.load %s[i0]
      %q = arith.divf %v, %ss : f32
      loop.yield %q
    } : !aten.tensor<9x100xf32>
    loop.yield %o
  } : !aten.tensor<9x100xf32>
  func.return %y : !aten.tensor<9x100xf32>
}

// -----

// Pooling windows: short reductions inside, private axes; and a nested access that wraps around.

func.func @pool(%x: !aten.tensor<2x3x8x10xf32>) -> !aten.tensor<2x3x4x5xf32> attributes {symbols = []} {
  %y = loop.fusion (a0 in 2, a1 in 3, a2 in 4, a3 in 5) {
    %m = loop.generate (i0 in 2, i1 in 3, i2 in 4, i3 in 5) on (a0, a1, a2, a3) {
      %r = loop.reduce max (r0 in 2, r1 in 2) on (_, _) {
        %v = loop.load %x[i0, i1, 2*i2 + r0, 2*i3 + r1]
        loop.yield %v
      }
      loop.yield %r
    } : !aten.tensor<2x3x4x5xf32>
    loop.yield %m
  } : !aten.tensor<2x3x4x5xf32>
  %z = loop.fusion (a0 in 2, a1 in 3, a2 in 4, a3 in 5) {
    %m = loop.generate (i0 in 2, i1 in 3, i2 in 4, i3 in 5) on (a0, a1, a2, a3) {
      %v = loop.load %y[(i0 + 1) mod 2, i1, i2, -i3 + 4]
      loop.yield %v
    } : !aten.tensor<2x3x4x5xf32>
    loop.yield %m
  } : !aten.tensor<2x3x4x5xf32>
  func.return %z : !aten.tensor<2x3x4x5xf32>
}

// -----

// Dimensions of one element: no loops but for the scan, which still combines with the identity.

func.func @units(%x: !aten.tensor<1x6x1xf32>) -> (!aten.tensor<1x6x1xf32>, !aten.tensor<1x6x1xf32>) attributes {symbols = []} {
  %a, %b = loop.fusion (a0 in 1, a1 in 6) {
    %m = loop.generate (i0 in 1, i1 in 6, i2 in 1) on (a0, a1, _) {
      %s = loop.reduce sum (r0 in 1) on (_) {
        %v = loop.load %x[i0, i1, i2]
        loop.yield %v
      }
      loop.yield %s
    } : !aten.tensor<1x6x1xf32>
    %c = loop.scan sum (i0 in 1, i1 in 6, i2 in 1) along i2 on (a0, a1, _) {
      %v = loop.load %m[i0, i1, i2]
      loop.yield %v
    } : !aten.tensor<1x6x1xf32>
    %d = loop.generate (i0 in 1, i1 in 6, i2 in 1) on (a0, a1, _) {
      %v = loop.load %c[i0, i1, 0]
      %w = loop.load %m[i0, i1, i2]
      %s = arith.subf %v, %w : f32
      loop.yield %s
    } : !aten.tensor<1x6x1xf32>
    loop.yield %c, %d
  } : !aten.tensor<1x6x1xf32>, !aten.tensor<1x6x1xf32>
  func.return %a, %b : !aten.tensor<1x6x1xf32>, !aten.tensor<1x6x1xf32>
}

// -----

// A scale and a shift that depend on the channel alone, with channels side by side: they are computed before the rows.
// The channels are as many as some lanes take, and one more.

func.func @rows(%x: !aten.tensor<(s1)x33xf32>, %v: !aten.tensor<33xf32>, %w: !aten.tensor<33xf32>) -> !aten.tensor<(s1)x33xf32> attributes {symbols = [#sym.symbol<s1, arg = 0, dim = 0, min = 1>]} {
  %y = loop.fusion (a0 in s1, a1 in 33) {
    %o = loop.generate (i0 in s1, i1 in 33) on (a0, a1) {
      %a = loop.load %v[i1]
      %one = arith.constant 1.0 : f32
      %p = arith.mulf %a, %a : f32
      %s = arith.addf %p, %one : f32
      %r = math.sqrt %s : f32
      %b = loop.load %w[i1]
      %scale = arith.divf %b, %r : f32
      %c = arith.mulf %a, %scale : f32
      %shift = arith.subf %b, %c : f32
      %u = loop.load %x[i0, i1]
      %q = arith.mulf %u, %scale : f32
      %z = arith.addf %q, %shift : f32
      loop.yield %z
    } : !aten.tensor<(s1)x33xf32>
    loop.yield %o
  } : !aten.tensor<(s1)x33xf32>
  func.return %y : !aten.tensor<(s1)x33xf32>
}
