// RUN: inductile-opt --allow-effects %s --split-input-file --verify-each -p host-plan-memory | filecheck %s

kernel.func @k(%x: !kernel.buffer<f32, 100>, %y: !kernel.buffer<f32, 100>) {
  kernel.yield
}

// %c takes the place of %a, which is dead; %b is alive and lies behind it. What is returned is no part of the pool.

host.func @known(%x: !aten.tensor<100xf32>) -> (!aten.tensor<100xf32>) symbols [] {
  %a = host.empty : !aten.tensor<100xf32>
  host.launch @k(%x, %a)
  %b = host.empty : !aten.tensor<100xf32>
  host.launch @k(%a, %b)
  %c = host.empty : !aten.tensor<20xf64>
  %w = host.view %b offset 0 : !aten.tensor<20xf32>
  host.copy %w to %c
  %v = host.view %c offset 3 : !aten.tensor<4xf64>
  %d = host.empty : !aten.tensor<100xf32>
  host.launch @k(%b, %d)
  %u = host.view %x offset 0 : !aten.tensor<4xf32>
  host.copy %v to %u
  host.return %d
}

// CHECK-LABEL: kernel.func @k
// CHECK-LABEL: host.func @known
// CHECK-NEXT: %pool = host.empty kept : !aten.tensor<896xui8>
// CHECK-NEXT: %a = host.empty in %pool at 0 : !aten.tensor<100xf32>
// CHECK: %b = host.empty in %pool at 448 : !aten.tensor<100xf32>
// CHECK: %c = host.empty in %pool at 0 : !aten.tensor<20xf64>

// -----

// Unknown sizes: slots, shared where the order of the sizes is certain. s0 * 32 bytes are a multiple of no cache line.

host.func @symbolic(%x: !aten.tensor<(s0)x8xf32>) symbols [#sym.symbol<s0, arg = 0, dim = 0, min = 0>] {
  %a = host.empty : !aten.tensor<(s0)x16xf32>
  %v = host.view %a offset 0 : !aten.tensor<(s0)x8xf32>
  host.copy %x to %v
  %b = host.empty : !aten.tensor<(s0)x8xf32>
  %w = host.view %a offset 0 : !aten.tensor<(s0)x8xf32>
  host.copy %w to %b
  %c = host.empty : !aten.tensor<(s0)x8xf32>
  host.copy %b to %c
  %d = host.empty : !aten.tensor<3xi1>
  %u = host.view %c offset 0 : !aten.tensor<3xf32>
  host.copy %u to %d
  host.return
}

// CHECK-LABEL: host.func @symbolic
// CHECK-NEXT: %pool = host.empty kept : !aten.tensor<(64*s0 + 64*((s0 + 1) floordiv 2) + 64)xui8>
// CHECK-NEXT: %a = host.empty in %pool at 64 : !aten.tensor<(s0)x16xf32>
// CHECK: %b = host.empty in %pool at 64*s0 + 64 : !aten.tensor<(s0)x8xf32>
// CHECK: %c = host.empty in %pool at 64 : !aten.tensor<(s0)x8xf32>
// CHECK: %d = host.empty in %pool at 0 : !aten.tensor<3xi1>

// -----

// One small tensor needs no pool, nor does one on a GPU.

host.func @single(%x: !aten.tensor<8xf32>) symbols [] {
  %a = host.empty : !aten.tensor<8xf32>
  host.copy %x to %a
  %b = host.empty : !aten.tensor<8xf32, device = "cuda:0">
  host.copy %a to %b
  host.return
}

// CHECK-LABEL: host.func @single
// CHECK-NEXT: %a = host.empty : !aten.tensor<8xf32>
// CHECK-NEXT: host.copy %x to %a
// CHECK-NEXT: %b = host.empty : !aten.tensor<8xf32, device = "cuda:0">
// CHECK-NEXT: host.copy %a to %b
// CHECK-NEXT: host.return

// -----

// A pool is there from the first call on. Here it would come on top of what ATen makes when nothing of it is in use.

host.func @peak(%x: !aten.tensor<32x32xf32>) -> (!aten.tensor<32x32xf32>) symbols [] {
  %a = host.empty : !aten.tensor<96x128xf32>
  %v = host.view %a offset 0 : !aten.tensor<32x32xf32>
  host.copy %x to %v
  %b = host.empty : !aten.tensor<96x128xf32>
  host.copy %a to %b
  %c = aten.mm(%x, %x) : !aten.tensor<32x32xf32>
  %d = aten.cat([%c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c], dim = 0) : !aten.tensor<768x32xf32>
  %e = aten.mm(%x, %x) : !aten.tensor<32x32xf32>
  %w = host.view %d offset 0 : !aten.tensor<32x32xf32>
  host.copy %w to %x
  host.return %e
}

// CHECK-LABEL: host.func @peak
// CHECK-NEXT: %a = host.empty : !aten.tensor<96x128xf32>
// CHECK-NEXT: %v = host.view %a offset 0 : !aten.tensor<32x32xf32>
// CHECK-NEXT: host.copy %x to %v
// CHECK-NEXT: %b = host.empty : !aten.tensor<96x128xf32>
// CHECK-NEXT: host.copy %a to %b
// CHECK-NEXT: %c = aten.mm(%x, %x) : !aten.tensor<32x32xf32>
// CHECK-NEXT: %d = aten.cat([%c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c, %c]) : !aten.tensor<768x32xf32>
// CHECK-NEXT: %e = aten.mm(%x, %x) : !aten.tensor<32x32xf32>
// CHECK-NEXT: %w = host.view %d offset 0 : !aten.tensor<32x32xf32>
// CHECK-NEXT: host.copy %w to %x
// CHECK-NEXT: host.return %e

// -----

// An operator that is not ATen's may keep what it is given.

host.func @call(%x: !aten.tensor<200x100xf32>) symbols [] {
  %a = host.empty : !aten.tensor<200x100xf32>
  host.copy %x to %a
  %b = host.empty : !aten.tensor<200x100xf32>
  host.copy %x to %b
  %v = host.view %b offset 0 : !aten.tensor<20000xf32>
  %k = aten.call "mine::keep"(%v) : !aten.tensor<3xf32>
  host.copy %a to %x
  host.return
}

// CHECK-LABEL: host.func @call
// CHECK-NEXT: %pool = host.empty kept : !aten.tensor<80000xui8>
// CHECK-NEXT: %a = host.empty in %pool at 0 : !aten.tensor<200x100xf32>

// -----

// What addresses the storage of a tensor sees it from its start: %a has one of its own.

kernel.func @fill(%x: !kernel.buffer<f32, 100>, %y: !kernel.buffer<f32, 100>) {
  kernel.yield
}

host.func @storage(%x: !aten.tensor<100xf32>) -> (!aten.tensor<100xf32>) symbols [] {
  %a = host.empty : !aten.tensor<100xf32>
  host.launch @fill(%x, %a)
  %b = host.empty : !aten.tensor<100xf32>
  host.launch @fill(%a, %b)
  %c = host.empty : !aten.tensor<100xf32>
  host.launch @fill(%b, %c)
  %e = aten.as_strided(%a, size = [3], stride = [4], storage_offset = 1) : !aten.tensor<3xf32, strides = [4]>
  %d = aten.as_strided_scatter(%x, %e, size = [3], stride = [4], storage_offset = 1) : !aten.tensor<100xf32>
  host.copy %c to %x
  host.return %d
}

// CHECK-LABEL: host.func @storage
// CHECK: %a = host.empty : !aten.tensor<100xf32>
// CHECK: %b = host.empty in
// CHECK: %c = host.empty in

// -----

// A pool is allocated where the sizes of all that lies in it are known, and where it serves most.

kernel.func @k(%x: !kernel.buffer<f32, s0>, %y: !kernel.buffer<f32, s0>) symbols (s0) {
  kernel.yield
}

host.func @late(%x: !aten.tensor<100xf32>) -> (!aten.tensor<(u0)x1xi64>) symbols [#sym.symbol<u0, min = 0, hint = 1000>] {
  %a = host.empty : !aten.tensor<100xf32>
  host.launch @k(%x, %a) [100]
  %0 = aten.nonzero(%a) binds [u0] : !aten.tensor<(u0)x1xi64>
  %b = host.empty : !aten.tensor<(u0)xf32>
  %c = host.empty : !aten.tensor<(u0)xf32>
  host.launch @k(%b, %c) [u0]
  host.return %0
}

// CHECK-LABEL: host.func @late
// CHECK-NEXT: %a = host.empty : !aten.tensor<100xf32>
// CHECK: aten.nonzero
// CHECK-NEXT: %pool = host.empty kept
// CHECK-NEXT: %b = host.empty in %pool at 0 : !aten.tensor<(u0)xf32>
// CHECK-NEXT: %c = host.empty in %pool

// -----

// On a GPU: %a and %c have one place, %b is alive beside both. %l would be held while %z is made. %r is returned.

kernel.func @k(%x: !kernel.buffer<f32, 100>, %y: !kernel.buffer<f32, 100>) {
  kernel.yield
}

host.func @gpu(%x: !aten.tensor<100xf32, device = "cuda:0">, %w: !aten.tensor<1024x1024xf32, device = "cuda:0">)
    -> (!aten.tensor<100xf32, device = "cuda:0">) {
  %a = host.empty : !aten.tensor<100xf32, device = "cuda:0">
  host.launch @k(%x, %a)
  %b = host.empty : !aten.tensor<200xf32, device = "cuda:0">
  host.launch @k(%a, %b)
  %z = aten.mm(%w, %w) : !aten.tensor<1024x1024xf32, device = "cuda:0">
  %l = host.empty : !aten.tensor<1024x1024xf32, device = "cuda:0">
  host.launch @k(%z, %l)
  %c = host.empty : !aten.tensor<100xf32, device = "cuda:0">
  host.launch @k(%l, %c)
  host.launch @k(%b, %c)
  %r = host.empty : !aten.tensor<100xf32, device = "cuda:0">
  host.launch @k(%c, %r)
  host.return %r
}

// CHECK-LABEL: host.func @gpu
// CHECK-NEXT: %pool = host.empty : !aten.tensor<1536xui8, device = "cuda:0">
// CHECK-NEXT: %a = host.empty in %pool at 1024 :
// CHECK: %b = host.empty in %pool at 0 :
// CHECK: %l = host.empty : !aten.tensor<1024x1024xf32
// CHECK: %c = host.empty in %pool at 1024 :
// CHECK: %r = host.empty : !aten.tensor<100xf32

// -----

// Large tensors that are born and die together share a pool that lives no longer than they do.

kernel.func @k(%x: !kernel.buffer<f32, 1048576>, %y: !kernel.buffer<f32, 1048576>, %z: !kernel.buffer<f32, 1048576>) {
  kernel.yield
}

host.func @together(%x: !aten.tensor<1024x1024xf32, device = "cuda:0">) -> (!aten.tensor<1024x1024xf32, device = "cuda:0">) {
  %a = host.empty : !aten.tensor<1024x1024xf32, device = "cuda:0">
  %b = host.empty : !aten.tensor<1024x1024xf32, device = "cuda:0">
  host.launch @k(%x, %a, %b)
  %r = host.empty : !aten.tensor<1024x1024xf32, device = "cuda:0">
  host.launch @k(%a, %b, %r)
  %s = aten.mm(%r, %r) : !aten.tensor<1024x1024xf32, device = "cuda:0">
  %c = host.empty : !aten.tensor<1024x1024xf32, device = "cuda:0">
  host.launch @k(%s, %r, %c)
  %t = aten.mm(%c, %s) : !aten.tensor<1024x1024xf32, device = "cuda:0">
  host.return %t
}

// CHECK-LABEL: host.func @together
// CHECK-NEXT: %pool = host.empty : !aten.tensor<8388608xui8, device = "cuda:0">
// CHECK-NEXT: %a = host.empty in %pool at 0 :
// CHECK-NEXT: %b = host.empty in %pool at 4194304 :
// CHECK: %r = host.empty :
// CHECK: %c = host.empty :
