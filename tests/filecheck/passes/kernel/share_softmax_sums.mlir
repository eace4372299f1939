// RUN: inductile-opt %s --target cuda:90 -p kernel-share-softmax-sums | filecheck %s

// The maximum of a row and the sum of exponentials are results of the sum over the softmax beside them.
kernel.func @statistics(%x: !kernel.buffer<f32, 32768>, %v: !kernel.buffer<f32, 8192>, %a: !kernel.buffer<f32, 64>, %b: !kernel.buffer<f32, 64>, %o: !kernel.buffer<f32, 1024>) {
  kernel.for i0 in 0 to 64 {
    %m = kernel.reduce max i1 in 0 to 512 {
      %p = kernel.load %x[512*i0 + i1]
      kernel.yield %p
    }
    kernel.store %m, %a[i0]
    %s = kernel.reduce sum i3 in 0 to 512 {
      %p = kernel.load %x[512*i0 + i3]
      %d = arith.subf %p, %m : f32
      %e = math.exp %d : f32
      kernel.yield %e
    }
    kernel.store %s, %b[i0]
    kernel.for i2 in 0 to 16 {
      %h, %t, %w = kernel.reduce softmax_sum i1 in 0 to 512 {
        %p = kernel.load %x[512*i0 + i1]
        %g = kernel.load %v[16*i1 + i2]
        %one = arith.constant 1.0 : f32
        kernel.yield %p, %one, %g
      }
      %r = arith.divf %w, %s : f32
      kernel.store %r, %o[16*i0 + i2]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @statistics
// CHECK-NEXT: kernel.for i0 in 0 to 64 {
// CHECK-NEXT: kernel.for i2 in 0 to 16 {
// CHECK-NEXT: %h, %t, %w = kernel.reduce softmax_sum i1 in 0 to 512 {
// CHECK: [[FIRST:%[0-9a-z]+]] = arith.cmpi eq
// CHECK-NEXT: [[NAN:%[0-9a-z]+]] = arith.subf %h, %h
// CHECK-NEXT: [[SUM:%[0-9a-z]+]] = arith.addf %t, [[NAN]]
// CHECK-NEXT: kernel.store %h, %a[i0] if [[FIRST]]
// CHECK-NEXT: kernel.store [[SUM]], %b[i0] if [[FIRST]]
// CHECK-NEXT: arith.divf %w, [[SUM]]

// The maximum is that of another row.
kernel.func @other(%x: !kernel.buffer<f32, 33280>, %v: !kernel.buffer<f32, 8192>, %a: !kernel.buffer<f32, 64>, %o: !kernel.buffer<f32, 1024>) {
  kernel.for i0 in 0 to 64 {
    %m = kernel.reduce max i1 in 0 to 512 {
      %p = kernel.load %x[512*i0 + i1 + 512]
      kernel.yield %p
    }
    kernel.store %m, %a[i0]
    kernel.for i2 in 0 to 16 {
      %h, %t, %w = kernel.reduce softmax_sum i1 in 0 to 512 {
        %p = kernel.load %x[512*i0 + i1]
        %g = kernel.load %v[16*i1 + i2]
        %one = arith.constant 1.0 : f32
        kernel.yield %p, %one, %g
      }
      %r = arith.divf %w, %m : f32
      kernel.store %r, %o[16*i0 + i2]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @other
// CHECK: kernel.reduce max
