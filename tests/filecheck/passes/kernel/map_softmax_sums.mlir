// RUN: inductile-opt %s --target cuda:90 -p 'kernel-map-softmax-sums{loop-products=true}' | filecheck %s
// RUN: inductile-opt %s --target cuda:90 -p 'kernel-map-softmax-sums{loop-products=true}' --remarks 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: inductile-opt %s --target cuda:90 -p 'kernel-map-softmax-sums{loop-products=true softmax-rows=32 softmax-step=16 softmax-warps=2 softmax-stages=4}' | filecheck %s --check-prefix=ASKED
// RUN: inductile-opt %s --target cuda:90 -p 'kernel-map-softmax-sums' | filecheck %s --check-prefix=OFF
// RUN: inductile-opt %s --target cpp -p 'kernel-map-softmax-sums{loop-products=true}' | filecheck %s --check-prefix=OFF
// OFF-NOT: matrix

// Rows are tiles of the grid, all columns are one tile, the softmax runs in steps, and scores are products in them.
kernel.func @attention(%q: !kernel.buffer<bf16, 262144>, %k: !kernel.buffer<bf16, 262144>, %v: !kernel.buffer<bf16, 196608>, %o: !kernel.buffer<f32, 196608>) {
  kernel.for i0 in 0 to 8 {
    kernel.for i1 in 0 to 512 {
      kernel.for i2 in 0 to 48 {
        %m, %s, %t = kernel.reduce softmax_sum i3 in 0 to 512 {
          %p = kernel.reduce sum i4 in 0 to 64 {
            %a = kernel.load %q[32768*i0 + 64*i1 + i4]
            %b = scalar.widen %a : bf16 to f32
            %c = kernel.load %k[32768*i0 + 64*i3 + i4]
            %d = scalar.widen %c : bf16 to f32
            %e = arith.mulf %b, %d {precision = "bf16"} : f32
            kernel.yield %e
          }
          %f = kernel.load %v[24576*i0 + 48*i3 + i2]
          %g = scalar.widen %f : bf16 to f32
          %one = arith.constant 1.0 : f32
          kernel.yield %p, %one, %g
        }
        %r = arith.divf %t, %s : f32
        kernel.store %r, %o[24576*i0 + 48*i1 + i2]
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @attention
// CHECK-SAME: target "cuda:90" num_warps 4 num_stages 3
// CHECK: kernel.for i0 in 0 to 8 map grid {
// CHECK: kernel.for i1 in 0 to 512 map grid tile 128 {
// CHECK: kernel.for i2 in 0 to 48 map vector tile 64 {
// CHECK: kernel.reduce softmax_sum i3 in 0 to 512 map matrix tile 64 {
// CHECK: kernel.reduce sum i4 in 0 to 64 map matrix tile 64 {
// REMARK: passed: {{.*}}on matrix units rows=128 step=64 warps=4 stages=3
// ASKED: num_warps 2 num_stages 4
// ASKED: kernel.for i1 in 0 to 512 map grid tile 32 {
// ASKED: kernel.reduce softmax_sum i3 in 0 to 512 map matrix tile 16 {

// What is weighed has no columns: no product.
kernel.func @vector(%x: !kernel.buffer<f32, 32768>, %v: !kernel.buffer<f32, 512>, %o: !kernel.buffer<f32, 64>) {
  kernel.for i0 in 0 to 64 {
    %m, %s, %t = kernel.reduce softmax_sum i3 in 0 to 512 {
      %p = kernel.load %x[512*i0 + i3]
      %g = kernel.load %v[i3]
      %one = arith.constant 1.0 : f32
      kernel.yield %p, %one, %g
    }
    %r = arith.divf %t, %s : f32
    kernel.store %r, %o[i0]
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @vector
// CHECK-NOT: matrix
// REMARK: missed: {{.*}}not on matrix units: the weights, or what they weigh, have no rows of their own

// A table of distances is loaded element by element, whose addresses take registers: twice the warps.
kernel.func @relative(%q: !kernel.buffer<bf16, 32768>, %k: !kernel.buffer<bf16, 32768>, %v: !kernel.buffer<bf16, 32768>,
                      %b: !kernel.buffer<f32, 1023>, %o: !kernel.buffer<f32, 32768>) {
  kernel.for i1 in 0 to 512 {
    kernel.for i2 in 0 to 64 {
      %m, %s, %t = kernel.reduce softmax_sum i3 in 0 to 512 {
        %p = kernel.reduce sum i4 in 0 to 64 {
          %1 = kernel.load %q[64*i1 + i4]
          %2 = kernel.load %k[64*i3 + i4]
          %3 = scalar.widen %1 : bf16 to f32
          %4 = scalar.widen %2 : bf16 to f32
          %5 = arith.mulf %3, %4 {precision = "bf16"} : f32
          kernel.yield %5
        }
        %d = kernel.load %b[511 + i3 - i1]
        %x = arith.addf %p, %d : f32
        %g = kernel.load %v[64*i3 + i2]
        %w = scalar.widen %g : bf16 to f32
        %one = arith.constant 1.0 : f32
        kernel.yield %x, %one, %w
      }
      %r = arith.divf %t, %s : f32
      kernel.store %r, %o[64*i1 + i2]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @relative
// CHECK-SAME: num_warps 8
// CHECK: kernel.reduce softmax_sum i3 in 0 to 512 map matrix tile 64 {
