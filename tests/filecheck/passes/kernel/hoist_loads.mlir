// RUN: inductile-opt %s --split-input-file --verify-each --target cuda:90 --pipeline schedule | filecheck %s
// RUN: inductile-opt %s --split-input-file --debug-counter kernel-hoist-loads-count=0 --target cuda:90 --pipeline schedule | filecheck %s --check-prefixes=LATE

// The chosen logit is read in front of the loop over its row; what the kernel writes itself is read where it was.

kernel.func @chosen(%x: !kernel.buffer<f32, 131072000>, %t: !kernel.buffer<i64, 4096>, %n: !kernel.buffer<f32, 4096>, %y: !kernel.buffer<f32, 4096>) {
  kernel.for i0 in 0 to 4096 {
    %s = kernel.reduce sum i1 in 0 to 32000 {
      %v = kernel.load %x[32000*i0 + i1]
      kernel.yield %v
    }
    %i = kernel.load %t[i0]
    %c = kernel.load %x[32000*i0 + d0] (d0 = %i)
    %d = arith.subf %c, %s : f32
    kernel.store %d, %n[i0]
    %e = kernel.load %n[4095 - i0]
    kernel.store %e, %y[i0]
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: @chosen
// CHECK: %i = kernel.load %t[i0]
// CHECK-NEXT: %c = kernel.load %x[32000*i0 + d0] (d0 = %i)
// CHECK-NEXT: kernel.reduce
// CHECK: arith.subf
// CHECK: kernel.load %n[-i0 + 4095]
// LATE: kernel.reduce
// LATE: %i = kernel.load %t[i0]
