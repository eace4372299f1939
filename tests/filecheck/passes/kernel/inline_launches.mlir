// RUN: inductile-opt %s --split-input-file --verify-each --target cuda:90 -p kernel-inline-launches | filecheck %s

// Products of a scaled vector with 96 rows: pairs of 32 apart are turned, the last 32 are copied. Each nest computes the
// rows that it reads, a pair in one loop, with the scale in front.

kernel.func @product(%x: !kernel.buffer<f32, 8>, %w: !kernel.buffer<f32, 768>, %p: !kernel.buffer<bf16, 96>) {
  kernel.for i0 in 0 to 96 {
    %q = kernel.reduce sum i1 in 0 to 8 {
      %v = kernel.load %x[i1]
      %s = arith.mulf %v, %v : f32
      kernel.yield %s
    }
    %r = math.rsqrt %q : f32
    %d = kernel.reduce sum i1 in 0 to 8 {
      %v = kernel.load %x[i1]
      %n = arith.mulf %v, %r : f32
      %a = kernel.load %w[8*i0 + i1]
      %m = arith.mulf %n, %a : f32
      kernel.yield %m
    }
    %o = scalar.narrow %d : f32 to bf16
    kernel.store %o, %p[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @turn(%p: !kernel.buffer<bf16, 96>, %y: !kernel.buffer<f32, 64>, %z: !kernel.buffer<bf16, 32>) {
  kernel.for i0 in 0 to 32 {
    %a = kernel.load %p[i0]
    %b = kernel.load %p[i0 + 32]
    %c = scalar.widen %a : bf16 to f32
    %d = scalar.widen %b : bf16 to f32
    %s = arith.addf %c, %d : f32
    %t = arith.subf %c, %d : f32
    kernel.store %s, %y[i0]
    kernel.store %t, %y[i0 + 32]
    kernel.yield
  }
  kernel.for i1 in 0 to 32 {
    %a = kernel.load %p[i1 + 64]
    kernel.store %a, %z[i1]
    kernel.yield
  }
  kernel.yield
}
host.func @attend(%x: !aten.tensor<8xf32, device = "cuda:0">, %w: !aten.tensor<96x8xf32, device = "cuda:0">) -> (!aten.tensor<64xf32, device = "cuda:0">, !aten.tensor<32xbf16, device = "cuda:0">) {
  %p = host.empty : !aten.tensor<96xbf16, device = "cuda:0">
  host.launch @product(%x, %w, %p)
  %y = host.empty : !aten.tensor<64xf32, device = "cuda:0">
  %z = host.empty : !aten.tensor<32xbf16, device = "cuda:0">
  host.launch @turn(%p, %y, %z)
  host.return %y, %z
}

// CHECK-LABEL: kernel.func @product_and_1_more(%x: !kernel.buffer<f32, 8>, %w: !kernel.buffer<f32, 768>, %y: !kernel.buffer<f32, 64>, %z: !kernel.buffer<bf16, 32>)
// CHECK:       kernel.for i0 in 0 to 32 {
// CHECK-NEXT:    [[Q:%.*]] = kernel.reduce sum i3 in 0 to 8 {
// CHECK:         [[R:%.*]] = math.rsqrt [[Q]]
// CHECK-NEXT:    %{{.*}}, %{{.*}} = kernel.reduce [sum, sum] i3 in 0 to 8 {
// CHECK:           kernel.load %w[8*i0 + i3]
// CHECK:           kernel.load %w[8*i0 + i3 + 256]
// CHECK:       kernel.for i1 in 0 to 32 {
// CHECK:           kernel.load %w[8*i1 + i3 + 512]
// CHECK-LABEL: host.func @attend
// CHECK-NOT:     96xbf16
// CHECK:         host.launch @product_and_1_more(%x, %w, %y, %z)
// CHECK-NEXT:    host.return

// -----

// What would be summed up twice stays: an element that two points read, and a result that somebody else needs. So does
// what another step writes in between, and what the reader overwrites.

kernel.func @sum(%x: !kernel.buffer<f32, 512>, %p: !kernel.buffer<f32, 64>) {
  kernel.for i0 in 0 to 64 {
    %q = kernel.reduce sum i1 in 0 to 8 {
      %v = kernel.load %x[8*i0 + i1]
      kernel.yield %v
    }
    kernel.store %q, %p[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @spread(%p: !kernel.buffer<f32, 64>, %y: !kernel.buffer<f32, 128>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 2 {
      %a = kernel.load %p[i0]
      kernel.store %a, %y[2*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
kernel.func @halve(%p: !kernel.buffer<f32, 64>, %y: !kernel.buffer<f32, 64>) {
  kernel.for i0 in 0 to 64 {
    %a = kernel.load %p[i0]
    %h = arith.constant 0.5 : f32
    %b = arith.mulf %a, %h : f32
    kernel.store %b, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @stay(%x: !aten.tensor<64x8xf32, device = "cuda:0">, %v: !aten.tensor<64xf32, device = "cuda:0">, %w: !aten.tensor<512xf32, device = "cuda:0">) -> (!aten.tensor<128xf32, device = "cuda:0">, !aten.tensor<64xf32, device = "cuda:0">) {
  %p = host.empty : !aten.tensor<64xf32, device = "cuda:0">
  %y = host.empty : !aten.tensor<128xf32, device = "cuda:0">
  host.launch @sum(%x, %p)
  host.launch @spread(%p, %y)
  %q = host.empty : !aten.tensor<64xf32, device = "cuda:0">
  host.launch @sum(%x, %q)
  host.launch @halve(%q, %v)
  %r = host.empty : !aten.tensor<64xf32, device = "cuda:0">
  host.launch @sum(%w, %r)
  host.launch @halve(%r, %w)
  host.return %y, %q
}

// CHECK-LABEL: host.func @stay
// CHECK:         host.launch @sum
// CHECK:         host.launch @spread
// CHECK:         host.launch @sum
// CHECK:         host.launch @halve
// CHECK:         host.launch @sum
// CHECK:         host.launch @halve
