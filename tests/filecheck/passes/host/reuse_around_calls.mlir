// RUN: inductile-opt --allow-effects %s --verify-each -p host-reuse | filecheck %s

// What a collective was given may not be written before it is waited for, although the last op that names it is past:
// the result of `neg` may not lie in it, neither as a buffer written over nor as an allocation taken over.
kernel.func @exp(%x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 8>) {
  kernel.for i0 in 0 to 8 {
    %v = kernel.load %x[i0]
    %w = math.exp %v : f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @neg(%x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 8>) {
  kernel.for i0 in 0 to 8 {
    %v = kernel.load %x[i0]
    %w = arith.negf %v : f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @f(%x: !aten.tensor<8xf32>) -> (!aten.tensor<16xf32>, !aten.tensor<8xf32>, !aten.tensor<8xf32>) {
  %a = host.empty : !aten.tensor<8xf32>
  host.launch @exp(%x, %a)
  %g = aten.call "_c10d_functional::all_gather_into_tensor"(%a, 2, "0") : !aten.tensor<16xf32>
  %b = host.empty : !aten.tensor<8xf32>
  host.launch @neg(%a, %b)
  %c = host.empty : !aten.tensor<8xf32>
  host.launch @exp(%x, %c)
  %d = aten.cumsum(%c, dim = 0) : !aten.tensor<8xf32>
  %w = aten.call "_c10d_functional::wait_tensor"(%g) : !aten.tensor<16xf32>
  host.return %w, %b, %d
}
// CHECK: host.func @f
// CHECK: host.launch @exp(%x, %a)
// CHECK: host.launch @neg(%a, %b)
// CHECK: %c = host.empty
// CHECK: host.launch @exp(%x, %c)
