// RUN: inductile-opt %s --split-input-file --verify-each -p kernel-deduplicate | filecheck %s

// Names of kernels, symbols, axes and values do not tell kernels apart.

kernel.func @exp_0(%x: !kernel.buffer<f32, 4*s0>, %y: !kernel.buffer<f32, 4*s0>) symbols (s0) {
  kernel.for i0 in 0 to 4*s0 {
    %v = kernel.load %x[i0]
    %w = math.exp %v : f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @exp_1(%a: !kernel.buffer<f32, 4*s7>, %b: !kernel.buffer<f32, 4*s7>) symbols (s7) {
  kernel.for j in 0 to 4*s7 {
    %e = kernel.load %a[j]
    %f = math.exp %e : f32
    kernel.store %f, %b[j]
    kernel.yield
  }
  kernel.yield
}
host.func @f(%x: !aten.tensor<(s0)x4xf32>, %z: !aten.tensor<(s7)x4xf32>) -> (!aten.tensor<(s0)x4xf32>, !aten.tensor<(s7)x4xf32>) symbols [#sym.symbol<s0, arg = 0, dim = 0>, #sym.symbol<s7, arg = 1, dim = 0>] {
  %y = host.empty : !aten.tensor<(s0)x4xf32>
  %w = host.empty : !aten.tensor<(s7)x4xf32>
  host.launch @exp_0(%x, %y) [s0]
  host.launch @exp_1(%z, %w) [s7]
  host.return %y, %w
}

// CHECK:     kernel.func @exp_0
// CHECK-NOT: kernel.func
// CHECK:     host.launch @exp_0(%x, %y) [s0]
// CHECK:     host.launch @exp_0(%z, %w) [s7]

// -----

// Which buffer an op reads, the sign of a zero, a cast's type and a combiner do.

kernel.func @read_first(%x: !kernel.buffer<f32, 1>, %y: !kernel.buffer<f32, 1>, %z: !kernel.buffer<f32, 1>) {
  %v = kernel.load %x[0]
  kernel.store %v, %z[0]
  kernel.yield
}
kernel.func @read_second(%x: !kernel.buffer<f32, 1>, %y: !kernel.buffer<f32, 1>, %z: !kernel.buffer<f32, 1>) {
  %v = kernel.load %y[0]
  kernel.store %v, %z[0]
  kernel.yield
}
kernel.func @zero(%z: !kernel.buffer<f32, 1>) {
  %v = arith.constant 0.0 : f32
  kernel.store %v, %z[0]
  kernel.yield
}
kernel.func @minus_zero(%z: !kernel.buffer<f32, 1>) {
  %v = arith.constant -0.0 : f32
  kernel.store %v, %z[0]
  kernel.yield
}
kernel.func @sum(%x: !kernel.buffer<f32, 8>, %z: !kernel.buffer<f32, 1>) {
  %s = kernel.reduce sum i0 in 0 to 8 {
    %v = kernel.load %x[i0]
    kernel.yield %v
  }
  kernel.store %s, %z[0]
  kernel.yield
}
kernel.func @max(%x: !kernel.buffer<f32, 8>, %z: !kernel.buffer<f32, 1>) {
  %s = kernel.reduce max i0 in 0 to 8 {
    %v = kernel.load %x[i0]
    kernel.yield %v
  }
  kernel.store %s, %z[0]
  kernel.yield
}

// CHECK: kernel.func @read_first
// CHECK: kernel.func @read_second
// CHECK: kernel.func @zero
// CHECK: kernel.func @minus_zero
// CHECK: kernel.func @sum
// CHECK: kernel.func @max

// -----

// So do the parts of a schedule that stand in front of the body.

kernel.func @plain(%x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 8>) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to 8 map grid {
    %v = kernel.load %x[i0]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @more_warps(%x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 8>) target "cuda:90" num_warps 8 {
  kernel.for i0 in 0 to 8 map grid {
    %v = kernel.load %x[i0]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @turns(%x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 8>) target "cuda:90" num_warps 4 programs 2 {
  kernel.for i0 in 0 to 8 map grid {
    %v = kernel.load %x[i0]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @more_turns(%x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 8>) target "cuda:90" num_warps 4 programs 4 {
  kernel.for i0 in 0 to 8 map grid {
    %v = kernel.load %x[i0]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @streams(%x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 8>) target "cuda:90" num_warps 4 streams {
  kernel.for i0 in 0 to 8 map grid {
    %v = kernel.load %x[i0]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @again(%x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 8>) target "cuda:90" num_warps 4 programs 2 {
  kernel.for i0 in 0 to 8 map grid {
    %v = kernel.load %x[i0]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK:     kernel.func @plain
// CHECK:     kernel.func @more_warps
// CHECK:     kernel.func @turns
// CHECK:     kernel.func @more_turns
// CHECK:     kernel.func @streams
// CHECK-NOT: kernel.func

// -----

// A second loop over axes of the same names is compared axis by axis: one kernel writes rows, the other columns.

kernel.func @rows(%x: !kernel.buffer<f32, 16>, %y: !kernel.buffer<f32, 1>, %z: !kernel.buffer<f32, 16>) {
  %s = kernel.reduce sum i0 in 0 to 4 {
    %t = kernel.reduce sum i1 in 0 to 4 {
      %v = kernel.load %x[4*i0 + i1]
      kernel.yield %v
    }
    kernel.yield %t
  }
  kernel.store %s, %y[0]
  kernel.for i0 in 0 to 4 {
    kernel.for i1 in 0 to 4 {
      %v = kernel.load %x[4*i0 + i1]
      kernel.store %v, %z[4*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
kernel.func @columns(%x: !kernel.buffer<f32, 16>, %y: !kernel.buffer<f32, 1>, %z: !kernel.buffer<f32, 16>) {
  %s = kernel.reduce sum i0 in 0 to 4 {
    %t = kernel.reduce sum i1 in 0 to 4 {
      %v = kernel.load %x[4*i0 + i1]
      kernel.yield %v
    }
    kernel.yield %t
  }
  kernel.store %s, %y[0]
  kernel.for i0 in 0 to 4 {
    kernel.for i1 in 0 to 4 {
      %v = kernel.load %x[4*i0 + i1]
      kernel.store %v, %z[4*i1 + i0]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @rows
// CHECK:       kernel.func @columns

// -----

// A kernel of the CPU's tensors and one of a GPU's get schedules of their own.

kernel.func @here(%x: !kernel.buffer<f32, 4>, %y: !kernel.buffer<f32, 4>) {
  kernel.for i0 in 0 to 4 {
    %v = kernel.load %x[i0]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @there(%x: !kernel.buffer<f32, 4>, %y: !kernel.buffer<f32, 4>) {
  kernel.for i0 in 0 to 4 {
    %v = kernel.load %x[i0]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @there_again(%x: !kernel.buffer<f32, 4>, %y: !kernel.buffer<f32, 4>) {
  kernel.for i0 in 0 to 4 {
    %v = kernel.load %x[i0]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @two(%x: !aten.tensor<4xf32>, %y: !aten.tensor<4xf32, device = "cuda:0">) -> (!aten.tensor<4xf32>, !aten.tensor<4xf32, device = "cuda:0">, !aten.tensor<4xf32, device = "cuda:0">) {
  %a = host.empty : !aten.tensor<4xf32>
  host.launch @here(%x, %a)
  %b = host.empty : !aten.tensor<4xf32, device = "cuda:0">
  host.launch @there(%y, %b)
  %c = host.empty : !aten.tensor<4xf32, device = "cuda:0">
  host.launch @there_again(%y, %c)
  host.return %a, %b, %c
}

// CHECK-LABEL: host.func @two
// CHECK:         host.launch @here(
// CHECK:         host.launch @there(
// CHECK:         host.launch @there(
