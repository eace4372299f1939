// RUN: inductile-opt %s --split-input-file --verify-each --target cpp -p kernel-unroll-windows | filecheck %s
// RUN: inductile-opt %s --split-input-file --target cuda:90 -p kernel-unroll-windows | filecheck %s --check-prefix=GPU

// Lanes can run along i1: the window is written out, in order.

kernel.func @window(%x: !kernel.buffer<f32, 272>, %w: !kernel.buffer<f32, 16>, %y: !kernel.buffer<f32, 256>) {
  kernel.for i0 in 0 to 8 {
    kernel.for i1 in 0 to 32 {
      %s = kernel.reduce sum i2 in 0 to 2 {
        %a = kernel.load %x[34*i0 + i1 + 2*i2]
        %b = kernel.load %w[2*i0 + i2]
        %p = arith.mulf %a, %b : f32
        kernel.yield %p
      }
      kernel.store %s, %y[32*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @window
// CHECK:         kernel.for i1 in 0 to 32 {
// CHECK-NEXT:      %[[Z:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:      %[[A:.*]] = kernel.load %x[34*i0 + i1]
// CHECK-NEXT:      %[[B:.*]] = kernel.load %w[2*i0]
// CHECK-NEXT:      %[[P:.*]] = arith.mulf %[[A]], %[[B]] : f32
// CHECK-NEXT:      %[[S:.*]] = arith.addf %[[Z]], %[[P]] : f32
// CHECK-NEXT:      kernel.load %x[34*i0 + i1 + 2]
// CHECK-NEXT:      kernel.load %w[2*i0 + 1]
// CHECK-NOT:       kernel.reduce
// GPU-LABEL: kernel.func @window
// GPU:         kernel.reduce sum

// -----

// A row that is summed along memory has lanes of its own; a long window stays a loop; so does a product.

kernel.func @row(%x: !kernel.buffer<f32, 256>, %y: !kernel.buffer<f32, 16>) {
  kernel.for i0 in 0 to 16 {
    %s = kernel.reduce sum i1 in 0 to 16 { %a = kernel.load %x[16*i0 + i1]  kernel.yield %a }
    kernel.store %s, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @row
// CHECK:         kernel.reduce sum

// -----

kernel.func @long(%x: !kernel.buffer<f32, 384>, %y: !kernel.buffer<f32, 256>) {
  kernel.for i0 in 0 to 256 {
    %s = kernel.reduce sum i1 in 0 to 128 { %a = kernel.load %x[i0 + i1]  kernel.yield %a }
    kernel.store %s, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @long
// CHECK:         kernel.reduce sum

// -----

kernel.func @maximum(%x: !kernel.buffer<f32, 260>, %y: !kernel.buffer<f32, 256>) {
  kernel.for i0 in 0 to 256 {
    %s = kernel.reduce max i1 in 0 to 3 { %a = kernel.load %x[i0 + i1]  kernel.yield %a }
    kernel.store %s, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @maximum
// CHECK-COUNT-3: arith.maximumf

// -----

kernel.func @product(%x: !kernel.buffer<f32, 260>, %y: !kernel.buffer<f32, 256>) {
  kernel.for i0 in 0 to 256 {
    %s = kernel.reduce prod i1 in 0 to 3 { %a = kernel.load %x[i0 + i1]  kernel.yield %a }
    kernel.store %s, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @product
// CHECK:         kernel.reduce prod

// -----

// The place of the last NaN of a window counts where places of NaNs are inverted: what lanes carry is not inverted.

kernel.func @last_nan(%x: !kernel.buffer<f32, 34>, %y: !kernel.buffer<i64, 32>) {
  kernel.for i0 in 0 to 32 {
    %m, %p = kernel.reduce argmax i1 in 0 to 2 {
      %v = kernel.load %x[i0 + i1]
      %at = kernel.index i0 + i1
      %ones = arith.constant -1 : i64
      %inverse = arith.xori %at, %ones : i64
      %nan = scalar.isnan %v : f32
      %rank = arith.select %nan, %inverse, %at : i64
      kernel.yield %v, %rank
    }
    %none = arith.constant 0 : i64
    %ones = arith.constant -1 : i64
    %below = arith.cmpi slt, %p, %none : i64
    %inverse = arith.xori %p, %ones : i64
    %place = arith.select %below, %inverse, %p : i64
    kernel.store %place, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @last_nan
// CHECK-NOT:     arith.xori
// CHECK:         %[[NONE:.*]] = arith.constant -1 : i32
// CHECK-NEXT:    %[[FIRST:.*]] = arith.cmpf uno, %v, %v : f32
// CHECK-NEXT:    %[[AT:.*]] = arith.select %[[FIRST]], %{{.*}}, %[[NONE]] : i32
// CHECK-NEXT:    %[[LAST:.*]] = arith.cmpf uno, %v_1, %v_1 : f32
// CHECK-NEXT:    arith.select %[[LAST]], %{{.*}}, %[[AT]] : i32
// CHECK-NOT:     arith.xori
// CHECK:         kernel.store %p, %y[i0]
