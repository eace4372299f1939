// RUN: inductile-opt %s --split-input-file --verify-each --target cuda:90 -p kernel-map,kernel-join-axes | filecheck %s
// RUN: inductile-opt %s --split-input-file --verify-each --target cuda:90 -p 'kernel-map,kernel-join-axes{longest-row=64}' | filecheck %s --check-prefix=SHORT

// Rows of 33 elements leave many lanes of each tile idle: one axis over all of them, with its tile.

kernel.func @ragged(%x: !kernel.buffer<f32, 40000>, %y: !kernel.buffer<f32, 33000>) {
  kernel.for i0 in 0 to 1000 {
    kernel.for i1 in 0 to 33 {
      %v = kernel.load %x[40*i0 + i1]
      kernel.store %v, %y[33*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @ragged
// CHECK-NEXT: kernel.for i2 in 0 to 33000 map grid tile 128 {
// CHECK-NEXT: kernel.load %x[40*(i2 floordiv 33) + i2 mod 33]

// -----

// Tiles of these axes waste nothing.

kernel.func @full(%x: !kernel.buffer<f32, 81920>, %y: !kernel.buffer<f32, 65536>) {
  kernel.for i0 in 0 to 1024 {
    kernel.for i1 in 0 to 64 {
      %v = kernel.load %x[80*i0 + i1]
      kernel.store %v, %y[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @full
// CHECK-NEXT: kernel.for i0 in 0 to 1024 map grid {
// CHECK-NEXT: kernel.for i1 in 0 to 64 map grid {

// -----

// A mean over planes of 40 by 40: of sums nothing is kept, so that a tile need not end where a row does.

kernel.func @planes(%x: !kernel.buffer<f32, 1638400>, %y: !kernel.buffer<f32, 1024>) {
  kernel.for i0 in 0 to 1024 {
    %s = kernel.reduce sum i1 in 0 to 40 {
      %r = kernel.reduce sum i2 in 0 to 40 {
        %v = kernel.load %x[1600*i0 + 40*i1 + i2]
        kernel.yield %v
      }
      kernel.yield %r
    }
    kernel.store %s, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @planes
// CHECK-NEXT: kernel.for i0 in 0 to 1024 map grid {
// CHECK-NEXT: kernel.reduce sum i3 in 0 to 1600 map vector tile 128 {
// CHECK-NEXT: kernel.load %x[{{.*}}]

// -----

// What follows a reduction in a perfect nest is covered by one tile, unless rows may be no longer than 64 elements.

kernel.func @heads(%x: !kernel.buffer<f32, 131072>, %y: !kernel.buffer<f32, 131072>) {
  kernel.for i0 in 0 to 512 {
    %s = kernel.reduce sum i1 in 0 to 256 {
      %v = kernel.load %x[256*i0 + i1]
      kernel.yield %v
    }
    kernel.for i2 in 0 to 4 {
      kernel.for i3 in 0 to 64 {
        %v = kernel.load %x[256*i0 + 64*i2 + i3]
        %d = arith.divf %v, %s : f32
        kernel.store %d, %y[32768*i2 + 64*i0 + i3]
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @heads
// CHECK: kernel.for i4 in 0 to 256 {
// SHORT-LABEL: @heads
// SHORT: kernel.for i2 in 0 to 4 {
// SHORT-NEXT: kernel.for i3 in 0 to 64 {
