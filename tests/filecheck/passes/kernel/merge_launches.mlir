// RUN: inductile-opt %s --split-input-file --verify-each=numerics -p kernel-merge-launches --remarks 2>&1 | filecheck %s
// RUN: inductile-opt %s --split-input-file --verify-each -p kernel-merge-launches{small=8} | filecheck %s --check-prefix=SMALL
// RUN: inductile-opt %s --split-input-file --verify-each -p kernel-merge-launches{max_launches=2} | filecheck %s --check-prefix=TWO

// Small launches that do not depend on one another are one; what they both read is one buffer. The third reads what
// the first writes and stays behind it.
kernel.func @scale_0(%s: !kernel.buffer<f32, 1>, %x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 8>) {
  kernel.for i0 in 0 to 8 {
    %t = kernel.load %s[0]
    %v = kernel.load %x[i0]
    %w = arith.mulf %v, %t : f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @scale_1(%s: !kernel.buffer<f32, 1>, %x: !kernel.buffer<f32, 2*s0>, %y: !kernel.buffer<f32, 2*s0>) symbols (s0) {
  kernel.for i0 in 0 to 2*s0 {
    %t = kernel.load %s[0]
    %v = kernel.load %x[i0]
    %w = arith.mulf %v, %t : f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @scale(%s: !aten.tensor<1xf32>, %x: !aten.tensor<8xf32>, %a: !aten.tensor<(s0)x2xf32>) -> (!aten.tensor<(s0)x2xf32>, !aten.tensor<8xf32>) symbols [#sym.symbol<s0, arg = 2, dim = 0, hint = 4>] {
  %y = host.empty : !aten.tensor<8xf32>
  host.launch @scale_0(%s, %x, %y)
  %b = host.empty : !aten.tensor<(s0)x2xf32>
  host.launch @scale_1(%s, %a, %b) [s0]
  %z = host.empty : !aten.tensor<8xf32>
  host.launch @scale_0(%s, %y, %z)
  host.return %b, %z
}
// CHECK-LABEL: kernel.func @scale_0_and_1_more(%s: !kernel.buffer<f32, 1>, %x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 8>, %x_1: !kernel.buffer<f32, 2*s0>, %y_1: !kernel.buffer<f32, 2*s0>) symbols (s0) {
// CHECK: kernel.for i0 in 0 to 8 {
// CHECK: kernel.store %{{.*}}, %y[i0]
// CHECK: kernel.for i0 in 0 to 2*s0 {
// CHECK: kernel.store %{{.*}}, %y_1[i0]
// CHECK: kernel.func @scale_0(
// CHECK-NOT: kernel.func @scale_1
// CHECK: host.func @scale
// CHECK: host.empty : !aten.tensor<8xf32>
// CHECK-NEXT: host.empty : !aten.tensor<(s0)x2xf32>
// CHECK-NEXT: host.launch @scale_0_and_1_more(%s, %x, %y, %a, %b) [s0]
// CHECK-NEXT: host.empty
// CHECK-NEXT: host.launch @scale_0(%s, %y, %z)
// Others are larger than that.
// SMALL-NOT: _more

// -----

// A launch in between that needs the first: the first may not move behind it, so nothing joins it any more. Merged
// launches that are alike share a kernel.
kernel.func @exp(%x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 8>) {
  kernel.for i0 in 0 to 8 {
    %v = kernel.load %x[i0]
    %w = math.exp %v : f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @chains(%x: !aten.tensor<8xf32>, %y: !aten.tensor<8xf32>) -> (!aten.tensor<8xf32>, !aten.tensor<8xf32>, !aten.tensor<8xf32>, !aten.tensor<8xf32>) {
  %a = host.empty : !aten.tensor<8xf32>
  host.launch @exp(%x, %a)
  %b = host.empty : !aten.tensor<8xf32>
  host.launch @exp(%a, %b)
  %c = host.empty : !aten.tensor<8xf32>
  host.launch @exp(%y, %c)
  %d = host.empty : !aten.tensor<8xf32>
  host.launch @exp(%c, %d)
  host.return %a, %b, %c, %d
}
host.func @many(%x: !aten.tensor<8xf32>, %y: !aten.tensor<8xf32>) -> (!aten.tensor<8xf32>, !aten.tensor<8xf32>, !aten.tensor<8xf32>, !aten.tensor<8xf32>) {
  %a = host.empty : !aten.tensor<8xf32>
  host.launch @exp(%x, %a)
  %b = host.empty : !aten.tensor<8xf32>
  host.launch @exp(%y, %b)
  %c = host.empty : !aten.tensor<8xf32>
  host.launch @exp(%x, %c)
  %d = host.empty : !aten.tensor<8xf32>
  host.launch @exp(%y, %d)
  host.return %a, %b, %c, %d
}
// CHECK-LABEL: host.func @chains
// CHECK: host.launch @exp(%x, %a)
// CHECK: host.launch @exp_and_1_more(%a, %b, %y, %c)
// CHECK: host.launch @exp(%c, %d)
// CHECK-LABEL: host.func @many
// CHECK: host.launch @exp_and_3_more(%x, %a, %y, %b, %c, %d)
// TWO-LABEL: host.func @many
// TWO: host.launch @exp_and_1_more(%x, %a, %y, %b)
// TWO: host.launch @exp_and_1_more(%x, %c, %y, %d)

// -----

// A kernel's symbol is what a launch passes for it, whatever that is called in the program: these are large.
kernel.func @exp(%x: !kernel.buffer<f32, s0>, %y: !kernel.buffer<f32, s0>) symbols (s0) {
  kernel.for i0 in 0 to s0 {
    %v = kernel.load %x[i0]
    %w = math.exp %v : f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @renamed(%x: !aten.tensor<(s0)xf32>, %y: !aten.tensor<(s1)xf32>) -> (!aten.tensor<(s1)xf32>, !aten.tensor<(s1)xf32>) symbols [#sym.symbol<s0, arg = 0, dim = 0, hint = 4>, #sym.symbol<s1, arg = 1, dim = 0, hint = 1000000>] {
  %a = host.empty : !aten.tensor<(s1)xf32>
  host.launch @exp(%y, %a) [s1]
  %b = host.empty : !aten.tensor<(s1)xf32>
  host.launch @exp(%y, %b) [s1]
  host.return %a, %b
}
// CHECK-LABEL: host.func @renamed
// CHECK: host.launch @exp(%y, %a) [s1]
// CHECK: host.launch @exp(%y, %b) [s1]

// -----

// An ATen call between launches, and a write to what the other reads, through a view.
kernel.func @exp(%x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 8>) {
  kernel.for i0 in 0 to 8 {
    %v = kernel.load %x[i0]
    %w = math.exp %v : f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @apart(%x: !aten.tensor<8xf32>, %y: !aten.tensor<16xf32>) -> (!aten.tensor<8xf32>, !aten.tensor<8xf32>) {
  %a = host.empty : !aten.tensor<8xf32>
  host.launch @exp(%x, %a)
  %b = aten.cumsum(%a, dim = 0) : !aten.tensor<8xf32>
  %c = host.empty : !aten.tensor<8xf32>
  host.launch @exp(%x, %c)
  %v = host.view %y offset 0 : !aten.tensor<8xf32>
  host.launch @exp(%c, %v)
  %w = host.view %y offset 0 : !aten.tensor<2x4xf32>
  %d = host.empty : !aten.tensor<8xf32>
  host.launch @exp(%w, %d)
  host.return %b, %d
}
// CHECK-LABEL: host.func @apart
// CHECK-NOT: _more
// CHECK: host.return
// CHECK: remark: [kernel-merge-launches] passed: host.launch: 2 launches are one
