// RUN: inductile-opt %s --target cuda:90 -p 'kernel-map-chained-products{loop-products=true}' | filecheck %s
// RUN: inductile-opt %s --target cuda:90 -p 'kernel-map-chained-products{loop-products=true}' --remarks 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: inductile-opt %s --target cuda:90 -p 'kernel-map-chained-products{loop-products=true chain-rows=32 chain-step=16 chain-warps=2 chain-stages=4}' | filecheck %s --check-prefix=ASKED
// RUN: inductile-opt %s --target cuda:90 -p 'kernel-map-chained-products' | filecheck %s --check-prefix=OFF
// RUN: inductile-opt %s --target cpp -p 'kernel-map-chained-products{loop-products=true}' | filecheck %s --check-prefix=OFF
// OFF-NOT: matrix

// One factor is computed from a product: rows are tiles of the grid, all columns are one tile, both products are in steps.
kernel.func @chain(%q: !kernel.buffer<bf16, 262144>, %k: !kernel.buffer<bf16, 262144>, %t: !kernel.buffer<bf16, 196608>, %o: !kernel.buffer<f32, 196608>) {
  kernel.for i0 in 0 to 8 {
    kernel.for i1 in 0 to 512 {
      kernel.for i2 in 0 to 48 {
        %g = kernel.reduce sum i3 in 0 to 512 {
          %p = kernel.reduce sum i4 in 0 to 64 {
            %a = kernel.load %q[32768*i0 + 64*i3 + i4]
            %b = scalar.widen %a : bf16 to f32
            %c = kernel.load %k[32768*i0 + 64*i1 + i4]
            %d = scalar.widen %c : bf16 to f32
            %e = arith.mulf %b, %d {precision = "bf16"} : f32
            kernel.yield %e
          }
          %w = math.exp %p : f32
          %f = kernel.load %t[24576*i0 + 48*i3 + i2]
          %h = scalar.widen %f : bf16 to f32
          %r = arith.mulf %w, %h {precision = "bf16"} : f32
          kernel.yield %r
        }
        kernel.store %g, %o[24576*i0 + 48*i1 + i2]
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @chain
// CHECK-SAME: target "cuda:90" num_warps 4 num_stages 3
// CHECK: kernel.for i1 in 0 to 512 map grid tile 64 {
// CHECK: kernel.for i2 in 0 to 48 map vector tile 64 {
// CHECK: kernel.reduce sum i3 in 0 to 512 map matrix tile 64 {
// CHECK: kernel.reduce sum i4 in 0 to 64 map matrix tile 64 {
// CHECK: scalar.narrow %{{.*}} : f32 to bf16
// REMARK: passed: {{.*}}on matrix units rows=64 step=64 warps=4 stages=3
// ASKED: num_warps 2 num_stages 4
// ASKED: kernel.for i1 in 0 to 512 map grid tile 32 {
// ASKED: kernel.reduce sum i3 in 0 to 512 map matrix tile 16 {

// The sum of a row of what a product makes has no columns: its lanes are the row's.
kernel.func @rows(%q: !kernel.buffer<bf16, 32768>, %k: !kernel.buffer<bf16, 32768>, %o: !kernel.buffer<f32, 512>) {
  kernel.for i0 in 0 to 512 {
    %g = kernel.reduce sum i1 in 0 to 512 {
      %p = kernel.reduce sum i2 in 0 to 64 {
        %a = kernel.load %q[64*i0 + i2]
        %b = scalar.widen %a : bf16 to f32
        %c = kernel.load %k[64*i1 + i2]
        %d = scalar.widen %c : bf16 to f32
        %e = arith.mulf %b, %d {precision = "bf16"} : f32
        kernel.yield %e
      }
      %w = math.exp %p : f32
      kernel.yield %w
    }
    kernel.store %g, %o[i0]
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @rows
// CHECK: kernel.for i0 in 0 to 512 map grid tile 64 {
// CHECK: kernel.reduce sum i1 in 0 to 512 map vector tile 64 {
// CHECK: kernel.reduce sum i2 in 0 to 64 map matrix tile 64 {

// The product does not vary along the row: it is none that a tile of rows and steps has.
kernel.func @both(%q: !kernel.buffer<bf16, 32768>, %k: !kernel.buffer<bf16, 32768>, %o: !kernel.buffer<f32, 512>) {
  kernel.for i0 in 0 to 512 {
    %g = kernel.reduce max i1 in 0 to 512 {
      %p = kernel.reduce sum i2 in 0 to 64 {
        %a = kernel.load %q[64*i0 + i2]
        %b = scalar.widen %a : bf16 to f32
        %c = kernel.load %k[64*i0 + i2]
        %d = scalar.widen %c : bf16 to f32
        %e = arith.mulf %b, %d {precision = "bf16"} : f32
        kernel.yield %e
      }
      kernel.yield %p
    }
    kernel.store %g, %o[i0]
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @both
// CHECK-NOT: matrix
// REMARK: missed: {{.*}}not on matrix units: both factors of a product vary along the reduction's axis, or none does
