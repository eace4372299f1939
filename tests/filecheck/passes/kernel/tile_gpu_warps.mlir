// RUN: inductile-opt %s --split-input-file --verify-each -p 'kernel-tile{target="cuda:90"}' | filecheck %s

// Two inputs of 16 bits, 1024 elements a program: 16 for a thread.

kernel.func @two(%x: !kernel.buffer<bf16, 33554432>, %y: !kernel.buffer<bf16, 33554432>, %z: !kernel.buffer<bf16, 33554432>) {
  kernel.for i0 in 0 to 33554432 {
    %a = kernel.load %x[i0]
    %b = kernel.load %y[i0]
    %c = arith.addf %a, %b : bf16
    kernel.store %c, %z[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @two
// CHECK-SAME: num_warps 2

// -----

// Three, and two results: 8 for a thread, and the first result waits until the last input is on its way.

kernel.func @three(%x: !kernel.buffer<bf16, 33554432>, %y: !kernel.buffer<bf16, 33554432>, %w: !kernel.buffer<bf16, 33554432>, %z: !kernel.buffer<bf16, 33554432>, %o: !kernel.buffer<bf16, 33554432>) {
  kernel.for i0 in 0 to 33554432 {
    %a = kernel.load %x[i0]
    %b = kernel.load %y[i0]
    %c = arith.addf %a, %b : bf16
    kernel.store %c, %z[i0]
    %d = kernel.load %w[i0]
    %e = arith.mulf %c, %d : bf16
    kernel.store %e, %o[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @three
// CHECK-SAME: num_warps 4
// CHECK:        kernel.load %w[i0]
// CHECK-NOT:    kernel.load
// CHECK:        kernel.store %c, %z[i0]
// CHECK-NEXT:   kernel.store %e, %o[i0]

// -----

// What is read back stays behind its store.

kernel.func @back(%x: !kernel.buffer<f32, 33554432>, %y: !kernel.buffer<f32, 33554432>, %z: !kernel.buffer<f32, 33554432>) {
  kernel.for i0 in 0 to 16777216 {
    %a = kernel.load %x[i0]
    kernel.store %a, %z[i0]
    %b = kernel.load %y[i0]
    %c = kernel.load %z[i0 + 16777216]
    %d = arith.addf %b, %c : f32
    kernel.store %d, %z[i0 + 16777216]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @back
// CHECK:        kernel.load %y
// CHECK-NEXT:   kernel.store %a, %z[i0]
// CHECK-NEXT:   kernel.load %z

// -----

// 512 programs of 8 warps would leave half of the GPU idle.

kernel.func @few(%x: !kernel.buffer<f32, 16777216>, %y: !kernel.buffer<f32, 512>) {
  kernel.for i0 in 0 to 512 {
    %s = kernel.reduce sum r0 in 0 to 32768 {
      %v = kernel.load %x[32768*i0 + r0]
      kernel.yield %v
    }
    kernel.store %s, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @few
// CHECK-SAME: num_warps 16

// -----

// Many have enough, and a thread the registers for 32 elements.

kernel.func @many(%x: !kernel.buffer<bf16, 268435456>, %y: !kernel.buffer<f32, 8192>) {
  kernel.for i0 in 0 to 8192 {
    %s = kernel.reduce sum r0 in 0 to 32768 {
      %v = kernel.load %x[32768*i0 + r0]
      %w = scalar.widen %v : bf16 to f32
      kernel.yield %w
    }
    kernel.store %s, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @many
// CHECK-SAME: num_warps 8

// -----

// Two sums of pieces of rows, gathered element by element over a loop around them, take registers too.

kernel.func @pieces(%x: !kernel.buffer<bf16, 134217728>, %t: !kernel.buffer<bf16, 134217728>, %y: !kernel.buffer<f32, 4096>, %z: !kernel.buffer<f32, 4096>) {
  kernel.for i0 in 0 to 4096 {
    %s, %q = kernel.reduce [sum, sum] r0 in 0 to 8 {
      %a, %b = kernel.reduce [sum, sum] r1 in 0 to 4096 {
        %v = kernel.load %x[16777216*r0 + 4096*i0 + r1]
        %w = scalar.widen %v : bf16 to f32
        %l = kernel.load %t[16777216*r0 + 4096*i0 + r1]
        %m = scalar.widen %l : bf16 to f32
        %p = arith.mulf %w, %m : f32
        kernel.yield %w, %p
      }
      kernel.yield %a, %b
    }
    kernel.store %s, %y[i0]
    kernel.store %q, %z[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @pieces
// CHECK-SAME: num_warps 16

// -----

// Rows of 3136 elements would leave a quarter of 4096 lanes idle: tiles go on from one to the next.

kernel.func @waste(%x: !kernel.buffer<bf16, 51380224>, %y: !kernel.buffer<f32, 2048>) {
  kernel.for i0 in 0 to 8 {
    kernel.for i1 in 0 to 256 {
      %s = kernel.reduce sum r0 in 0 to 8 {
        %a = kernel.reduce sum r1 in 0 to 3136 {
          %v = kernel.load %x[6422528*i0 + 802816*r0 + 3136*i1 + r1]
          %w = scalar.widen %v : bf16 to f32
          kernel.yield %w
        }
        kernel.yield %a
      }
      kernel.store %s, %y[256*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @waste
// CHECK-SAME: num_warps 4
// CHECK: %s = kernel.reduce sum i2 in 0 to 25088 map vector tile 2048 {
// CHECK-NEXT: kernel.load %x[6422528*i0 + 802816*(i2 floordiv 3136) + 3136*i1 + i2 mod 3136]
// CHECK-NOT: kernel.reduce
