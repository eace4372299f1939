// RUN: inductile-opt %s --verify-each -p host-donate | filecheck %s
// RUN: inductile-opt %s -p host-donate --remarks 2>&1 | filecheck %s --check-prefix=REMARK

kernel.func @steps(%x: !kernel.buffer<ui8, 36>, %y: !kernel.buffer<ui8, 36>) {
  kernel.for i0 in 0 to 36 {
    %v = kernel.load %x[i0]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// Nothing reads %r behind the second call, so that the sum may lie there. The first one leaves it for the second, and what that
// returns is donated, too.
host.func @residuals(%x: !aten.tensor<1x4x3x3xui8, strides = [36, 1, 12, 4]>, %w: !aten.tensor<4x4x1x1xi8>, %s: !aten.tensor<4xf32>, %z: !aten.tensor<4xi64>) -> (!aten.tensor<1x4x3x3xui8, strides = [36, 1, 12, 4]>) symbols [] {
  %r = host.empty : !aten.tensor<1x4x3x3xui8, strides = [36, 1, 12, 4]>
  host.launch @steps(%x, %r)
  %a = aten.call pure "inductile::requantised_convolution.sum"(%x, 0.5, 3, %w, %s, %z, none, [1, 1], [0, 0], [1, 1], 1, "relu", 0.25, 2, %r, 0.5, 1) : !aten.tensor<1x4x3x3xui8, strides = [36, 1, 12, 4]>
  %b = aten.call pure "inductile::requantised_convolution.sum"(%a, 0.5, 3, %w, %s, %z, none, [1, 1], [0, 0], [1, 1], 1, "relu", 0.25, 2, %r, 0.5, 1) : !aten.tensor<1x4x3x3xui8, strides = [36, 1, 12, 4]>
  %c = aten.call pure "inductile::requantised_convolution.sum"(%x, 0.5, 3, %w, %s, %z, none, [1, 1], [0, 0], [1, 1], 1, "relu", 0.25, 2, %b, 0.5, 1) : !aten.tensor<1x4x3x3xui8, strides = [36, 1, 12, 4]>
  host.return %c
}
// CHECK-LABEL: host.func @residuals
// CHECK: aten.call pure "inductile::requantised_convolution.sum"(%x,
// CHECK: aten.call "inductile::requantised_convolution.sum_"(%a,{{.*}} writes [4]
// CHECK: aten.call "inductile::requantised_convolution.sum_"(%x,{{.*}} writes [4]
// REMARK: passed: aten.call: its argument is donated bytes=36

// An argument of the program is the caller's, and what is convolved is read while the sum is written.
host.func @kept(%x: !aten.tensor<1x4x3x3xui8, strides = [36, 1, 12, 4]>, %w: !aten.tensor<4x4x1x1xi8>, %s: !aten.tensor<4xf32>, %z: !aten.tensor<4xi64>) -> (!aten.tensor<1x4x3x3xui8, strides = [36, 1, 12, 4]>) symbols [] {
  %r = host.empty : !aten.tensor<1x4x3x3xui8, strides = [36, 1, 12, 4]>
  host.launch @steps(%x, %r)
  %a = aten.call pure "inductile::requantised_convolution.sum"(%r, 0.5, 3, %w, %s, %z, none, [1, 1], [0, 0], [1, 1], 1, "relu", 0.25, 2, %x, 0.5, 1) : !aten.tensor<1x4x3x3xui8, strides = [36, 1, 12, 4]>
  %b = aten.call pure "inductile::requantised_convolution.sum"(%a, 0.5, 3, %w, %s, %z, none, [1, 1], [0, 0], [1, 1], 1, "relu", 0.25, 2, %a, 0.5, 1) : !aten.tensor<1x4x3x3xui8, strides = [36, 1, 12, 4]>
  host.return %b
}
// CHECK-LABEL: host.func @kept
// CHECK-NOT: sum_
// CHECK: host.return

// A convolution with a packed weight adds in place, too; one that adds nothing has nothing to write.
host.func @packed(%x: !aten.tensor<1x4x3x3xf32, strides = [36, 1, 12, 4]>, %w: !aten.tensor<4x4x1x1xf32>) -> (!aten.tensor<1x4x3x3xf32, strides = [36, 1, 12, 4]>) symbols [] {
  %a = aten.call pure "inductile::packed_convolution"(%x, %w, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1, "none", none) : !aten.tensor<1x4x3x3xf32, strides = [36, 1, 12, 4]>
  %b = aten.call pure "inductile::packed_convolution"(%x, %w, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1, "none", %a) : !aten.tensor<1x4x3x3xf32, strides = [36, 1, 12, 4]>
  host.return %b
}
// CHECK-LABEL: host.func @packed
// CHECK: %a = aten.call pure "inductile::packed_convolution"
// CHECK: %b = aten.call "inductile::packed_convolution_"(%x,{{.*}} %a) writes [2]
