// RUN: inductile-opt %s --split-input-file --verify-each -p kernel-hint-cache | inductile-opt - --split-input-file | filecheck %s

// A row of 300 elements is read twice, in tiles: the last loop needs it no more, and its results must not take its place.
// The weights are read by one loop only.

kernel.func @norm(%x: !kernel.buffer<f32, 2400>, %w: !kernel.buffer<f32, 300>, %y: !kernel.buffer<f32, 2400>) target "cuda:90" {
  kernel.for i0 in 0 to 8 map grid {
    %m = kernel.reduce sum r0 in 0 to 300 map vector tile 64 {
      %a = kernel.load %x[300*i0 + r0]
      kernel.yield %a
    }
    kernel.for i1 in 0 to 300 map vector tile 64 {
      %c = kernel.load %x[300*i0 + i1]
      %g = kernel.load %w[i1]
      %f = arith.mulf %c, %m : f32
      %h = arith.mulf %f, %g : f32
      kernel.store %h, %y[300*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @run(%x: !aten.tensor<2400xf32, device = "cuda:0">, %w: !aten.tensor<300xf32, device = "cuda:0">, %y: !aten.tensor<2400xf32, device = "cuda:0">) -> (!aten.tensor<2400xf32, device = "cuda:0">) {
  host.launch @norm(%x, %w, %y)
  host.return %y
}

// CHECK-LABEL: @norm
// CHECK: kernel.load evict_last %x[300*i0 + r0]
// CHECK: kernel.load evict_first %x[300*i0 + i1]
// CHECK: kernel.load %w[i1]
// CHECK: kernel.store evict_first %{{.*}}, %y[300*i0 + i1]

// -----

// Rows that lie in registers are read once by each program that nobody else reads. What is small stays in the cache for
// the next kernel. AMD's GPUs take no hints.

kernel.func @rows(%x: !kernel.buffer<f32, 2097152>, %y: !kernel.buffer<f32, 8192>) target "cuda:90" {
  kernel.for i0 in 0 to 8192 map grid {
    %m = kernel.reduce sum r0 in 0 to 256 map vector tile 256 {
      %a = kernel.load %x[256*i0 + r0]
      kernel.yield %a
    }
    kernel.store %m, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @small(%x: !kernel.buffer<f32, 2048>, %y: !kernel.buffer<f32, 8>) target "cuda:90" {
  kernel.for i0 in 0 to 8 map grid {
    %m = kernel.reduce sum r0 in 0 to 256 map vector tile 256 {
      %a = kernel.load %x[256*i0 + r0]
      kernel.yield %a
    }
    kernel.store %m, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @amd(%x: !kernel.buffer<f32, 2400>, %y: !kernel.buffer<f32, 8>) target "hip:gfx942" {
  kernel.for i0 in 0 to 8 map grid {
    %m = kernel.reduce sum r0 in 0 to 300 map vector tile 64 {
      %a = kernel.load %x[300*i0 + r0]
      kernel.yield %a
    }
    kernel.store %m, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @rows
// CHECK: kernel.load evict_first %x[256*i0 + r0]
// CHECK-LABEL: @small
// CHECK-NOT: evict
// CHECK-LABEL: @amd
// CHECK-NOT: evict

// -----

// Two parts of a buffer, each read once; and parts that have elements in common, which are read again.

kernel.func @halves(%x: !kernel.buffer<f32, 4194304>, %y: !kernel.buffer<f32, 8192>) target "cuda:90" {
  kernel.for i0 in 0 to 8192 map grid {
    %m = kernel.reduce sum r0 in 0 to 256 map vector tile 256 {
      %a = kernel.load %x[256*i0 + r0]
      %b = kernel.load %x[256*i0 + r0 + 2097152]
      %c = arith.mulf %a, %b : f32
      kernel.yield %c
    }
    kernel.store %m, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @neighbours(%x: !kernel.buffer<f32, 4194304>, %y: !kernel.buffer<f32, 8192>) target "cuda:90" {
  kernel.for i0 in 0 to 8192 map grid {
    %m = kernel.reduce sum r0 in 0 to 256 map vector tile 256 {
      %a = kernel.load %x[256*i0 + r0]
      %b = kernel.load %x[256*i0 + r0 + 256]
      %c = arith.mulf %a, %b : f32
      kernel.yield %c
    }
    kernel.store %m, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @halves
// CHECK: kernel.load evict_first %x[256*i0 + r0]
// CHECK: kernel.load evict_first %x[256*i0 + r0 + 2097152]
// CHECK-LABEL: @neighbours
// CHECK-NOT: evict

// -----

// Pairs of rows that lie half a block apart, by one nest, and what is behind all of these by the programs of another one:
// no element is read twice.

kernel.func @pairs(%x: !kernel.buffer<f32, 4194304>, %y: !kernel.buffer<f32, 8192>) target "cuda:90" {
  kernel.for i0 in 0 to 64 map grid {
    kernel.for i1 in 0 to 32 map grid {
      %m = kernel.reduce sum r0 in 0 to 512 map vector tile 512 {
        %a = kernel.load %x[32768*i0 + 512*i1 + r0]
        %b = kernel.load %x[32768*i0 + 512*i1 + r0 + 16384]
        %c = arith.mulf %a, %b : f32
        kernel.yield %c
      }
      kernel.store %m, %y[32*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.for i0 in 0 to 4096 map grid {
    %m = kernel.reduce sum r0 in 0 to 512 map vector tile 512 {
      %a = kernel.load %x[512*i0 + r0 + 2097152]
      kernel.yield %a
    }
    kernel.store %m, %y[i0 + 2048]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @pairs
// CHECK: kernel.load evict_first %x[32768*i0 + 512*i1 + r0]
// CHECK: kernel.load evict_first %x[32768*i0 + 512*i1 + r0 + 16384]
// CHECK: kernel.load evict_first %x[512*i0 + r0 + 2097152]
