// RUN: inductile-opt %s --target cuda:90 -p "kernel-load-boxes{boxes=true}" | filecheck %s
// RUN: inductile-opt %s --target cuda:90 -p kernel-load-boxes | filecheck %s --check-prefix=NONE
// NONE-NOT: box

// Both factors of a batch of products are boxes of matrices, and so is one whose rows run along the depth.
kernel.func @whole(%x: !kernel.buffer<bf16, 32768>, %w: !kernel.buffer<bf16, 32768>, %y: !kernel.buffer<f32, 65536>) target "cuda:90" {
  kernel.for i0 in 0 to 4 map grid {
    kernel.for i1 in 0 to 128 map grid tile 64 {
      kernel.for i2 in 0 to 128 map grid tile 64 {
        %s = kernel.reduce sum i3 in 0 to 64 map matrix tile 32 {
          %a = kernel.load %x[8192*i0 + 64*i1 + i3]
          %b = kernel.load %w[8192*i0 + 128*i3 + i2]
          %c = scalar.widen %a : bf16 to f32
          %d = scalar.widen %b : bf16 to f32
          %p = arith.mulf %c, %d : f32
          kernel.yield %p
        }
        kernel.store %s, %y[16384*i0 + 128*i1 + i2]
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @whole
// CHECK-SAME: %descriptors: !kernel.buffer<i8, 4096>) target "cuda:90" boxes 2 {
// CHECK: kernel.load box 64 %x[8192*i0 + 64*i1 + i3]
// CHECK: kernel.load box 128 %w[8192*i0 + 128*i3 + i2]

// Beyond the depth lies the next product's matrix, rows of 60 begin at no multiples of 16 bytes.
kernel.func @left(%x: !kernel.buffer<bf16, 30720>, %w: !kernel.buffer<bf16, 30720>, %y: !kernel.buffer<f32, 65536>) target "cuda:90" {
  kernel.for i0 in 0 to 4 map grid {
    kernel.for i1 in 0 to 128 map grid tile 64 {
      kernel.for i2 in 0 to 128 map grid tile 64 {
        %s = kernel.reduce sum i3 in 0 to 60 map matrix tile 32 {
          %a = kernel.load %x[7680*i0 + 60*i1 + i3]
          %b = kernel.load %w[7680*i0 + 128*i3 + i2]
          %c = scalar.widen %a : bf16 to f32
          %d = scalar.widen %b : bf16 to f32
          %p = arith.mulf %c, %d : f32
          kernel.yield %p
        }
        kernel.store %s, %y[16384*i0 + 128*i1 + i2]
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @left
// CHECK-NOT: box
// CHECK: kernel.reduce
// CHECK-NOT: box

host.func @f(%x: !aten.tensor<32768xbf16, device = "cuda:0">, %w: !aten.tensor<32768xbf16, device = "cuda:0">, %y: !aten.tensor<65536xf32, device = "cuda:0">) -> (!aten.tensor<65536xf32, device = "cuda:0">) {
  host.launch @whole(%x, %w, %y)
  host.return %y
}
// CHECK: %[[D:.*]] = host.empty : !aten.tensor<4096xi8, device = "cuda:0">
// CHECK-NEXT: host.launch @whole(%x, %w, %y, %[[D]])
