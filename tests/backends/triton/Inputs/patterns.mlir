kernel.func @softmax(%x: !kernel.buffer<f32, 300*s0>, %y: !kernel.buffer<f32, 300*s0>) symbols (s0) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to s0 map grid {
    %row = kernel.local tile : !kernel.buffer<f32, 300, local>
    %m = kernel.reduce max r0 in 0 to 300 map vector tile 512 {
      %v = kernel.load %x[300*i0 + r0]
      kernel.yield %v
    }
    %s = kernel.reduce sum r1 in 0 to 300 map vector tile 512 {
      %v = kernel.load %x[300*i0 + r1]
      %d = arith.subf %v, %m : f32
      %e = math.exp %d : f32
      kernel.store %e, %row[r1]
      kernel.yield %e
    }
    kernel.for r2 in 0 to 300 map vector tile 512 {
      %e = kernel.load %row[r2]
      %q = arith.divf %e, %s : f32
      kernel.store %q, %y[300*i0 + r2]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
kernel.func @softmax_looped(%x: !kernel.buffer<bf16, 300*s0>, %y: !kernel.buffer<bf16, 300*s0>) symbols (s0) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to s0 map grid tile 4 {
    %m = kernel.reduce max r0 in 0 to 300 map vector tile 64 {
      %v = kernel.load %x[300*i0 + r0]
      %w = scalar.widen %v : bf16 to f32
      kernel.yield %w
    }
    %s = kernel.reduce sum r1 in 0 to 300 map vector tile 64 {
      %v = kernel.load %x[300*i0 + r1]
      %w = scalar.widen %v : bf16 to f32
      %d = arith.subf %w, %m : f32
      %e = math.exp %d : f32
      kernel.yield %e
    }
    kernel.for r2 in 0 to 300 map vector tile 64 {
      %v = kernel.load %x[300*i0 + r2]
      %w = scalar.widen %v : bf16 to f32
      %d = arith.subf %w, %m : f32
      %e = math.exp %d : f32
      %q = arith.divf %e, %s : f32
      %n = scalar.narrow %q : f32 to bf16
      kernel.store %n, %y[300*i0 + r2]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
kernel.func @add_transposed(%x: !kernel.buffer<f32, 7000>, %y: !kernel.buffer<f32, 7000>, %z: !kernel.buffer<f32, 7000>) target "cuda:90" {
  kernel.for i0 in 0 to 70 map grid tile 32 {
    kernel.for i1 in 0 to 100 map grid tile 32 {
      %a = kernel.load %x[100*i0 + i1]
      %b = kernel.load %y[i0 + 70*i1]
      %c = arith.addf %a, %b : f32
      kernel.store %c, %z[100*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
kernel.func @column_sum(%x: !kernel.buffer<f32, 100*s0>, %y: !kernel.buffer<f32, 100>) symbols (s0) target "cuda:90" {
  kernel.for i0 in 0 to 100 map grid tile 32 {
    %s = kernel.reduce sum r0 in 0 to s0 map vector tile 16 {
      %v = kernel.load %x[i0 + 100*r0]
      %t = math.tanh %v : f32
      kernel.yield %t
    }
    kernel.store %s, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @gather(%w: !kernel.buffer<bf16, 51200>, %i: !kernel.buffer<i64, s0>, %y: !kernel.buffer<f32, 64*s0>) symbols (s0) errors ["IndexError: index out of range"] target "cuda:90" {
  kernel.for i0 in 0 to s0 map grid tile 8 {
    kernel.for i1 in 0 to 64 map grid tile 32 {
      %j = kernel.load %i[i0]
      %n = kernel.index 800
      %z = kernel.index 0
      %lo = arith.cmpi sge, %j, %z : i64
      %hi = arith.cmpi slt, %j, %n : i64
      %ok = arith.andi %lo, %hi : i1
      kernel.assert %ok, 1
      %v = kernel.load %w[64*d0 + i1] (d0 = %j)
      %f = scalar.widen %v : bf16 to f32
      kernel.store %f, %y[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
kernel.func @layer_norm(%x: !kernel.buffer<f32, 768*s0>, %g: !kernel.buffer<f32, 768>, %y: !kernel.buffer<f32, 768*s0>) symbols (s0) target "cuda:90" {
  kernel.for i0 in 0 to s0 map grid tile 2 {
    %zero = arith.constant 0.000000e+00 : f32
    %one = arith.constant 1.000000e+00 : f32
    %eps = arith.constant 1.000000e-05 : f32
    %mean, %m2, %count = kernel.reduce welford r0 in 0 to 768 map vector tile 1024 {
      %v = kernel.load %x[768*i0 + r0]
      kernel.yield %v, %zero, %one
    }
    %var = arith.divf %m2, %count : f32
    %ve = arith.addf %var, %eps : f32
    %r = math.rsqrt %ve : f32
    kernel.for r1 in 0 to 768 map vector tile 1024 {
      %v = kernel.load %x[768*i0 + r1]
      %w = kernel.load %g[r1]
      %d = arith.subf %v, %mean : f32
      %q = arith.mulf %d, %r : f32
      %p = arith.mulf %q, %w : f32
      kernel.store %p, %y[768*i0 + r1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
