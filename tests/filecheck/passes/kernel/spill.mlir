// RUN: inductile-opt %s --split-input-file --verify-each=numerics -p kernel-spill | filecheck %s

// A row that tiles do not cover gets a piece of memory for each program, behind those of the programs before it.

kernel.func @turn(%x: !kernel.buffer<f32, 4096*n>) symbols (n) target "cuda:90" per_thread 16 {
  kernel.for i0 in 0 to n map grid {
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
host.func @run(%x: !aten.tensor<(s0)x4096xf32, device = "cuda:0">) -> (!aten.tensor<(s0)x4096xf32, device = "cuda:0">) symbols [#sym.symbol<s0, arg = 0, dim = 0>] {
  host.launch @turn(%x) [s0]
  host.return %x
}

// CHECK-LABEL: kernel.func @turn(%x: !kernel.buffer<f32, 4096*n>, %row: !kernel.buffer<f32, 4096*n>) symbols (n) target "cuda:90" per_thread 16 {
// CHECK-NOT: kernel.local
// CHECK: kernel.store %v, %row[4096*i0 + i1]
// CHECK: kernel.load %row[4096*i0 - i2 + 4095]
// CHECK: [[SCRATCH:%[0-9]+]] = host.empty : !aten.tensor<(4096*s0)xf32, device = "cuda:0">
// CHECK-NEXT: host.launch @turn(%x, [[SCRATCH]]) [s0]

// -----

// Lanes that lie along the columns access neighbours in memory; what fits registers stays there.

kernel.func @columns(%x: !kernel.buffer<f32, 8192>) target "cuda:90" per_thread 16 {
  kernel.for i0 in 0 to 64 map grid tile 32 {
    %few = kernel.local columnwise : !kernel.buffer<f32, 4, local>
    %many = kernel.local columnwise : !kernel.buffer<f32, 128, local>
    kernel.for i1 in 0 to 4 map vector tile 4 {
      %v = kernel.load %x[64*i1 + i0]
      kernel.store %v, %few[i1]
      kernel.yield
    }
    kernel.for i2 in 0 to 4 map vector tile 4 {
      %v = kernel.load %few[i2]
      kernel.store %v, %x[64*i2 + i0]
      kernel.yield
    }
    kernel.for i3 in 0 to 128 map vector tile 16 {
      %v = kernel.load %x[64*i3 + i0]
      kernel.store %v, %many[i3]
      kernel.yield
    }
    kernel.for i4 in 0 to 128 map vector tile 16 {
      %v = kernel.load %many[127 - i4]
      kernel.store %v, %x[64*i4 + i0]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @run(%x: !aten.tensor<8192xf32, device = "cuda:0">) -> (!aten.tensor<8192xf32, device = "cuda:0">) {
  host.launch @columns(%x)
  host.return %x
}

// CHECK-LABEL: kernel.func @columns(%x: !kernel.buffer<f32, 8192>, %many: !kernel.buffer<f32, 8192>)
// CHECK: %few = kernel.local : !kernel.buffer<f32, 4, local>
// CHECK-NOT: kernel.local
// CHECK: kernel.store %{{.*}}, %many[64*i3 + i0]

// -----

// Parts whose last one has fewer rows get as much memory as the others.

kernel.func @parts(%x: !kernel.buffer<f32, 20480>) target "cuda:90" per_thread 16 {
  kernel.for i0 in 0 to 3 map grid {
    kernel.for i1 in 0 to min(2, -2*i0 + 5) {
      %row = kernel.local : !kernel.buffer<f32, 4096, local>
      kernel.for i2 in 0 to 4096 map vector tile 1024 {
        %v = kernel.load %x[8192*i0 + 4096*i1 + i2]
        kernel.store %v, %row[i2]
        kernel.yield
      }
      kernel.for i3 in 0 to 4096 map vector tile 1024 {
        %v = kernel.load %row[4095 - i3]
        kernel.store %v, %x[8192*i0 + 4096*i1 + i3]
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @run(%x: !aten.tensor<5x4096xf32, device = "cuda:0">) -> (!aten.tensor<5x4096xf32, device = "cuda:0">) {
  host.launch @parts(%x)
  host.return %x
}

// CHECK-LABEL: kernel.func @parts(%x: !kernel.buffer<f32, 20480>, %row: !kernel.buffer<f32, 24576>)
// CHECK: kernel.store %v, %row[8192*i0 + 4096*i1 + i2]
