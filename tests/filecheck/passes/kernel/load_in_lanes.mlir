// RUN: inductile-opt %s --target cuda:90 -p kernel-load-in-lanes | filecheck %s
// RUN: inductile-opt %s --target cuda:90 -p kernel-load-in-lanes -t triton | filecheck %s --check-prefix=TRITON

// A table of distances is read where lanes use it; a matrix of biases, whose rows lie side by side, is not.
kernel.func @distances(%q: !kernel.buffer<bf16, 2048>, %k: !kernel.buffer<bf16, 2048>, %table: !kernel.buffer<bf16, 255>, %bias: !kernel.buffer<bf16, 16384>, %o: !kernel.buffer<f32, 2048>) target "cuda:90" num_warps 4 {
  kernel.for i1 in 0 to 128 map grid tile 64 {
    kernel.for i2 in 0 to 16 map vector tile 16 {
      %g = kernel.reduce sum i3 in 0 to 128 map matrix tile 32 {
        %p = kernel.reduce sum i4 in 0 to 16 map matrix tile 16 {
          %a = kernel.load %q[16*i1 + i4]
          %b = kernel.load %k[16*i3 + i4]
          %aw = scalar.widen %a : bf16 to f32
          %bw = scalar.widen %b : bf16 to f32
          %c = arith.mulf %aw, %bw : f32
          kernel.yield %c
        }
        %t = kernel.load %table[i3 - i1 + 127]
        %tw = scalar.widen %t : bf16 to f32
        %m = kernel.load %bias[128*i1 + i3]
        %mw = scalar.widen %m : bf16 to f32
        %x = arith.addf %p, %tw : f32
        %y = arith.addf %x, %mw : f32
        %n = scalar.narrow %y : f32 to bf16
        %w = scalar.widen %n : bf16 to f32
        %v = kernel.load %k[16*i3 + i2]
        %vw = scalar.widen %v : bf16 to f32
        %r = arith.mulf %w, %vw : f32
        kernel.yield %r
      }
      kernel.store %g, %o[16*i1 + i2]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @distances
// CHECK: kernel.load %q[16*i1 + i4]
// CHECK: kernel.load in_lanes %table[-i1 + i3 + 127]
// CHECK: kernel.load %bias[128*i1 + i3]
// CHECK: kernel.load %k[16*i3 + i2]

// TRITON: = nvidia.load_in_lanes(table, -i1 + i3 + 127)
// TRITON: = tl.load(bias + (128 * i1 + i3)).to(tl.float32)

// What the kernel stores, and a single row of numbers, stay as they are.
kernel.func @stored(%q: !kernel.buffer<bf16, 2048>, %k: !kernel.buffer<bf16, 2048>, %row: !kernel.buffer<f32, 255>, %o: !kernel.buffer<f32, 2048>) target "cuda:90" num_warps 4 {
  kernel.for i1 in 0 to 128 map grid tile 64 {
    kernel.for i2 in 0 to 16 map vector tile 16 {
      %g = kernel.reduce sum i3 in 0 to 128 map matrix tile 32 {
        %p = kernel.reduce sum i4 in 0 to 16 map matrix tile 16 {
          %a = kernel.load %q[16*i1 + i4]
          %b = kernel.load %k[16*i3 + i4]
          %aw = scalar.widen %a : bf16 to f32
          %bw = scalar.widen %b : bf16 to f32
          %c = arith.mulf %aw, %bw : f32
          kernel.yield %c
        }
        %t = kernel.load %o[i3 - i1 + 127]
        %u = kernel.load %row[i3]
        %x = arith.addf %p, %t : f32
        %y = arith.addf %x, %u : f32
        %n = scalar.narrow %y : f32 to bf16
        %w = scalar.widen %n : bf16 to f32
        %v = kernel.load %k[16*i3 + i2]
        %vw = scalar.widen %v : bf16 to f32
        %r = arith.mulf %w, %vw : f32
        kernel.yield %r
      }
      kernel.store %g, %o[16*i1 + i2]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @stored
// CHECK-NOT: in_lanes

// Nobody has measured it on this one.
kernel.func @unmeasured(%q: !kernel.buffer<bf16, 2048>, %k: !kernel.buffer<bf16, 2048>, %row: !kernel.buffer<f32, 255>, %o: !kernel.buffer<f32, 2048>) target "cuda:80" num_warps 4 {
  kernel.for i1 in 0 to 128 map grid tile 64 {
    kernel.for i2 in 0 to 16 map vector tile 16 {
      %g = kernel.reduce sum i3 in 0 to 128 map matrix tile 32 {
        %p = kernel.reduce sum i4 in 0 to 16 map matrix tile 16 {
          %a = kernel.load %q[16*i1 + i4]
          %b = kernel.load %k[16*i3 + i4]
          %aw = scalar.widen %a : bf16 to f32
          %bw = scalar.widen %b : bf16 to f32
          %c = arith.mulf %aw, %bw : f32
          kernel.yield %c
        }
        %t = kernel.load %row[i3 - i1 + 127]
        %u = kernel.load %row[i3]
        %x = arith.addf %p, %t : f32
        %y = arith.addf %x, %u : f32
        %n = scalar.narrow %y : f32 to bf16
        %w = scalar.widen %n : bf16 to f32
        %v = kernel.load %k[16*i3 + i2]
        %vw = scalar.widen %v : bf16 to f32
        %r = arith.mulf %w, %vw : f32
        kernel.yield %r
      }
      kernel.store %g, %o[16*i1 + i2]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @unmeasured
// CHECK-NOT: in_lanes
