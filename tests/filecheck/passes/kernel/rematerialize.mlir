// RUN: inductile-opt %s --split-input-file --verify-each=numerics -p kernel-rematerialize | filecheck %s

// Tiles of 1024 elements do not cover the row: it is computed again where it is read, and its buffer is gone.

kernel.func @row(%x: !kernel.buffer<f32, 12288>, %y: !kernel.buffer<f32, 12288>) target "cuda:90" per_thread 16 {
  kernel.for i0 in 0 to 3 map grid {
    %row = kernel.local : !kernel.buffer<f32, 4096, local>
    %s = kernel.reduce sum i1 in 0 to 4096 map vector tile 1024 {
      %v = kernel.load %x[4096*i0 + i1]
      %e = math.exp %v : f32
      kernel.store %e, %row[i1]
      kernel.yield %e
    }
    kernel.for i2 in 0 to 4096 map vector tile 1024 {
      %e = kernel.load %row[i2]
      %q = arith.divf %e, %s : f32
      kernel.store %q, %y[4096*i0 + i2]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @run(%x: !aten.tensor<12288xf32, device = "cuda:0">, %y: !aten.tensor<12288xf32, device = "cuda:0">) -> (!aten.tensor<12288xf32, device = "cuda:0">, !aten.tensor<12288xf32, device = "cuda:0">) {
  host.launch @row(%x, %y)
  host.return %x, %y
}

// CHECK-LABEL: @row
// CHECK-NOT: kernel.local
// CHECK: kernel.reduce sum i1
// CHECK: kernel.for i2 in 0 to 4096 map vector tile 1024 {
// CHECK-NEXT: kernel.load %x[4096*i0 + i2]
// CHECK-NEXT: math.exp
// CHECK-NEXT: arith.divf

// -----

// What the kernel overwrites can't be computed again.

kernel.func @in_place(%x: !kernel.buffer<f32, 12288>) target "cuda:90" per_thread 16 {
  kernel.for i0 in 0 to 3 map grid {
    %row = kernel.local : !kernel.buffer<f32, 4096, local>
    kernel.for i1 in 0 to 4096 map vector tile 1024 {
      %v = kernel.load %x[4096*i0 + i1]
      kernel.store %v, %row[i1]
      kernel.yield
    }
    kernel.for i2 in 0 to 4096 map vector tile 1024 {
      %v = kernel.load %row[4095 - i2]
      kernel.store %v, %x[4096*i0 + i2]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @run(%x: !aten.tensor<12288xf32, device = "cuda:0">) -> (!aten.tensor<12288xf32, device = "cuda:0">) {
  host.launch @in_place(%x)
  host.return %x
}

// CHECK-LABEL: @in_place
// CHECK: kernel.load %row[-i2 + 4095]

// -----

// A CPU keeps rows in its cache.

kernel.func @cpu(%x: !kernel.buffer<f32, 4096>, %y: !kernel.buffer<f32, 4096>) target "cpp" {
  %row = kernel.local : !kernel.buffer<f32, 4096, local>
  kernel.for i1 in 0 to 4096 map vector tile 16 {
    %v = kernel.load %x[i1]
    kernel.store %v, %row[i1]
    kernel.yield
  }
  kernel.for i2 in 0 to 4096 map vector tile 16 {
    %v = kernel.load %row[i2]
    kernel.store %v, %y[i2]
    kernel.yield
  }
  kernel.yield
}
host.func @run(%x: !aten.tensor<4096xf32>, %y: !aten.tensor<4096xf32>) -> (!aten.tensor<4096xf32>, !aten.tensor<4096xf32>) {
  host.launch @cpu(%x, %y)
  host.return %x, %y
}

// CHECK-LABEL: @cpu
// CHECK: kernel.load %row[i2]
