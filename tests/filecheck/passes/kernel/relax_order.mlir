// RUN: inductile-opt %s --verify-each --target cuda:90 -p kernel-relax-order | filecheck %s
// RUN: inductile-opt %s -p kernel-relax-order | filecheck %s --check-prefix=CPU

// Which of two plain stores wins is not said on a GPU; sums keep their atomicity, and a set on a CPU its order.

kernel.func @set(%x: !kernel.buffer<f32, 64>, %i: !kernel.buffer<i64, 64>, %y: !kernel.buffer<f32, 8>, %z: !kernel.buffer<f32, 8>) {
  kernel.for i0 in 0 to 64 {
    %v = kernel.load %x[i0]
    %j = kernel.load %i[i0]
    kernel.store ordered %v, %y[d0] (d0 = %j)
    kernel.store add atomic %v, %z[d0] (d0 = %j)
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @set
// CHECK: kernel.store %v, %y[d0] (d0 = %j)
// CHECK-NEXT: kernel.store add atomic %v, %z[d0] (d0 = %j)
// CPU: kernel.store ordered %v, %y[d0] (d0 = %j)

// A kernel that is tiled already is left alone.

kernel.func @tiled(%x: !kernel.buffer<f32, 64>, %i: !kernel.buffer<i64, 64>, %y: !kernel.buffer<f32, 8>) target "cuda:90" {
  kernel.for i0 in 0 to 64 {
    %v = kernel.load %x[i0]
    %j = kernel.load %i[i0]
    kernel.store ordered %v, %y[d0] (d0 = %j)
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @tiled
// CHECK: kernel.store ordered
