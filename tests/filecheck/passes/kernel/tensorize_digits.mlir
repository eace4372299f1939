// RUN: inductile-opt %s --split-input-file --verify-each -p kernel-tensorize | inductile-opt - --split-input-file | filecheck %s
// RUN: inductile-opt %s --split-input-file -p kernel-tensorize -t cpp | filecheck %s --check-prefix=CPP

// Numbers of 4 bits, two a byte, with a scale for two groups of 16 bytes.
// CHECK-LABEL: @row
// CHECK: kernel.reduce sum i2 in 0 to 16 map vector tile 16 intrinsic dot_digits {
// CHECK-NEXT: kernel.reduce sum i1 in 0 to 8 {
// CPP: const float [[V:.*]] = dot_digits<16, 8, 2, uint16_t>(&x[0], 32, &w[128*i0], 16, &s[4*i0], 1, 8);
kernel.func @row(%x: !kernel.buffer<bf16, 256>, %w: !kernel.buffer<ui8, 4096>, %s: !kernel.buffer<bf16, 128>, %y: !kernel.buffer<f32, 32>) target "cpp" {
  kernel.for i0 in 0 to 32 {
    %0 = kernel.reduce sum i2 in 0 to 16 map vector tile 16 {
      %1 = kernel.reduce sum i1 in 0 to 8 {
        %a = kernel.load %x[32*i1 + 2*i2]
        %b = kernel.load %w[128*i0 + 16*i1 + i2]
        %c15 = arith.constant 15 : i8
        %low = arith.andi %b, %c15 : i8
        %f = scalar.cast %low : ui8 to f32
        %c8 = arith.constant 8.0 : f32
        %g = arith.subf %f, %c8 : f32
        %q = kernel.load %s[4*i0 + i1 floordiv 2]
        %scale = scalar.widen %q : bf16 to f32
        %h = arith.mulf %g, %scale : f32
        %aw = scalar.widen %a : bf16 to f32
        %p = arith.mulf %aw, %h : f32
        %a2 = kernel.load %x[32*i1 + 2*i2 + 1]
        %c4 = arith.constant 4 : i8
        %high = arith.shrui %b, %c4 : i8
        %f2 = scalar.cast %high : ui8 to f32
        %g2 = arith.subf %f2, %c8 : f32
        %h2 = arith.mulf %g2, %scale : f32
        %aw2 = scalar.widen %a2 : bf16 to f32
        %p2 = arith.mulf %aw2, %h2 : f32
        %t = arith.addf %p, %p2 : f32
        kernel.yield %t
      }
      kernel.yield %1
    }
    kernel.store %0, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// -----

// The halves of a byte meet x in the other order: plain loops.
// CHECK-LABEL: @other_order
// CHECK: kernel.reduce sum i2 in 0 to 16 map vector tile 16 {
kernel.func @other_order(%x: !kernel.buffer<bf16, 256>, %w: !kernel.buffer<ui8, 4096>, %s: !kernel.buffer<f32, 256>, %y: !kernel.buffer<f32, 32>) target "cpp" {
  kernel.for i0 in 0 to 32 {
    %0 = kernel.reduce sum i2 in 0 to 16 map vector tile 16 {
      %1 = kernel.reduce sum i1 in 0 to 8 {
        %a = kernel.load %x[32*i1 + 2*i2 + 1]
        %b = kernel.load %w[128*i0 + 16*i1 + i2]
        %c15 = arith.constant 15 : i8
        %low = arith.andi %b, %c15 : i8
        %f = scalar.cast %low : ui8 to f32
        %scale = kernel.load %s[8*i0 + i1]
        %h = arith.mulf %f, %scale : f32
        %aw = scalar.widen %a : bf16 to f32
        %p = arith.mulf %aw, %h : f32
        %a2 = kernel.load %x[32*i1 + 2*i2]
        %c4 = arith.constant 4 : i8
        %high = arith.shrui %b, %c4 : i8
        %f2 = scalar.cast %high : ui8 to f32
        %h2 = arith.mulf %f2, %scale : f32
        %aw2 = scalar.widen %a2 : bf16 to f32
        %p2 = arith.mulf %aw2, %h2 : f32
        %t = arith.addf %p, %p2 : f32
        kernel.yield %t
      }
      kernel.yield %1
    }
    kernel.store %0, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// -----

// Two rows of bytes beside one of bfloat16.
// CHECK-LABEL: @bytes
// CHECK: kernel.reduce [sum, sum] i1 in 0 to 96 map vector tile 32 intrinsic dot_bytes {
// CPP: const float [[A:.*]] = dot_bytes(&x[0], &w[96*i0], 96);
// CPP-NEXT: const float [[B:.*]] = dot_bytes(&x[0], &v[96*i0], 96);
kernel.func @bytes(%x: !kernel.buffer<bf16, 96>, %w: !kernel.buffer<i8, 3072>, %v: !kernel.buffer<ui8, 3072>, %y: !kernel.buffer<f32, 32>) target "cpp" {
  kernel.for i0 in 0 to 32 {
    %0, %1 = kernel.reduce [sum, sum] i1 in 0 to 96 map vector tile 32 {
      %a = kernel.load %x[i1]
      %b = kernel.load %w[96*i0 + i1]
      %c = kernel.load %v[96*i0 + i1]
      %aw = scalar.widen %a : bf16 to f32
      %f = scalar.cast %b : i8 to f32
      %g = scalar.cast %c : ui8 to f32
      %p = arith.mulf %aw, %f : f32
      %q = arith.mulf %g, %aw : f32
      kernel.yield %p, %q
    }
    %t = arith.addf %0, %1 : f32
    kernel.store %t, %y[i0]
    kernel.yield
  }
  kernel.yield
}
