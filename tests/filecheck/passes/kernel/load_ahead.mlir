// RUN: inductile-opt %s --target cuda:90 --verify-each -p kernel-load-ahead{overlap-launches=true} | filecheck %s
// RUN: inductile-opt %s --target cuda:90 -p kernel-load-ahead{overlap-launches=true},kernel-load-ahead{overlap-launches=true} | filecheck %s
// RUN: inductile-opt %s --target cuda:90 -p kernel-load-ahead | filecheck %s --check-prefix=APART
// APART-NOT: kernel.local

// The row of the matrix waits in a register tile while the squares of the vector are added up.
kernel.func @norm(%x: !kernel.buffer<f32, 128>, %w: !kernel.buffer<bf16, 16384>, %y: !kernel.buffer<f32, 128>) target "cuda:90" {
  kernel.for i0 in 0 to 128 map grid tile 2 {
    %s = kernel.reduce sum i1 in 0 to 128 map vector tile 128 {
      %a = kernel.load %x[i1]
      %b = arith.mulf %a, %a : f32
      kernel.yield %b
    }
    %p = kernel.reduce sum i1 in 0 to 128 map vector tile 128 {
      %a = kernel.load %x[i1]
      %b = arith.mulf %a, %s : f32
      %c = kernel.load %w[128*i0 + i1]
      %d = scalar.widen %c : bf16 to f32
      %e = arith.mulf %b, %d : f32
      kernel.yield %e
    }
    kernel.store %p, %y[i0]
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @norm
// CHECK: %[[T:.*]] = kernel.local : !kernel.buffer<bf16, 128, local>
// CHECK-NEXT: kernel.for i1 in 0 to 128 map vector tile 128 {
// CHECK-NEXT: %[[V:.*]] = kernel.load %w[128*i0 + i1]
// CHECK-NEXT: kernel.store %[[V]], %[[T]][i1]
// CHECK: kernel.reduce sum
// CHECK: kernel.reduce sum
// CHECK: kernel.load %[[T]][i1]

// A row that is read twice is at hand; steps of a row would take too many registers; what is written is read in its place.
kernel.func @twice(%w: !kernel.buffer<f32, 16384>, %y: !kernel.buffer<f32, 128>) target "cuda:90" {
  kernel.for i0 in 0 to 128 map grid {
    %s = kernel.reduce sum i1 in 0 to 128 map vector tile 128 {
      %a = kernel.load %w[128*i0 + i1]
      kernel.yield %a
    }
    %p = kernel.reduce sum i1 in 0 to 128 map vector tile 128 {
      %a = kernel.load %w[128*i0 + i1]
      %b = arith.mulf %a, %s : f32
      kernel.yield %b
    }
    kernel.store %p, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @steps(%x: !kernel.buffer<f32, 128>, %w: !kernel.buffer<f32, 16384>, %y: !kernel.buffer<f32, 128>) target "cuda:90" {
  kernel.for i0 in 0 to 128 map grid {
    %s = kernel.reduce sum i1 in 0 to 128 map vector tile 128 {
      %a = kernel.load %x[i1]
      kernel.yield %a
    }
    %p = kernel.reduce sum i1 in 0 to 128 map vector tile 64 {
      %a = kernel.load %w[128*i0 + i1]
      %b = arith.mulf %a, %s : f32
      kernel.yield %b
    }
    kernel.store %p, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @written(%x: !kernel.buffer<f32, 128>, %w: !kernel.buffer<f32, 16384>) target "cuda:90" {
  kernel.for i0 in 0 to 128 map grid {
    %s = kernel.reduce sum i1 in 0 to 128 map vector tile 128 {
      %a = kernel.load %x[i1]
      kernel.yield %a
    }
    %p = kernel.reduce sum i1 in 0 to 128 map vector tile 128 {
      %a = kernel.load %w[128*i0 + i1]
      %b = arith.mulf %a, %s : f32
      kernel.yield %b
    }
    kernel.store %p, %w[128*i0]
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @twice
// CHECK-NOT: kernel.local
host.func @run(%x: !aten.tensor<128xf32, device = "cuda:0">, %h: !aten.tensor<128x128xbf16, device = "cuda:0">, %w: !aten.tensor<128x128xf32, device = "cuda:0">, %v: !aten.tensor<128x128xf32, device = "cuda:0">) -> (!aten.tensor<128xf32, device = "cuda:0">) {
  %y = host.empty : !aten.tensor<128xf32, device = "cuda:0">
  host.launch @norm(%x, %h, %y)
  host.launch @twice(%w, %y)
  host.launch @steps(%y, %w, %y)
  host.launch @written(%y, %v)
  host.return %y
}
