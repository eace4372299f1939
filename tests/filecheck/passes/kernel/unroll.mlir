// RUN: inductile-opt %s --split-input-file --verify-each -p kernel-unroll | filecheck %s
// RUN: inductile-opt %s --split-input-file -p kernel-unroll{unroll=4} | filecheck %s --check-prefix=FOUR

// Loads of two steps are on their way together.

kernel.func @once(%x: !kernel.buffer<f32, 268435456>, %y: !kernel.buffer<f32, 8192>) target "cuda:90" per_thread 16 {
  kernel.for i0 in 0 to 8192 map grid {
    %s = kernel.reduce sum i1 in 0 to 32768 map vector tile 2048 {
      %v = kernel.load %x[32768*i0 + i1]
      kernel.yield %v
    }
    kernel.store %s, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @once
// CHECK: map vector tile 2048 unroll 2 {
// FOUR-LABEL: @once
// FOUR: map vector tile 2048 unroll 4 {

// -----

// A row that is read again comes from the cache; one of four steps is too short for two at a time.

kernel.func @again(%x: !kernel.buffer<f32, 32768>, %y: !kernel.buffer<f32, 32768>) target "cuda:90" per_thread 16 {
  kernel.for i0 in 0 to 1 map grid {
    %s = kernel.reduce sum i1 in 0 to 32768 map vector tile 2048 {
      %v = kernel.load %x[32768*i0 + i1]
      kernel.yield %v
    }
    kernel.for i2 in 0 to 32768 map vector tile 2048 {
      %v = kernel.load %x[32768*i0 + i2]
      %d = arith.subf %v, %s : f32
      kernel.store %d, %y[32768*i0 + i2]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

kernel.func @short(%x: !kernel.buffer<f32, 8192>, %y: !kernel.buffer<f32, 1>) target "cuda:90" per_thread 16 {
  kernel.for i0 in 0 to 1 map grid {
    %s = kernel.reduce sum i1 in 0 to 8192 map vector tile 2048 {
      %v = kernel.load %x[8192*i0 + i1]
      kernel.yield %v
    }
    kernel.store %s, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @again
// CHECK-NOT: unroll

// -----

// Tiles of 256 in 2,048 programs leave the memory waiting with two steps on their way, and registers allow four; four
// times as many programs keep it busy with two.

kernel.func @variance(%x: !kernel.buffer<bf16, 33554432>, %y: !kernel.buffer<f32, 131072>) target "cuda:90" per_thread 16 {
  kernel.for i0 in 0 to 32 map grid {
    kernel.for i1 in 0 to 4096 map grid tile 64 {
      %one = arith.constant 1.000000e+00 : f32
      %zero = arith.constant 0.000000e+00 : f32
      %m, %s, %n = kernel.reduce welford i2 in 0 to 256 map vector tile 4 {
        %v = kernel.load %x[1048576*i0 + i1 + 4096*i2]
        %w = scalar.widen %v : bf16 to f32
        kernel.yield %w, %zero, %one
      }
      kernel.store %s, %y[4096*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

kernel.func @crowded(%x: !kernel.buffer<bf16, 134217728>, %y: !kernel.buffer<f32, 524288>) target "cuda:90" per_thread 16 {
  kernel.for i0 in 0 to 128 map grid {
    kernel.for i1 in 0 to 4096 map grid tile 64 {
      %one = arith.constant 1.000000e+00 : f32
      %zero = arith.constant 0.000000e+00 : f32
      %m, %s, %n = kernel.reduce welford i2 in 0 to 256 map vector tile 4 {
        %v = kernel.load %x[1048576*i0 + i1 + 4096*i2]
        %w = scalar.widen %v : bf16 to f32
        kernel.yield %w, %zero, %one
      }
      kernel.store %s, %y[4096*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @variance
// CHECK: map vector tile 4 unroll 4 {
// CHECK-LABEL: @crowded
// CHECK: map vector tile 4 unroll 2 {

// -----

// Loops of matrix units have stages of their own.

kernel.func @product(%x: !kernel.buffer<bf16, 32768>, %w: !kernel.buffer<bf16, 32768>, %y: !kernel.buffer<f32, 16384>) target "cuda:90" {
  kernel.for i0 in 0 to 128 map grid tile 64 {
    kernel.for i1 in 0 to 128 map grid tile 64 {
      %s = kernel.reduce sum i2 in 0 to 256 map matrix tile 32 {
        %a = kernel.load %x[256*i0 + i2]
        %b = kernel.load %w[128*i2 + i1]
        %c = scalar.widen %a : bf16 to f32
        %d = scalar.widen %b : bf16 to f32
        %p = arith.mulf %c, %d : f32
        kernel.yield %p
      }
      kernel.store %s, %y[128*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @product
// CHECK: map matrix tile 32 {
// FOUR-LABEL: @product
// FOUR: map matrix tile 32 {
