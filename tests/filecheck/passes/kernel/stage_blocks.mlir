// RUN: inductile-opt %s --split-input-file --verify-each -p kernel-stage-blocks | filecheck %s

// The block of %x that lanes would read across its rows is copied along them first; %z is read along the lanes.

kernel.func @transposed(%x: !kernel.buffer<f32, 16384>, %z: !kernel.buffer<f32, 16384>, %y: !kernel.buffer<f32, 16384>) target "cpp" {
  kernel.for i2 in 0 to 2 map parallel {
    kernel.for i1 in 64*i2 to 64*i2 + 64 {
      kernel.for i0 in 0 to 64 map vector tile 16 {
        %v = kernel.load %x[128*i0 + i1]
        %w = kernel.load %z[128*i1 + i0]
        %s = arith.addf %v, %w : f32
        kernel.store %s, %y[128*i1 + i0]
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @transposed
// CHECK-NEXT: kernel.for i2 in 0 to 2 map parallel {
// CHECK-NEXT: %[[BLOCK:.*]] = kernel.local : !kernel.buffer<f32, 4096, local>
// CHECK-NEXT: kernel.for i3 in 0 to 64 {
// CHECK-NEXT: kernel.for i4 in 64*i2 to 64*i2 + 64 map vector tile 16 {
// CHECK-NEXT: %[[COPIED:.*]] = kernel.load %x[128*i3 + i4]
// CHECK-NEXT: kernel.store %[[COPIED]], %[[BLOCK]][
// CHECK: kernel.for i1 in 64*i2 to 64*i2 + 64 {
// CHECK-NEXT: kernel.for i0 in 0 to 64 map vector tile 16 {
// CHECK-NEXT: kernel.load %[[BLOCK]][
// CHECK-NEXT: kernel.load %z[128*i1 + i0]

// -----

// No more than a block fits the cache, a buffer that is written is not copied, and neither are a few lanes.

kernel.func @long(%x: !kernel.buffer<f32, 16384>, %y: !kernel.buffer<f32, 16384>) target "cpp" {
  kernel.for i1 in 0 to 128 {
    kernel.for i0 in 0 to 128 map vector tile 16 {
      %v = kernel.load %x[128*i0 + i1]
      kernel.store %v, %y[128*i1 + i0]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
kernel.func @written(%x: !kernel.buffer<f32, 4096>) target "cpp" {
  kernel.for i1 in 0 to 32 {
    kernel.for i0 in 0 to 32 map vector tile 16 {
      %v = kernel.load %x[64*i0 + i1 + 32]
      kernel.store %v, %x[64*i1 + i0]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
kernel.func @few(%x: !kernel.buffer<f32, 4096>, %y: !kernel.buffer<f32, 4096>) target "cpp" {
  kernel.for i1 in 0 to 64 {
    kernel.for i0 in 0 to 16 map vector tile 16 {
      %v = kernel.load %x[64*i0 + i1]
      kernel.store %v, %y[64*i1 + i0]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @long
// CHECK-NOT: kernel.local
