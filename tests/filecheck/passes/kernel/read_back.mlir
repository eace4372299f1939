// RUN: inductile-opt %s --split-input-file --verify-each=numerics -p kernel-read-back | filecheck %s

// What the row holds is in memory as well.

kernel.func @both(%x: !kernel.buffer<f32, 512>, %y: !kernel.buffer<f32, 512>, %z: !kernel.buffer<f32, 512>) {
  kernel.for i0 in 0 to 4 {
    %row = kernel.local : !kernel.buffer<f32, 128, local>
    kernel.for i1 in 0 to 128 {
      %v = kernel.load %x[128*i0 + i1]
      %e = math.exp %v : f32
      kernel.store %e, %row[i1]
      kernel.store %e, %y[128*i0 + i1]
      kernel.yield
    }
    kernel.for i1 in 0 to 128 {
      %e = kernel.load %row[i1]
      kernel.store %e, %z[128*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @run(%x: !aten.tensor<512xf32>, %y: !aten.tensor<512xf32>, %z: !aten.tensor<512xf32>) -> (!aten.tensor<512xf32>, !aten.tensor<512xf32>) {
  host.launch @both(%x, %y, %z)
  host.return %y, %z
}

// CHECK-LABEL: @both
// CHECK-NOT: kernel.local
// CHECK: kernel.load %y[128*i0 + i1]

// -----

// The result is overwritten: the row stays.

kernel.func @again(%x: !kernel.buffer<f32, 512>, %y: !kernel.buffer<f32, 512>) {
  kernel.for i0 in 0 to 4 {
    %row = kernel.local : !kernel.buffer<f32, 128, local>
    kernel.for i1 in 0 to 128 {
      %v = kernel.load %x[128*i0 + i1]
      kernel.store %v, %row[i1]
      kernel.store %v, %y[128*i0 + i1]
      kernel.yield
    }
    kernel.for i1 in 0 to 128 {
      %e = kernel.load %row[127 - i1]
      kernel.store %e, %y[128*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @run(%x: !aten.tensor<512xf32>, %y: !aten.tensor<512xf32>) -> (!aten.tensor<512xf32>) {
  host.launch @again(%x, %y)
  host.return %y
}

// CHECK-LABEL: @again
// CHECK: kernel.local
