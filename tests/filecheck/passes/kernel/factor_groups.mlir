// RUN: inductile-opt %s --verify-each -p kernel-factor-groups | filecheck %s
// RUN: inductile-opt %s --verify-each -p kernel-factor-groups --remarks 2>&1 | filecheck %s --check-prefix=REMARK

// Numbers of 8 bits with a scale for each 64 of a column: a step is a group, and its sum is scaled.
kernel.func @groups(%x: !kernel.buffer<bf16, 4096>, %w: !kernel.buffer<i8, 16384>, %s: !kernel.buffer<bf16, 256>, %y: !kernel.buffer<f32, 1024>) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to 16 map grid tile 16 {
    kernel.for i1 in 0 to 64 map grid tile 64 {
      %g = kernel.reduce sum i2 in 0 to 256 map matrix tile 128 {
        %a = kernel.load %x[256*i0 + i2]
        %aw = scalar.widen %a : bf16 to f32
        %b = kernel.load %w[256*i1 + i2]
        %bw = scalar.cast %b : i8 to f32
        %f = kernel.load %s[4*i1 + i2 floordiv 64]
        %fw = scalar.widen %f : bf16 to f32
        %c = arith.mulf %bw, %fw : f32
        %n = scalar.narrow %c : f32 to bf16
        %r = scalar.widen %n : bf16 to f32
        %p = arith.mulf %aw, %r {precision = "bf16"} : f32
        kernel.yield %p
      }
      kernel.store %g, %y[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @groups
// CHECK: %g = kernel.reduce sum i3 in 0 to 4 {
// CHECK-NEXT: %[[F:.*]] = kernel.load %s[4*i1 + i3]
// CHECK-NEXT: %[[FW:.*]] = scalar.widen %[[F]]
// CHECK-NEXT: %[[SUM:.*]] = kernel.reduce sum i2 in 0 to 64 map matrix tile 64 {
// CHECK: kernel.load %x[256*i0 + 64*i3 + i2]
// CHECK: scalar.cast %{{.*}} : i8 to bf16
// CHECK-NOT: kernel.load %s
// CHECK: kernel.yield
// CHECK-NEXT: }
// CHECK-NEXT: arith.mulf %[[SUM]], %[[FW]]
// REMARK: passed: kernel.func: sums of groups are multiplied with their scales group=64

// One scale a column: the whole sum is scaled.
kernel.func @columns(%x: !kernel.buffer<bf16, 4096>, %w: !kernel.buffer<i8, 16384>, %s: !kernel.buffer<f32, 64>, %y: !kernel.buffer<f32, 1024>) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to 16 map grid tile 16 {
    kernel.for i1 in 0 to 64 map grid tile 64 {
      %g = kernel.reduce sum i2 in 0 to 256 map matrix tile 128 {
        %a = kernel.load %x[256*i0 + i2]
        %aw = scalar.widen %a : bf16 to f32
        %b = kernel.load %w[256*i1 + i2]
        %bw = scalar.cast %b : i8 to f32
        %f = kernel.load %s[i1]
        %c = arith.mulf %f, %bw : f32
        %n = scalar.narrow %c : f32 to bf16
        %r = scalar.widen %n : bf16 to f32
        %p = arith.mulf %aw, %r {precision = "bf16"} : f32
        kernel.yield %p
      }
      kernel.store %g, %y[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @columns
// CHECK: %g = kernel.reduce sum i2 in 0 to 256 map matrix tile 128 {
// CHECK-NOT: kernel.load %s
// CHECK: kernel.yield
// CHECK: %[[F:.*]] = kernel.load %s[i1]
// CHECK-NEXT: %[[Y:.*]] = arith.mulf %g, %[[F]]
// CHECK-NEXT: kernel.store %[[Y]]

// Groups of 8 are fewer elements than units take at once, and a scale for each element is none of a group.
kernel.func @small(%x: !kernel.buffer<bf16, 4096>, %w: !kernel.buffer<i8, 16384>, %s: !kernel.buffer<bf16, 16384>, %y: !kernel.buffer<f32, 1024>) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to 16 map grid tile 16 {
    kernel.for i1 in 0 to 64 map grid tile 64 {
      %g, %h = kernel.reduce [sum, sum] i2 in 0 to 256 map matrix tile 128 {
        %a = kernel.load %x[256*i0 + i2]
        %aw = scalar.widen %a : bf16 to f32
        %b = kernel.load %w[256*i1 + i2]
        %bw = scalar.cast %b : i8 to f32
        %f = kernel.load %s[32*i1 + i2 floordiv 8]
        %fw = scalar.widen %f : bf16 to f32
        %c = arith.mulf %bw, %fw : f32
        %n = scalar.narrow %c : f32 to bf16
        %r = scalar.widen %n : bf16 to f32
        %p = arith.mulf %aw, %r {precision = "bf16"} : f32
        %e = kernel.load %s[256*i1 + i2]
        %ew = scalar.widen %e : bf16 to f32
        %d = arith.mulf %bw, %ew : f32
        %dn = scalar.narrow %d : f32 to bf16
        %dr = scalar.widen %dn : bf16 to f32
        %q = arith.mulf %aw, %dr {precision = "bf16"} : f32
        kernel.yield %p, %q
      }
      %t = arith.addf %g, %h : f32
      kernel.store %t, %y[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @small
// CHECK: kernel.reduce [sum, sum] i2 in 0 to 256 map matrix tile 128 {
// CHECK-NOT: kernel.reduce
