// RUN: inductile-opt %s --target cuda:90 -p kernel-map-products | filecheck %s

// A tile that says so turns the nest: columns are the outer loop, so that their factor is the first.
kernel.func @turned(%x: !kernel.buffer<bf16, 1048576>, %w: !kernel.buffer<i8, 1048576>, %y: !kernel.buffer<bf16, 1048576>) {
  kernel.for i0 in 0 to 1024 {
    kernel.for i1 in 0 to 1024 {
      %s = kernel.reduce sum i2 in 0 to 1024 {
        %1 = kernel.load %x[1024*i0 + i2]
        %2 = scalar.widen %1 : bf16 to f32
        %3 = kernel.load %w[1024*i1 + i2]
        %4 = scalar.cast %3 : i8 to bf16
        %5 = scalar.widen %4 : bf16 to f32
        %6 = arith.mulf %2, %5 {precision = "bf16", tile = array<i64: 256, 128, 64, 8, 3, 0, 0, 0, 0, 0, 1>} : f32
        kernel.yield %6
      }
      %7 = scalar.narrow %s : f32 to bf16
      kernel.store %7, %y[1024*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: @turned
// CHECK-SAME: num_warps 8 num_stages 3
// CHECK: kernel.for i1 in 0 to 1024 map grid tile 128 swizzle 8 {
// CHECK-NEXT: kernel.for i0 in 0 to 1024 map grid tile 256 {
