// RUN: inductile-opt %s --split-input-file --target cuda:90 --verify-each -p 'kernel-map,kernel-vectorize,kernel-tile{overlap-launches=true},kernel-choose-warps{overlap-launches=true}' | filecheck %s

// A program that waits for the vector has about 8 KiB of rows in registers: two rows of 5632 bytes, by four warps.
kernel.func @bytes(%x: !kernel.buffer<bf16, 5632>, %w: !kernel.buffer<i8, 11534336>, %y: !kernel.buffer<f32, 2048>) {
  kernel.for i0 in 0 to 2048 {
    %t = kernel.reduce sum i1 in 0 to 5632 {
      %u = kernel.load %x[i1]
      %uf = scalar.widen %u : bf16 to f32
      %v = kernel.load %w[5632*i0 + i1]
      %vf = scalar.cast %v : i8 to f32
      %p = arith.mulf %uf, %vf : f32
      kernel.yield %p
    }
    kernel.store %t, %y[i0]
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @bytes
// CHECK-SAME: num_warps 4
// CHECK: kernel.for i0 in 0 to 2048 map grid tile 2

// -----

// Of two matrices twice as many bytes, and of each two rows.
kernel.func @gates(%x: !kernel.buffer<bf16, 2048>, %w: !kernel.buffer<bf16, 23068672>, %y: !kernel.buffer<f32, 5632>) {
  kernel.for i0 in 0 to 5632 {
    %t, %s = kernel.reduce [sum, sum] i1 in 0 to 2048 {
      %u = kernel.load %x[i1]
      %uf = scalar.widen %u : bf16 to f32
      %v = kernel.load %w[2048*i0 + i1]
      %vf = scalar.widen %v : bf16 to f32
      %p = arith.mulf %uf, %vf : f32
      %a = kernel.load %w[2048*i0 + i1 + 11534336]
      %af = scalar.widen %a : bf16 to f32
      %q = arith.mulf %uf, %af : f32
      kernel.yield %p, %q
    }
    %r = arith.mulf %t, %s : f32
    kernel.store %r, %y[i0]
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @gates
// CHECK-SAME: num_warps 4
// CHECK: kernel.for i0 in 0 to 5632 map grid tile 2
