// RUN: inductile-opt %s --target cuda:90 --verify-each -p kernel-unpack-digits | filecheck %s

// Both halves of a byte, of which 8 is taken off; of one that something else reads too it is not.
kernel.func @halves(%x: !kernel.buffer<ui8, 512>, %y: !kernel.buffer<f32, 512>) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to 512 map grid tile 512 {
    %b = kernel.load %x[i0]
    %c15 = arith.constant 15 : i8
    %low = arith.andi %b, %c15 : i8
    %l = scalar.cast %low : ui8 to f32
    %c8 = arith.constant 8.0 : f32
    %centred = arith.subf %l, %c8 : f32
    %c4 = arith.constant 4 : i8
    %high = arith.shrui %b, %c4 : i8
    %h = scalar.cast %high : ui8 to f32
    %d = arith.subf %h, %c8 : f32
    %p = arith.mulf %centred, %d : f32
    %q = arith.mulf %p, %h : f32
    kernel.store %q, %y[i0]
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @halves
// CHECK: %b = kernel.load
// CHECK-NEXT: %l = scalar.low_digits %b less 8
// CHECK-NEXT: arith.constant 8.0
// CHECK-NEXT: %h = scalar.high_digits %b
// CHECK-NEXT: %d = arith.subf %h
// CHECK-NEXT: arith.mulf %l, %d

// What is rounded to 16 bits everywhere is one of 16 bits at once; what is not exact in them is rounded.
kernel.func @rounded(%x: !kernel.buffer<ui8, 512>, %y: !kernel.buffer<bf16, 512>) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to 512 map grid tile 512 {
    %b = kernel.load %x[i0]
    %c15 = arith.constant 15 : i8
    %low = arith.andi %b, %c15 : i8
    %l = scalar.cast %low : ui8 to f32
    %c8 = arith.constant 8.0 : f32
    %centred = arith.subf %l, %c8 : f32
    %n = scalar.narrow %centred : f32 to bf16
    kernel.store %n, %y[i0]
    %c4 = arith.constant 4 : i8
    %high = arith.shrui %b, %c4 : i8
    %h = scalar.cast %high : ui8 to f32
    %c999 = arith.constant 999.0 : f32
    %d = arith.subf %h, %c999 : f32
    %m = scalar.narrow %d : f32 to bf16
    kernel.store %m, %y[i0]
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @rounded
// CHECK: %[[N:.*]] = scalar.low_digits %b less 8 to bf16
// CHECK-NEXT: kernel.store %[[N]]
// CHECK: %[[D:.*]] = scalar.high_digits %b less 999
// CHECK-NEXT: scalar.narrow %[[D]]
