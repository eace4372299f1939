// RUN: inductile-opt %s --split-input-file --target cuda:90 | filecheck %s
// RUN: inductile-opt %s --split-input-file -p 'module-attach-target{target="cuda:90"},kernel-tile' | filecheck %s
// RUN: inductile-opt %s --split-input-file --target hip:gfx950 | filecheck %s --check-prefix=HIP
// RUN: not inductile-opt %s --split-input-file --target cuda90 2>&1 | filecheck %s --check-prefix=UNKNOWN

// UNKNOWN: error: unknown target 'cuda90'; did you mean 'cuda:90'?

// A graph that was written for the CPU moves, with what its ops say of devices.

// CHECK: builtin.module attributes {machine.targets = #machine.targets<cpu = "cpp", cuda = "cuda:90">}
// CHECK: func.func @f(%x: !aten.tensor<8xf32, device = "cuda:0">) -> !aten.tensor<8xf32, device = "cuda:0">
// CHECK: aten.full(size = [8], {{.*}}device = "cuda:0"
// HIP: machine.targets = #machine.targets<cpu = "cpp", cuda = "hip:gfx950">
// HIP: aten.exp(%x) : !aten.tensor<8xf32, device = "cuda:0">
func.func @f(%x: !aten.tensor<8xf32>) -> !aten.tensor<8xf32> {
  %0 = aten.exp(%x) : !aten.tensor<8xf32>
  %1 = aten.full(size = [8], fill_value = 1.0, dtype = torch.float32, device = "cpu") : !aten.tensor<8xf32>
  %2 = aten.add.Tensor(%0, %1) : !aten.tensor<8xf32>
  func.return %2 : !aten.tensor<8xf32>
}

// -----

// Where some tensors are on the device nothing moves: kernels on the host's memory are for the CPU.

// CHECK: machine.targets = #machine.targets<cpu = "cpp", cuda = "cuda:90">
// CHECK: host.func @g(%x: !aten.tensor<8xf32>, %y: !aten.tensor<8xf32, device = "cuda:1">)
kernel.func @copy(%x: !kernel.buffer<f32, 8>) {
  kernel.yield
}
host.func @g(%x: !aten.tensor<8xf32>, %y: !aten.tensor<8xf32, device = "cuda:1">) -> (!aten.tensor<8xf32>) {
  host.launch @copy(%x)
  host.return %x
}

// -----

// A file may name its targets itself; the flag counts for its own device.

// CHECK: machine.targets = #machine.targets<cpu = "cpp:avx2", cuda = "cuda:90">
builtin.module attributes {machine.targets = #machine.targets<cpu = "cpp:avx2">} {
}

// -----

// From one GPU to another what lies in the host's memory stays there.

// CHECK: func.func @h(%x: !aten.tensor<8xf32, device = "cuda:1">, %n: !aten.tensor<f32>)
func.func @h(%x: !aten.tensor<8xf32, device = "xpu:1">, %n: !aten.tensor<f32>) -> !aten.tensor<8xf32, device = "xpu:1"> {
  %0 = aten.mul.Tensor(%x, %n) : !aten.tensor<8xf32, device = "xpu:1">
  func.return %0 : !aten.tensor<8xf32, device = "xpu:1">
}
