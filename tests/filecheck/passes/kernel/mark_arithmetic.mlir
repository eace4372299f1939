// RUN: inductile-opt %s --split-input-file --verify-each -p kernel-mark-arithmetic | filecheck %s
// RUN: inductile-opt %s --split-input-file -p kernel-mark-arithmetic -t triton | filecheck %s --check-prefix=CODE

// A row shares its sum; one quotient a row stays as it is.
kernel.func @softmax(%x: !kernel.buffer<f32, 4096>, %y: !kernel.buffer<f32, 4096>, %z: !kernel.buffer<f32, 64>) target "cuda:90" num_warps 1 {
  kernel.for i0 in 0 to 64 map grid {
    %s = kernel.reduce sum i1 in 0 to 64 map vector tile 64 {
      %v = kernel.load %x[64*i0 + i1]
      kernel.yield %v
    }
    %64 = arith.constant 64.0 : f32
    %m = arith.divf %s, %64 : f32
    kernel.store %m, %z[i0]
    kernel.for i1 in 0 to 64 map vector tile 64 {
      %v = kernel.load %x[64*i0 + i1]
      %q = arith.divf %v, %s : f32
      kernel.store %q, %y[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @softmax
// CHECK: %m = arith.divf %s, {{.*}} : f32
// CHECK: %q = arith.divf {{.*}}, %s {divisor = "shared"} : f32
// CODE: tl.div_rn(
// CODE: nvidia.divide_by_shared(

// -----

// 1 + exp(x) is at least 1, and what is added to 1 may be 0 where it is tiny; of other divisors nothing is known.
kernel.func @sigmoid(%x: !kernel.buffer<f32, 512>, %y: !kernel.buffer<f32, 512>, %z: !kernel.buffer<f32, 512>) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to 512 map grid tile 512 {
    %v = kernel.load %x[i0]
    %e = math.exp %v fastmath<afn> : f32
    %one = arith.constant 1.0 : f32
    %d = arith.addf %e, %one : f32
    %q = arith.divf %v, %d : f32
    kernel.store %q, %y[i0]
    %r = arith.divf %d, %v : f32
    kernel.store %r, %z[i0]
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @sigmoid
// CHECK: %e = math.exp %v fastmath<afn> {tiny = "zero"} : f32
// CHECK: %q = arith.divf %v, %d {divisor = "at_least_one"} : f32
// CHECK: %r = arith.divf %d, %v : f32
// CODE: nvidia.exp_or_zero(
// CODE: nvidia.divide_by_at_least_one(
// CODE: tl.div_rn(

// -----

// Other GPUs have no such functions.
kernel.func @amd(%x: !kernel.buffer<f32, 512>, %s: !kernel.buffer<f32, 1>) target "hip:gfx942" num_warps 4 {
  kernel.for i0 in 0 to 512 map grid tile 512 {
    %v = kernel.load %x[i0]
    %s0 = kernel.load %s[0]
    %q = arith.divf %v, %s0 : f32
    kernel.store %q, %x[i0]
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @amd
// CHECK: arith.divf {{.*}}, %s0 : f32
