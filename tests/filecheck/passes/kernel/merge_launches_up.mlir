// RUN: inductile-opt %s --split-input-file --verify-each --target cuda:90 -p kernel-merge-launches | filecheck %s

// A sum, which joins no others, reads what the first writes, so that the first cannot move down to the third: this moves up, with its
// memory. What they report is numbered anew.
kernel.func @put(%x: !kernel.buffer<f32, 8>, %j: !kernel.buffer<i64, 1>, %y: !kernel.buffer<f32, 8>) errors ["IndexError: out of range"] {
  kernel.for i0 in 0 to 8 {
    %v = kernel.load %x[i0]
    %k = kernel.load %j[0]
    %c = arith.constant 8 : i64
    %m = arith.cmpi ult, %k, %c : i64
    kernel.assert %m, 1
    kernel.store %v, %y[d0] (d0 = %k) if %m
    kernel.yield
  }
  kernel.yield
}
kernel.func @check(%x: !kernel.buffer<f32, 8>, %j: !kernel.buffer<i64, 1>, %y: !kernel.buffer<f32, 8>) errors ["RuntimeError: negative", "IndexError: out of range"] {
  kernel.for i0 in 0 to 8 {
    %v = kernel.load %x[i0]
    %k = kernel.load %j[0]
    %z = arith.constant 0 : i64
    %p = arith.cmpi sge, %k, %z : i64
    kernel.assert %p, 1
    %c = arith.constant 8 : i64
    %m = arith.cmpi ult, %k, %c : i64
    kernel.assert %m, 2
    kernel.store %v, %y[i0] if %m
    kernel.yield
  }
  kernel.yield
}
kernel.func @sum(%x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 1>) {
  %s = kernel.reduce sum i0 in 0 to 8 {
    %v = kernel.load %x[i0]
    kernel.yield %v
  }
  kernel.store %s, %y[0]
  kernel.yield
}
host.func @up(%x: !aten.tensor<8xf32, device = "cuda:0">, %j: !aten.tensor<1xi64, device = "cuda:0">, %c: !aten.tensor<8xf32, device = "cuda:0">) -> (!aten.tensor<f32, device = "cuda:0">, !aten.tensor<8xf32, device = "cuda:0">) {
  host.launch @put(%x, %j, %c)
  %a = host.empty : !aten.tensor<f32, device = "cuda:0">
  host.launch @sum(%c, %a)
  %b = host.empty : !aten.tensor<8xf32, device = "cuda:0">
  host.launch @check(%x, %j, %b)
  host.return %a, %b
}
// CHECK-LABEL: kernel.func @put_and_1_more
// CHECK-SAME: errors ["IndexError: out of range", "RuntimeError: negative"]
// CHECK: kernel.assert %{{.*}}, 1
// CHECK: kernel.assert %{{.*}}, 2
// CHECK: kernel.assert %{{.*}}, 1
// CHECK: host.func @up
// CHECK-NEXT: %[[B:.*]] = host.empty
// CHECK-NEXT: host.launch @put_and_1_more(%x, %j, %c, %[[B]])
// CHECK-NEXT: %[[A:.*]] = host.empty
// CHECK-NEXT: host.launch @sum(%c, %[[A]])
// CHECK-NEXT: host.return %[[A]], %[[B]]

// -----

// Not over what writes its operands.
kernel.func @exp(%x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 8>) {
  kernel.for i0 in 0 to 8 {
    %v = kernel.load %x[i0]
    %w = math.exp %v : f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @over(%x: !aten.tensor<8xf32, device = "cuda:0">, %y: !aten.tensor<8xf32, device = "cuda:0">) -> (!aten.tensor<8xf32, device = "cuda:0">) {
  %a = host.empty : !aten.tensor<8xf32, device = "cuda:0">
  host.launch @exp(%x, %a)
  host.launch @exp(%a, %y)
  %b = host.empty : !aten.tensor<8xf32, device = "cuda:0">
  host.launch @exp(%y, %b)
  host.return %b
}
// CHECK-LABEL: host.func @over
// CHECK-NOT: _more
