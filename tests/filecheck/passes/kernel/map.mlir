// RUN: inductile-opt %s --split-input-file --verify-each --target cpp -p kernel-map | filecheck %s
// RUN: inductile-opt %s --split-input-file --verify-each --target cuda:90 -p kernel-map | filecheck %s --check-prefix=GPU

// Loops of a perfect nest may all run at once; what is inside is not mapped yet.

kernel.func @softmax(%x: !kernel.buffer<f32, 4194304>, %y: !kernel.buffer<f32, 1024>) {
  kernel.for i0 in 0 to 32 {
    kernel.for i1 in 0 to 32 {
      %m = kernel.reduce max i2 in 0 to 4096 {
        %v = kernel.load %x[131072*i0 + 4096*i1 + i2]
        kernel.yield %v
      }
      kernel.store %m, %y[32*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @softmax
// CHECK-NEXT: kernel.for i0 in 0 to 32 map parallel {
// CHECK-NEXT: kernel.for i1 in 0 to 32 map parallel {
// CHECK-NEXT: kernel.reduce max i2 in 0 to 4096 {
// GPU-LABEL: @softmax
// GPU-NEXT: kernel.for i0 in 0 to 32 map grid {
// GPU-NEXT: kernel.for i1 in 0 to 32 map grid {
// GPU-NEXT: kernel.reduce max i2 in 0 to 4096 {

// -----

// Sums of columns: lanes of a GPU's program lie along the columns, and so do those of its local buffers.

kernel.func @columns(%x: !kernel.buffer<f32, 4194304>, %y: !kernel.buffer<f32, 4194304>) {
  kernel.for i0 in 0 to 4096 {
    %row = kernel.local : !kernel.buffer<f32, 1024, local>
    %s = kernel.reduce sum i1 in 0 to 1024 {
      %v = kernel.load %x[4096*i1 + i0]
      kernel.store %v, %row[i1]
      kernel.yield %v
    }
    kernel.for i2 in 0 to 1024 {
      %v = kernel.load %row[i2]
      %d = arith.divf %v, %s : f32
      kernel.store %d, %y[4096*i2 + i0]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @columns
// CHECK-NEXT: kernel.for i0 in 0 to 4096 map parallel {
// CHECK-NEXT: kernel.local :
// GPU-LABEL: @columns
// GPU-NEXT: kernel.for i0 in 0 to 4096 map grid tile 32 {
// GPU-NEXT: kernel.local columnwise :
// GPU-NEXT: kernel.reduce sum i1 in 0 to 1024 {

// -----

// Rows that are added up at one of 10 places may meet, columns may not: these are outside, and run at once. A GPU adds
// up in memory.

kernel.func @bins(%x: !kernel.buffer<f32, 6400>, %y: !kernel.buffer<f32, 640>, %i: !kernel.buffer<i64, 100>) {
  kernel.for i0 in 0 to 100 {
    kernel.for i1 in 0 to 64 {
      %j = kernel.load %i[i0]
      %v = kernel.load %x[64*i0 + i1]
      kernel.store add atomic %v, %y[64*d0 + i1] (d0 = %j)
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @run_bins(%x: !aten.tensor<6400xf32, device = "cuda:0">, %y: !aten.tensor<640xf32, device = "cuda:0">, %i: !aten.tensor<100xi64, device = "cuda:0">) -> (!aten.tensor<640xf32, device = "cuda:0">) {
  host.launch @bins(%x, %y, %i)
  host.return %y
}

// CHECK-LABEL: @bins
// CHECK-NEXT: kernel.for i1 in 0 to 64 map parallel {
// CHECK-NEXT: kernel.for i0 in 0 to 100 {
// GPU-LABEL: @bins
// GPU-NEXT: kernel.for i0 in 0 to 100 map grid {
// GPU-NEXT: kernel.for i1 in 0 to 64 map grid {

// -----

// One loop says how far another one runs: only the outer one is mapped. Of a nest that another one waits for, nothing is
// on a GPU, whose programs do not wait for each other.

kernel.func @triangle(%x: !kernel.buffer<f32, 1024>, %y: !kernel.buffer<f32, 1024>, %z: !kernel.buffer<f32, 32>) {
  kernel.for i0 in 0 to 32 {
    kernel.for i1 in 0 to i0 + 1 {
      %v = kernel.load %x[32*i0 + i1]
      kernel.store %v, %y[32*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.for i2 in 0 to 32 {
    %v = kernel.load %y[33*i2]
    kernel.store %v, %z[i2]
    kernel.yield
  }
  kernel.yield
}
host.func @run_triangle(%x: !aten.tensor<1024xf32, device = "cuda:0">, %y: !aten.tensor<1024xf32, device = "cuda:0">, %z: !aten.tensor<32xf32, device = "cuda:0">) -> (!aten.tensor<32xf32, device = "cuda:0">) {
  host.launch @triangle(%x, %y, %z)
  host.return %z
}

// CHECK-LABEL: @triangle
// CHECK-NEXT: kernel.for i0 in 0 to 32 map parallel {
// CHECK-NEXT: kernel.for i1 in 0 to i0 + 1 {
// CHECK: kernel.for i2 in 0 to 32 map parallel {
// GPU-LABEL: @triangle
// GPU-NEXT: kernel.for i0 in 0 to 32 {
// GPU-NEXT: kernel.for i1 in 0 to i0 + 1 {
// GPU: kernel.for i2 in 0 to 32 {

// -----

// A mapping that a user wrote is kept.

kernel.func @pinned(%x: !kernel.buffer<f32, 4096>, %y: !kernel.buffer<f32, 4096>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 64 map vector tile 8 {
      %v = kernel.load %x[64*i0 + i1]
      kernel.store %v, %y[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @run_pinned(%x: !aten.tensor<4096xf32, device = "cuda:0">, %y: !aten.tensor<4096xf32, device = "cuda:0">) -> (!aten.tensor<4096xf32, device = "cuda:0">) {
  host.launch @pinned(%x, %y)
  host.return %y
}

// CHECK-LABEL: @pinned
// CHECK-NEXT: kernel.for i0 in 0 to 64 {
// CHECK-NEXT: kernel.for i1 in 0 to 64 map vector tile 8 {
// GPU-LABEL: @pinned
// GPU-NEXT: kernel.for i0 in 0 to 64 {
// GPU-NEXT: kernel.for i1 in 0 to 64 map vector tile 8 {

// -----

// A loop that carries sums in a local buffer from outside runs its iterations one after the other.

kernel.func @carries(%x: !kernel.buffer<f32, 4096>, %y: !kernel.buffer<f32, 64>) {
  %total = kernel.local : !kernel.buffer<f32, 64, local>
  kernel.for i1 in 0 to 64 {
    %zero = arith.constant 0.0 : f32
    kernel.store %zero, %total[i1]
    kernel.yield
  }
  kernel.for i0 in 0 to 64 {
    %s = kernel.reduce sum i1 in 0 to 64 {
      %v = kernel.load %x[64*i0 + i1]
      kernel.yield %v
    }
    kernel.for i1 in 0 to 64 {
      %old = kernel.load %total[i1]
      %new = arith.addf %old, %s : f32
      kernel.store %new, %total[i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.for i1 in 0 to 64 {
    %t = kernel.load %total[i1]
    kernel.store %t, %y[i1]
    kernel.yield
  }
  kernel.yield
}
host.func @run_carries(%x: !aten.tensor<4096xf32, device = "cuda:0">, %y: !aten.tensor<64xf32, device = "cuda:0">) -> (!aten.tensor<64xf32, device = "cuda:0">) {
  host.launch @carries(%x, %y)
  host.return %y
}

// CHECK-LABEL: @carries
// CHECK: kernel.for i0 in 0 to 64 {
// GPU-LABEL: @carries
// GPU: kernel.for i0 in 0 to 64 {
