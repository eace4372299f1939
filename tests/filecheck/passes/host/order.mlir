// RUN: inductile-opt %s --split-input-file --verify-each=numerics -p host-order | filecheck %s
// RUN: inductile-opt %s --split-input-file -p host-order,host-free | filecheck %s --check-prefix=FREE

// What makes a large value of a smaller one waits until the saved values are free: 32 KiB are alive at once, not 56.

kernel.func @widen(%x: !kernel.buffer<bf16, 4096>, %y: !kernel.buffer<f32, 4096>) {
  kernel.for i0 in 0 to 4096 {
    %v = kernel.load %x[i0]
    %w = scalar.widen %v : bf16 to f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @sum(%x: !kernel.buffer<f32, 8192>, %y: !kernel.buffer<f32, 1>) {
  %s = kernel.reduce sum i0 in 0 to 8192 {
    %v = kernel.load %x[i0]
    kernel.yield %v
  }
  kernel.store %s, %y[0]
  kernel.yield
}
host.func @late(%t: !aten.tensor<64x64xbf16, device = "cuda:0">, %s: !aten.tensor<128x64xf32, device = "cuda:0">) -> (!aten.tensor<64x64xf32, device = "cuda:0">, !aten.tensor<1xf32, device = "cuda:0">) given [1] {
  %g = aten.mm(%t, %t) : !aten.tensor<64x64xbf16, device = "cuda:0">
  %w = host.empty : !aten.tensor<64x64xf32, device = "cuda:0">
  host.launch @widen(%g, %w)
  %y = host.empty : !aten.tensor<1xf32, device = "cuda:0">
  host.launch @sum(%s, %y)
  host.return %w, %y
}

// CHECK-LABEL: host.func @late
// CHECK-SAME:  given [1] {
// CHECK:       host.launch @sum(%s, %y)
// CHECK:       %w = host.empty
// CHECK-NEXT:  host.launch @widen(%g, %w)
// CHECK-NEXT:  host.return %w, %y
// FREE-LABEL:  host.func @late
// FREE:        host.launch @sum(%s, %y)
// FREE-NEXT:   host.free %s
// FREE:        %w = host.empty

// -----

// The caller keeps what is saved: nothing becomes free.

kernel.func @widen(%x: !kernel.buffer<bf16, 4096>, %y: !kernel.buffer<f32, 4096>) {
  kernel.for i0 in 0 to 4096 {
    %v = kernel.load %x[i0]
    %w = scalar.widen %v : bf16 to f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @sum(%x: !kernel.buffer<f32, 8192>, %y: !kernel.buffer<f32, 1>) {
  %s = kernel.reduce sum i0 in 0 to 8192 {
    %v = kernel.load %x[i0]
    kernel.yield %v
  }
  kernel.store %s, %y[0]
  kernel.yield
}
host.func @kept(%t: !aten.tensor<64x64xbf16, device = "cuda:0">, %s: !aten.tensor<128x64xf32, device = "cuda:0">) -> (!aten.tensor<64x64xf32, device = "cuda:0">, !aten.tensor<1xf32, device = "cuda:0">) {
  %g = aten.mm(%t, %t) : !aten.tensor<64x64xbf16, device = "cuda:0">
  %w = host.empty : !aten.tensor<64x64xf32, device = "cuda:0">
  host.launch @widen(%g, %w)
  %y = host.empty : !aten.tensor<1xf32, device = "cuda:0">
  host.launch @sum(%s, %y)
  host.return %w, %y
}

// CHECK-LABEL: host.func @kept
// CHECK:       host.launch @widen(%g, %w)
// CHECK:       host.launch @sum(%s, %y)

// -----

// Results pile up: what is turned into a larger one is so while there are few, for its input is free then. The view
// and the allocation come along, and nothing passes a launch that may report an error.

kernel.func @widen(%x: !kernel.buffer<bf16, 4096>, %y: !kernel.buffer<f32, 4096>) {
  kernel.for i0 in 0 to 4096 {
    %v = kernel.load %x[i0]
    %w = scalar.widen %v : bf16 to f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @check(%x: !kernel.buffer<bf16, 4096>) errors ["ValueError: no"] {
  kernel.for i0 in 0 to 4096 {
    %v = kernel.load %x[i0]
    %o = arith.cmpf oeq, %v, %v : bf16
    kernel.assert %o, 1
    kernel.yield
  }
  kernel.yield
}
host.func @early(%t: !aten.tensor<64x64xbf16, device = "cuda:0">, %s: !aten.tensor<64x64xf32, device = "cuda:0">) -> (!aten.tensor<64x64xf32, device = "cuda:0">, !aten.tensor<64x64xf32, device = "cuda:0">, !aten.tensor<64x64xf32, device = "cuda:0">) {
  %g = aten.mm(%t, %t) : !aten.tensor<64x64xbf16, device = "cuda:0">
  host.launch @check(%g)
  %a = aten.mm(%s, %s) : !aten.tensor<64x64xf32, device = "cuda:0">
  %b = aten.mm(%s, %a) : !aten.tensor<64x64xf32, device = "cuda:0">
  %v = host.view %g offset 0 : !aten.tensor<4096xbf16, device = "cuda:0">
  %w = host.empty : !aten.tensor<64x64xf32, device = "cuda:0">
  host.launch @widen(%v, %w)
  host.return %a, %b, %w
}

// CHECK-LABEL: host.func @early
// CHECK-NEXT:  %g = aten.mm
// CHECK-NEXT:  host.launch @check(%g)
// CHECK:       %v = host.view %g
// CHECK:       host.launch @widen(%v, %w)
// CHECK:       %b = aten.mm(%s, %a)
// CHECK-NEXT:  host.return %a, %b, %w

// -----

// On the CPU what was just made is in the cache.

kernel.func @widen(%x: !kernel.buffer<bf16, 4096>, %y: !kernel.buffer<f32, 4096>) {
  kernel.for i0 in 0 to 4096 {
    %v = kernel.load %x[i0]
    %w = scalar.widen %v : bf16 to f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @cpu(%t: !aten.tensor<64x64xbf16>, %s: !aten.tensor<64x64xf32>) -> (!aten.tensor<64x64xf32>, !aten.tensor<64x64xf32>) {
  %g = aten.mm(%t, %t) : !aten.tensor<64x64xbf16>
  %a = aten.mm(%s, %s) : !aten.tensor<64x64xf32>
  %w = host.empty : !aten.tensor<64x64xf32>
  host.launch @widen(%g, %w)
  host.return %a, %w
}

// CHECK-LABEL: host.func @cpu
// CHECK:       %a = aten.mm
// CHECK:       host.launch @widen(%g, %w)

// -----

// Nothing is launched, and nothing is made: a gradient is a view of the one that comes in.

host.func @view(%t: !aten.tensor<4x8xf32, device = "cuda:0">) -> (!aten.tensor<8x4xf32, strides = [1, 8], device = "cuda:0">) {
  %v = host.view %t offset 0 : !aten.tensor<8x4xf32, strides = [1, 8], device = "cuda:0">
  host.return %v
}

// CHECK-LABEL: host.func @view
// CHECK-NEXT:  %v = host.view %t
// CHECK-NEXT:  host.return %v

// -----

// Launches and other calls pass those that draw random numbers, which stay in the order in which eager draws them, though
// less would be alive if %l came first.

kernel.func @widen(%x: !kernel.buffer<bf16, 4096>, %y: !kernel.buffer<f32, 4096>) {
  kernel.for i0 in 0 to 4096 {
    %v = kernel.load %x[i0]
    %w = scalar.widen %v : bf16 to f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @random(%t: !aten.tensor<64x64xbf16, device = "cuda:0">, %s: !aten.tensor<128x64xf32, device = "cuda:0">) -> (!aten.tensor<64x64xf32, device = "cuda:0">, !aten.tensor<64x64xf32, device = "cuda:0">, !aten.tensor<128x64xbf16, device = "cuda:0">) given [1] {
  %g = aten.mm(%t, %t) : !aten.tensor<64x64xbf16, device = "cuda:0">
  %w = host.empty : !aten.tensor<64x64xf32, device = "cuda:0">
  host.launch @widen(%g, %w)
  %r = aten.rand_like(%g, dtype = torch.float32) : !aten.tensor<64x64xf32, device = "cuda:0">
  %l = aten.rand_like(%s, dtype = torch.bfloat16) : !aten.tensor<128x64xbf16, device = "cuda:0">
  host.return %w, %r, %l
}

// CHECK-LABEL: host.func @random
// CHECK:       %r = aten.rand_like(%g
// CHECK-NEXT:  %l = aten.rand_like(%s
// CHECK-NEXT:  %w = host.empty
// CHECK-NEXT:  host.launch @widen(%g, %w)

// -----

// Nothing passes a call that writes an argument, or one that checks it.

kernel.func @widen(%x: !kernel.buffer<bf16, 4096>, %y: !kernel.buffer<f32, 4096>) {
  kernel.for i0 in 0 to 4096 {
    %v = kernel.load %x[i0]
    %w = scalar.widen %v : bf16 to f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @writes(%t: !aten.tensor<64x64xbf16, device = "cuda:0">, %s: !aten.tensor<128x64xf32, device = "cuda:0">, %q: !aten.tensor<4xf32, device = "cuda:0">) -> (!aten.tensor<64x64xf32, device = "cuda:0">, !aten.tensor<128x64xbf16, device = "cuda:0">) given [1] {
  %g = aten.mm(%t, %t) : !aten.tensor<64x64xbf16, device = "cuda:0">
  %w = host.empty : !aten.tensor<64x64xf32, device = "cuda:0">
  host.launch @widen(%g, %w)
  %u = aten.normal_(%q) : !aten.tensor<4xf32, device = "cuda:0">
  %l = aten.rand_like(%s, dtype = torch.bfloat16) : !aten.tensor<128x64xbf16, device = "cuda:0">
  host.return %w, %l
}
host.func @checks(%t: !aten.tensor<64x64xbf16, device = "cuda:0">, %s: !aten.tensor<128x64xf32, device = "cuda:0">, %q: !aten.tensor<1xf32, device = "cuda:0">) -> (!aten.tensor<64x64xf32, device = "cuda:0">, !aten.tensor<128x64xbf16, device = "cuda:0">) given [1] {
  %g = aten.mm(%t, %t) : !aten.tensor<64x64xbf16, device = "cuda:0">
  %w = host.empty : !aten.tensor<64x64xf32, device = "cuda:0">
  host.launch @widen(%g, %w)
  aten._assert_async(%q)
  %l = aten.rand_like(%s, dtype = torch.bfloat16) : !aten.tensor<128x64xbf16, device = "cuda:0">
  host.return %w, %l
}

// CHECK-LABEL: host.func @writes
// CHECK:       host.launch @widen(%g, %w)
// CHECK-NEXT:  %u = aten.normal_(%q)
// CHECK-NEXT:  %l = aten.rand_like
// CHECK-LABEL: host.func @checks
// CHECK:       host.launch @widen(%g, %w)
// CHECK-NEXT:  aten._assert_async(%q)
// CHECK-NEXT:  %l = aten.rand_like
