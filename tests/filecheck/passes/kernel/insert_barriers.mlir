// RUN: inductile-opt %s --split-input-file --verify-each -p kernel-insert-barriers | filecheck %s
// RUN: inductile-opt %s --split-input-file --verify-each -p kernel-insert-barriers,kernel-insert-barriers | filecheck %s

// One in front of a loop over tiles, rather than one in each step.

kernel.func @reverse(%x: !kernel.buffer<f32, 40>, %t: !kernel.buffer<f32, 40>, %y: !kernel.buffer<f32, 40>) target "cuda:90" num_warps 2 {
  kernel.for r0 in 0 to 40 map vector tile 16 {
    %v = kernel.load %x[r0]
    kernel.store %v, %t[39 - r0]
    kernel.yield
  }
  kernel.for r1 in 0 to 40 map vector tile 16 {
    %v = kernel.load %t[r1]
    kernel.store %v, %y[r1]
    kernel.yield
  }
  kernel.for r2 in 0 to 40 map vector tile 16 {
    %v = kernel.load %t[r2]
    kernel.store %v, %y[r2]
    kernel.yield
  }
  kernel.yield
}
host.func @run(%x: !aten.tensor<40xf32, device = "cuda:0">, %t: !aten.tensor<40xf32, device = "cuda:0">, %y: !aten.tensor<40xf32, device = "cuda:0">) -> (!aten.tensor<40xf32, device = "cuda:0">) {
  host.launch @reverse(%x, %t, %y)
  host.return %y
}

// CHECK-LABEL: @reverse
// CHECK-NEXT: kernel.for r0
// CHECK: }
// CHECK-NEXT: kernel.barrier
// CHECK-NEXT: kernel.for r1
// CHECK-NOT: kernel.barrier
// CHECK: kernel.for r2

// -----

// A row in registers is stored, and read by other lanes: one in front of the load.

kernel.func @covered(%x: !kernel.buffer<f32, 64>, %y: !kernel.buffer<f32, 64>, %z: !kernel.buffer<f32, 64>) target "cuda:90" {
  kernel.for i0 in 0 to 4 map grid {
    kernel.for r0 in 0 to 16 map vector tile 16 {
      %v = kernel.load %x[16*i0 + r0]
      kernel.store %v, %y[16*i0 + r0]
      kernel.yield
    }
    kernel.for r1 in 0 to 16 map vector tile 16 {
      %w = kernel.load %x[16*i0 + r1]
      %v = kernel.load %y[16*i0 + 15 - r1]
      %s = arith.addf %v, %w : f32
      kernel.store %s, %z[16*i0 + r1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @covered
// CHECK: kernel.for r1
// CHECK-NEXT: kernel.load %x
// CHECK-NEXT: kernel.barrier
// CHECK-NEXT: kernel.load %y

// -----

// A step reads what an earlier one stored elsewhere; what each lane keeps in a place of its own is seen by it.

kernel.func @steps(%x: !kernel.buffer<f32, 64>, %y: !kernel.buffer<f32, 80>, %z: !kernel.buffer<f32, 16>) target "cuda:90" num_warps 1 {
  kernel.for r0 in 1 to 5 {
    kernel.for i0 in 0 to 16 map vector tile 16 {
      %v = kernel.load %y[16*r0 - 1 - i0]
      kernel.store %v, %y[16*r0 + i0]
      kernel.yield
    }
    kernel.yield
  }
  kernel.for r1 in 0 to 4 {
    kernel.for i1 in 0 to 16 map vector tile 16 {
      %w = kernel.load %x[16*r1 + i1]
      %a = kernel.load %z[i1]
      %b = arith.addf %a, %w : f32
      kernel.store %b, %z[i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @run(%x: !aten.tensor<64xf32, device = "cuda:0">, %y: !aten.tensor<80xf32, device = "cuda:0">, %z: !aten.tensor<16xf32, device = "cuda:0">) -> (!aten.tensor<16xf32, device = "cuda:0">) {
  host.launch @steps(%x, %y, %z)
  host.return %z
}

// CHECK-LABEL: @steps
// CHECK-NEXT: kernel.for r0
// CHECK-NEXT: kernel.barrier
// CHECK-NEXT: kernel.for i0
// CHECK-NOT: kernel.barrier
// CHECK: kernel.yield

// -----

// All threads run a scalar program alike, and a CPU has none.

kernel.func @scalars(%x: !kernel.buffer<f32, 2>) target "cuda:90" {
  %v = kernel.load %x[0]
  kernel.store %v, %x[1]
  %w = kernel.load %x[1]
  kernel.store %w, %x[0]
  kernel.yield
}
kernel.func @cpu(%x: !kernel.buffer<f32, 40>, %t: !kernel.buffer<f32, 40>) target "cpp" {
  kernel.for r0 in 0 to 40 map vector tile 16 {
    %v = kernel.load %x[r0]
    kernel.store %v, %t[39 - r0]
    kernel.yield
  }
  kernel.for r1 in 0 to 40 map vector tile 16 {
    %v = kernel.load %t[r1]
    kernel.store %v, %x[r1]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @scalars
// CHECK-NOT: kernel.barrier
