// RUN: inductile-opt %s --split-input-file --verify-each --target cuda:90 -p kernel-merge-launches | filecheck %s

// On a GPU: each nest computes for itself what it needs, and what has no nest gets one of a single iteration. What
// reduces stays with what reduces, what one program has to run in order by itself, and what takes longer than its
// launch, too.
kernel.func @scale(%s: !kernel.buffer<f32, 1>, %x: !kernel.buffer<f32, 72>, %y: !kernel.buffer<f32, 72>) {
  %one = arith.constant 1.0 : f32
  %v = kernel.load %s[0]
  %w = arith.addf %v, %one : f32
  kernel.for i0 in 0 to 72 {
    %a = kernel.load %x[i0]
    %b = arith.mulf %a, %w : f32
    kernel.store %b, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @step(%s: !kernel.buffer<f32, 1>, %t: !kernel.buffer<f32, 1>) {
  %one = arith.constant 1.0 : f32
  %v = kernel.load %s[0]
  %w = arith.addf %v, %one : f32
  kernel.store %w, %t[0]
  kernel.yield
}
kernel.func @sum(%x: !kernel.buffer<f32, 72>, %y: !kernel.buffer<f32, 8>) {
  kernel.for i0 in 0 to 8 {
    %r = kernel.reduce sum r0 in 0 to 9 {
      %a = kernel.load %x[9*i0 + r0]
      kernel.yield %a
    }
    kernel.store %r, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @last(%x: !kernel.buffer<f32, 72>, %y: !kernel.buffer<f32, 1>) {
  kernel.for i0 in 0 to 72 {
    %a = kernel.load %x[i0]
    kernel.store mul atomic %a, %y[0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @large(%x: !kernel.buffer<f32, 4194304>, %y: !kernel.buffer<f32, 4194304>) {
  kernel.for i0 in 0 to 4194304 {
    %a = kernel.load %x[i0]
    kernel.store %a, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @gpu(%s: !aten.tensor<f32, device = "cuda:0">, %x: !aten.tensor<72xf32, device = "cuda:0">, %y: !aten.tensor<72xf32, device = "cuda:0">, %z: !aten.tensor<8xf32, device = "cuda:0">, %l: !aten.tensor<f32, device = "cuda:0">, %m: !aten.tensor<4194304xf32, device = "cuda:0">, %n: !aten.tensor<4194304xf32, device = "cuda:0">) -> (!aten.tensor<f32, device = "cuda:0">) {
  %t = host.empty : !aten.tensor<f32, device = "cuda:0">
  host.launch @step(%s, %t)
  host.launch @large(%m, %n)
  host.launch @sum(%x, %z)
  host.launch @last(%x, %l)
  host.launch @scale(%s, %x, %y)
  host.return %t
}
// CHECK-LABEL: kernel.func @step_and_1_more(%s: !kernel.buffer<f32, 1>, %t: !kernel.buffer<f32, 1>, %x: !kernel.buffer<f32, 72>, %y: !kernel.buffer<f32, 72>) {
// CHECK-NEXT: kernel.for i1 in 0 to 1 {
// CHECK-NEXT: arith.constant
// CHECK-NEXT: kernel.load %s[0]
// CHECK-NEXT: arith.addf
// CHECK-NEXT: kernel.store %{{.*}}, %t[0]
// CHECK-NEXT: kernel.yield
// CHECK-NEXT: }
// CHECK-NEXT: kernel.for i0 in 0 to 72 {
// CHECK-NEXT: arith.constant
// CHECK-NEXT: kernel.load %s[0]
// CHECK-NEXT: arith.addf
// CHECK-NEXT: kernel.load %x[i0]
// CHECK: host.func @gpu
// CHECK: host.launch @large
// CHECK: host.launch @sum
// CHECK: host.launch @last
// CHECK: host.launch @step_and_1_more(%s, %t, %x, %y)

// -----

// A launch whose operand dies would keep it alive over the next allocation; an argument that is not given does not die.
kernel.func @exp(%x: !kernel.buffer<f32, 524288>, %y: !kernel.buffer<f32, 524288>) {
  kernel.for i0 in 0 to 524288 {
    %v = kernel.load %x[i0]
    %w = math.exp %v : f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @dying(%x: !aten.tensor<524288xf32, device = "cuda:0">, %y: !aten.tensor<524288xf32, device = "cuda:0">) -> (!aten.tensor<524288xf32, device = "cuda:0">, !aten.tensor<524288xf32, device = "cuda:0">) given [0, 1] {
  %a = host.empty : !aten.tensor<524288xf32, device = "cuda:0">
  host.launch @exp(%x, %a)
  %b = host.empty : !aten.tensor<524288xf32, device = "cuda:0">
  host.launch @exp(%y, %b)
  host.return %a, %b
}
host.func @held(%x: !aten.tensor<524288xf32, device = "cuda:0">, %y: !aten.tensor<524288xf32, device = "cuda:0">) -> (!aten.tensor<524288xf32, device = "cuda:0">, !aten.tensor<524288xf32, device = "cuda:0">) {
  %a = host.empty : !aten.tensor<524288xf32, device = "cuda:0">
  host.launch @exp(%x, %a)
  %b = host.empty : !aten.tensor<524288xf32, device = "cuda:0">
  host.launch @exp(%y, %b)
  host.return %a, %b
}
host.func @alive(%x: !aten.tensor<524288xf32, device = "cuda:0">, %y: !aten.tensor<524288xf32, device = "cuda:0">) -> (!aten.tensor<524288xf32, device = "cuda:0">, !aten.tensor<524288xf32, device = "cuda:0">) {
  %a = host.empty : !aten.tensor<524288xf32, device = "cuda:0">
  %b = host.empty : !aten.tensor<524288xf32, device = "cuda:0">
  host.launch @exp(%x, %a)
  host.launch @exp(%y, %b)
  host.return %a, %b
}
// CHECK-LABEL: host.func @dying
// CHECK: host.launch @exp(%x, %a)
// CHECK: host.launch @exp(%y, %b)
// CHECK-LABEL: host.func @held
// CHECK: host.launch @exp_and_1_more(%x, %a, %y, %b)
// CHECK-LABEL: host.func @alive
// CHECK: host.launch @exp_and_1_more(%x, %a, %y, %b)
