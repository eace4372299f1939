// RUN: inductile-opt %s -t triton | filecheck %s

// A number of each row is loaded as a block of one dimension, which lies with the rows' sums; a column of a tile of rows
// would be loaded once for each element of a row that a thread has. A number of each element stays where the tile has it.

kernel.func @scaled(%x: !kernel.buffer<bf16, 2048>, %w: !kernel.buffer<i8, 2097152>, %s: !kernel.buffer<bf16, 1024>, %y: !kernel.buffer<f32, 1024>) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to 1024 map grid tile 4 {
    %a = kernel.load %s[i0]
    %b = scalar.widen %a : bf16 to f32
    %p = kernel.reduce sum i1 in 0 to 2048 map vector tile 2048 {
      %c = kernel.load %x[i1]
      %d = scalar.widen %c : bf16 to f32
      %e = kernel.load %w[2048*i0 + i1]
      %f = scalar.cast %e : i8 to f32
      %g = arith.mulf %d, %f : f32
      kernel.yield %g
    }
    %q = arith.mulf %p, %b : f32
    kernel.store %q, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: def scaled
// CHECK:         i0_rows = tl.program_id(0) * BLOCK_I0 + tl.arange(0, BLOCK_I0)
// CHECK-NEXT:    b = tl.load(s + i0_rows)[:, None].to(tl.float32)
// CHECK:         tl.load(x + i1)
// CHECK:         tl.load(w + (2048 * i0 + i1))
// CHECK:         tl.store(y + i0,

// Where rows are left out the column has the mask.

kernel.func @masked(%w: !kernel.buffer<f32, 1280>, %s: !kernel.buffer<f32, 10>, %y: !kernel.buffer<f32, 10>) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to 10 map grid tile 4 {
    %a = kernel.load %s[i0]
    %p = kernel.reduce sum i1 in 0 to 128 map vector tile 128 {
      %e = kernel.load %w[128*i0 + i1]
      kernel.yield %e
    }
    %q = arith.mulf %p, %a : f32
    kernel.store %q, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: def masked
// CHECK:         tl.load(s + i0, mask=i0_mask

// A vector that is computed is a block of one dimension where it meets rows of bytes: Triton then moves it to the threads
// that have the rows, and not the rows to those that have the vector.

kernel.func @normalised(%x: !kernel.buffer<f32, 2048>, %n: !kernel.buffer<f32, 1>, %w: !kernel.buffer<i8, 2097152>, %y: !kernel.buffer<f32, 1024>) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to 1024 map grid tile 4 {
    %s = kernel.load %n[0]
    %p = kernel.reduce sum i1 in 0 to 2048 map vector tile 2048 {
      %c = kernel.load %x[i1]
      %d = arith.mulf %c, %s : f32
      %e = kernel.load %w[2048*i0 + i1]
      %f = scalar.cast %e : i8 to f32
      %g = arith.mulf %d, %f : f32
      kernel.yield %g
    }
    kernel.store %p, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: def normalised
// CHECK:         d = c * s
// CHECK:         d_vector = tl.reshape(d, [BLOCK_I1])[None, :]
// CHECK-NEXT:    g = d_vector * f
