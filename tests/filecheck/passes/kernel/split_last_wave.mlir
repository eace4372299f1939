// RUN: inductile-opt %s --target cuda:90 -p "kernel-split-last-wave{last-rows=2 last-columns=2 last-depth=32}" --split-input-file | filecheck %s
// RUN: inductile-opt %s --target cuda:90 -p kernel-split-last-wave --split-input-file | filecheck %s --check-prefix=NONE
// NONE-NOT: map matrix tile 32

// 12 x 12 tiles for 132 processors: 11 rows of tiles are one whole wave, and 4 rows are left.
kernel.func @left_over(%x: !kernel.buffer<bf16, 3072>, %w: !kernel.buffer<bf16, 3072>, %b: !kernel.buffer<f32, 48>, %y: !kernel.buffer<f32, 2304>) target "cuda:90" num_warps 4 num_stages 3 {
  kernel.for i0 in 0 to 48 map grid tile 4 swizzle 8 {
    kernel.for i1 in 0 to 48 map grid tile 4 {
      %s = kernel.reduce sum i2 in 0 to 64 map matrix tile 16 {
        %a = kernel.load %x[64*i0 + i2]
        %c = kernel.load %w[64*i1 + i2]
        %d = scalar.widen %a : bf16 to f32
        %e = scalar.widen %c : bf16 to f32
        %p = arith.mulf %d, %e : f32
        kernel.yield %p
      }
      %f = kernel.load %b[i1]
      %g = arith.addf %s, %f : f32
      kernel.store %g, %y[48*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @left_over
// CHECK: kernel.for i0 in 0 to 44 map grid tile 4 swizzle 8 {
// CHECK: kernel.for i1 in 0 to 48 map grid tile 4 {
// CHECK: kernel.reduce sum i2 in 0 to 64 map matrix tile 16
// CHECK: kernel.for i0 in 44 to 48 map grid tile 2 {
// CHECK: kernel.for i1 in 0 to 48 map grid tile 2 {
// CHECK: kernel.reduce sum i2 in 0 to 64 map matrix tile 32
// CHECK: kernel.store {{.*}}, %y[48*i0 + i1]

// -----

// 12 x 11 tiles are one wave.
kernel.func @whole(%x: !kernel.buffer<bf16, 3072>, %w: !kernel.buffer<bf16, 2816>, %y: !kernel.buffer<f32, 2112>) target "cuda:90" num_warps 4 num_stages 3 {
  kernel.for i0 in 0 to 48 map grid tile 4 {
    kernel.for i1 in 0 to 44 map grid tile 4 {
      %s = kernel.reduce sum i2 in 0 to 64 map matrix tile 16 {
        %a = kernel.load %x[64*i0 + i2]
        %c = kernel.load %w[64*i1 + i2]
        %d = scalar.widen %a : bf16 to f32
        %e = scalar.widen %c : bf16 to f32
        %p = arith.mulf %d, %e : f32
        kernel.yield %p
      }
      kernel.store %s, %y[44*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @whole
// CHECK: kernel.for i0 in 0 to 48 map grid tile 4 {
// CHECK-NOT: map matrix tile 32
