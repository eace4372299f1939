// RUN: inductile-opt %s --split-input-file --verify-each -p kernel-place-locals | inductile-opt - --split-input-file | filecheck %s

// 64 KiB fit the stack; more, or a size that is not known, does not. Each lane has a buffer of its own.

kernel.func @rows(%x: !kernel.buffer<f32, n>, %y: !kernel.buffer<f32, n>) symbols (n) target "cpp" {
  kernel.for i0 in 0 to n {
    %v = kernel.load %x[i0]
    %a = kernel.local : !kernel.buffer<f32, 16384, local>
    %b = kernel.local : !kernel.buffer<f32, 16385, local>
    %c = kernel.local : !kernel.buffer<f32, n, local>
    kernel.store %v, %a[0]
    kernel.store %v, %b[0]
    kernel.store %v, %c[0]
    kernel.yield
  }
  kernel.for i1 in 0 to n map vector tile 16 {
    %d = kernel.local : !kernel.buffer<f32, 1024, local>
    %e = kernel.local : !kernel.buffer<f32, 1025, local>
    kernel.for i2 in 0 to 1024 {
      %v = kernel.load %x[i1]
      kernel.store %v, %d[i2]
      kernel.store %v, %e[i2]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @rows
// CHECK: kernel.local : !kernel.buffer<f32, 16384, local>
// CHECK-NEXT: kernel.local heap : !kernel.buffer<f32, 16385, local>
// CHECK-NEXT: kernel.local heap : !kernel.buffer<f32, n, local>
// CHECK: kernel.local : !kernel.buffer<f32, 1024, local>
// CHECK-NEXT: kernel.local heap : !kernel.buffer<f32, 1025, local>

// -----

// All of a kernel take 512 KiB at most, those of a GPU none.

kernel.func @many(%y: !kernel.buffer<f64, 8>) target "cpp" {
  %zero = arith.constant 0.0 : f64
  %a = kernel.local : !kernel.buffer<f64, 8192, local>
  %b = kernel.local : !kernel.buffer<f64, 8192, local>
  %c = kernel.local : !kernel.buffer<f64, 8192, local>
  %d = kernel.local : !kernel.buffer<f64, 8192, local>
  %e = kernel.local : !kernel.buffer<f64, 8192, local>
  %f = kernel.local : !kernel.buffer<f64, 8192, local>
  %g = kernel.local : !kernel.buffer<f64, 8192, local>
  %h = kernel.local : !kernel.buffer<f64, 8191, local>
  %i = kernel.local : !kernel.buffer<f64, 2, local>
  %j = kernel.local : !kernel.buffer<f64, 1, local>
  kernel.store %zero, %a[0]
  kernel.store %zero, %b[0]
  kernel.store %zero, %c[0]
  kernel.store %zero, %d[0]
  kernel.store %zero, %e[0]
  kernel.store %zero, %f[0]
  kernel.store %zero, %g[0]
  kernel.store %zero, %h[0]
  kernel.store %zero, %i[0]
  kernel.store %zero, %j[0]
  kernel.yield
}

kernel.func @gpu(%x: !kernel.buffer<f32, n>) symbols (n) target "cuda:90" num_warps 4 {
  %c = kernel.local : !kernel.buffer<f32, n, local>
  %v = kernel.load %x[0]
  kernel.store %v, %c[0]
  kernel.yield
}

// CHECK-LABEL: @many
// CHECK: kernel.local : !kernel.buffer<f64, 8191, local>
// CHECK-NEXT: kernel.local heap : !kernel.buffer<f64, 2, local>
// CHECK-NEXT: kernel.local : !kernel.buffer<f64, 1, local>
// CHECK-LABEL: @gpu
// CHECK: kernel.local : !kernel.buffer<f32, n, local>
