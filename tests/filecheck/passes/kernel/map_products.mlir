// RUN: inductile-opt %s --target cuda:90 -p 'kernel-map-products{loop-products=true}' | filecheck %s
// RUN: inductile-opt %s --target cuda:90 -p 'kernel-map-products{loop-products=true}' --remarks 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: inductile-opt %s --target cuda:90 -p 'kernel-map-products{loop-products=true tile-rows=64 tile-columns=32 tile-depth=128 warps=2 stages=5 swizzle=1 resident=2}' | filecheck %s --check-prefix=ASKED
// RUN: inductile-opt %s --target cuda:90 -p kernel-map-products | filecheck %s --check-prefix=OFF
// RUN: inductile-opt %s --target cpp -p 'kernel-map-products{loop-products=true}' | filecheck %s --check-prefix=OFF
// RUN: inductile-opt %s --target cuda:75 -p 'kernel-map-products{loop-products=true}' | filecheck %s --check-prefix=TURING
// OFF-NOT: matrix

// Rows and columns are tiles of the grid, the depth runs in steps; a bias behind it stays where it is.
kernel.func @linear(%x: !kernel.buffer<bf16, 2097152>, %w: !kernel.buffer<bf16, 1048576>, %b: !kernel.buffer<bf16, 1024>, %y: !kernel.buffer<bf16, 2097152>) {
  kernel.for i0 in 0 to 2048 {
    kernel.for i1 in 0 to 1024 {
      %s = kernel.reduce sum i2 in 0 to 1024 {
        %1 = kernel.load %x[1024*i0 + i2]
        %2 = scalar.widen %1 : bf16 to f32
        %3 = kernel.load %w[1024*i1 + i2]
        %4 = scalar.widen %3 : bf16 to f32
        %5 = arith.mulf %2, %4 : f32
        kernel.yield %5
      }
      %6 = kernel.load %b[i1]
      %7 = scalar.widen %6 : bf16 to f32
      %8 = arith.addf %s, %7 : f32
      %9 = scalar.narrow %8 : f32 to bf16
      kernel.store %9, %y[1024*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: @linear
// CHECK-SAME: target "cuda:90" num_warps 4 num_stages 4 {
// CHECK-NEXT: kernel.for i0 in 0 to 2048 map grid tile 128 swizzle 8 {
// CHECK-NEXT: kernel.for i1 in 0 to 1024 map grid tile 128 {
// CHECK-NEXT: kernel.reduce sum i2 in 0 to 1024 map matrix tile 64 {
// ASKED-LABEL: @linear
// ASKED-SAME: num_warps 2 num_stages 5 programs 264
// ASKED-NEXT: map grid tile 64 {
// ASKED-NEXT: map grid tile 32 {
// ASKED-NEXT: map matrix tile 128
// TURING-LABEL: @linear
// TURING-NOT: matrix
// TURING-LABEL: @batched

// Batches are programs of their own, in front of rows and columns; two products of one factor share the loop. Steps are
// no longer than the depth.
kernel.func @batched(%x: !kernel.buffer<f32, 65536>, %u: !kernel.buffer<f32, 65536>, %v: !kernel.buffer<f32, 65536>, %y: !kernel.buffer<f32, 262144>) {
  kernel.for i0 in 0 to 128 {
    kernel.for i1 in 0 to 16 {
      kernel.for i2 in 0 to 128 {
        %s, %t = kernel.reduce [sum, sum] i3 in 0 to 32 {
          %1 = kernel.load %x[4096*i1 + 32*i0 + i3]
          %2 = kernel.load %u[4096*i1 + 128*i3 + i2]
          %3 = kernel.load %v[4096*i1 + 32*i2 + i3]
          %4 = arith.mulf %2, %1 : f32
          %5 = arith.mulf %1, %3 : f32
          kernel.yield %4, %5
        }
        %6 = arith.addf %s, %t : f32
        kernel.store %6, %y[16384*i1 + 128*i0 + i2]
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: @batched
// CHECK: kernel.for i1 in 0 to 16 map grid {
// CHECK-NEXT: kernel.for i0 in 0 to 128 map grid tile 64 swizzle 8 {
// CHECK-NEXT: kernel.for i2 in 0 to 128 map grid tile 64 {
// CHECK-NEXT: kernel.reduce [sum, sum] i3 in 0 to 32 map matrix tile 32 {
// TURING: map matrix tile 32

// What is no product of two matrices stays: one vector, a sum of something else, a row of results that is read again.
kernel.func @vector(%x: !kernel.buffer<f32, 32>, %w: !kernel.buffer<f32, 4096>, %y: !kernel.buffer<f32, 128>) {
  kernel.for i0 in 0 to 128 {
    %s = kernel.reduce sum i1 in 0 to 32 {
      %1 = kernel.load %x[i1]
      %2 = kernel.load %w[32*i0 + i1]
      %3 = arith.mulf %1, %2 : f32
      kernel.yield %3
    }
    kernel.store %s, %y[i0]
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: @vector
// CHECK-NOT: matrix

kernel.func @distances(%x: !kernel.buffer<f32, 4096>, %w: !kernel.buffer<f32, 4096>, %y: !kernel.buffer<f32, 16384>) {
  kernel.for i0 in 0 to 128 {
    kernel.for i1 in 0 to 128 {
      %s = kernel.reduce sum i2 in 0 to 32 {
        %1 = kernel.load %x[32*i0 + i2]
        %2 = kernel.load %w[32*i1 + i2]
        %3 = arith.subf %1, %2 : f32
        %4 = arith.mulf %3, %3 : f32
        kernel.yield %4
      }
      kernel.store %s, %y[128*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: @distances
// CHECK-NOT: matrix
// REMARK: remark: [kernel-map-products] passed: kernel.func: on matrix units rows=128 columns=128 depth=64 warps=4 stages=4
// REMARK: remark: [kernel-map-products] missed: kernel.func: not on matrix units: one factor has no rows of its own: it is a product of a vector

// A factor that was computed is rounded where its product says so, and what the sums do not need stands behind them.
kernel.func @prologue(%x: !kernel.buffer<bf16, 4096>, %w: !kernel.buffer<bf16, 4096>, %r: !kernel.buffer<bf16, 4096>, %y: !kernel.buffer<bf16, 4096>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 64 {
      %1 = kernel.load %r[64*i0 + i1]
      %2 = scalar.widen %1 : bf16 to f32
      %s = kernel.reduce sum i2 in 0 to 64 {
        %3 = kernel.load %x[64*i0 + i2]
        %4 = scalar.widen %3 : bf16 to f32
        %e = math.exp %4 : f32
        %5 = kernel.load %w[64*i1 + i2]
        %6 = scalar.widen %5 : bf16 to f32
        %7 = arith.mulf %e, %6 {precision = "bf16"} : f32
        kernel.yield %7
      }
      %8 = arith.addf %s, %2 : f32
      %9 = scalar.narrow %8 : f32 to bf16
      kernel.store %9, %y[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: @prologue
// CHECK: kernel.for i1 in
// CHECK-NEXT: %[[S:.*]] = kernel.reduce sum i2 in 0 to 64 map matrix tile 64 {
// CHECK: %[[E:.*]] = math.exp
// CHECK: %[[N:.*]] = scalar.narrow %[[E]] : f32 to bf16
// CHECK-NEXT: %[[W:.*]] = scalar.widen %[[N]] : bf16 to f32
// CHECK-NEXT: arith.mulf %[[W]], %{{.*}} {precision = "bf16"} : f32
// CHECK: }
// CHECK-NEXT: kernel.load %r[64*i0 + i1]

// Nests side by side have tiles of their own, and warps and stages in common.
kernel.func @two(%x: !kernel.buffer<bf16, 4096>, %w: !kernel.buffer<bf16, 1048576>, %y: !kernel.buffer<bf16, 1048576>, %z: !kernel.buffer<bf16, 4096>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 16384 {
      %s = kernel.reduce sum i2 in 0 to 64 {
        %1 = kernel.load %x[64*i0 + i2]
        %2 = scalar.widen %1 : bf16 to f32
        %3 = kernel.load %w[64*i1 + i2]
        %4 = scalar.widen %3 : bf16 to f32
        %5 = arith.mulf %2, %4 : f32
        kernel.yield %5
      }
      %6 = scalar.narrow %s : f32 to bf16
      kernel.store %6, %y[16384*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.for i3 in 0 to 64 {
    kernel.for i4 in 0 to 64 {
      %s = kernel.reduce sum i5 in 0 to 64 {
        %1 = kernel.load %x[64*i3 + i5]
        %2 = scalar.widen %1 : bf16 to f32
        %3 = kernel.load %x[64*i4 + i5]
        %4 = scalar.widen %3 : bf16 to f32
        %5 = arith.mulf %2, %4 : f32
        kernel.yield %5
      }
      %6 = scalar.narrow %s : f32 to bf16
      kernel.store %6, %z[64*i3 + i4]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: @two
// CHECK-SAME: num_warps 4 num_stages 5
// CHECK: kernel.for i1 in 0 to 16384 map grid tile 64 {
// CHECK: kernel.for i4 in 0 to 64 map grid tile 32 {
