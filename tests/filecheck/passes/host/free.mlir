// RUN: inductile-opt %s --split-input-file --verify-each -p host-free | filecheck %s

kernel.func @k(%x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 8>) {
  kernel.yield
}

// Values end behind their last use; a source lives as long as its views; an unused allocation disappears.

host.func @f(%x: !aten.tensor<8xf32>, %unused: !aten.tensor<8xf32>) -> (!aten.tensor<8xf32>, !aten.tensor<2xf32>) symbols [] {
  %a = host.empty : !aten.tensor<8xf32>
  host.launch @k(%x, %a)
  %none = host.empty : !aten.tensor<8xf32>
  %v = host.view %a offset 4 : !aten.tensor<4xf32>
  %b = host.empty : !aten.tensor<8xf32>
  host.launch @k(%a, %b)
  %c = aten.relu(%v) : !aten.tensor<4xf32>
  %d = aten.cat([%c, %v], dim = 0) : !aten.tensor<8xf32>
  %e = host.view %d offset 2 : !aten.tensor<2xf32>
  host.return %b, %e
}

// CHECK-LABEL: kernel.func @k
// CHECK-LABEL: host.func @f
// CHECK-NEXT: host.free %unused
// CHECK: host.free %x
// CHECK: host.free %c, %v, %a

// -----

// What an ATen call may return a view of lives on with it.

host.func @alias(%x: !aten.tensor<8xf32>) -> (!aten.tensor<4x2xf32>) symbols [] {
  %a = aten.relu(%x) : !aten.tensor<8xf32>
  %b = aten.reshape(%a, shape = [4, 2]) : !aten.tensor<4x2xf32>
  host.return %b
}

// CHECK-LABEL: host.func @alias
// CHECK: host.free %x

// -----

// An update of an argument is a use of it; nothing returned, nothing kept.

host.func @update(%x: !aten.tensor<8xf32>, %y: !aten.tensor<8xf32>) symbols [] {
  host.copy %y to %x
  host.return
}

// CHECK-LABEL: host.func @update
// CHECK: host.free %x, %y

// -----

// A program that frees has been through the pipeline: it stays as it is.

host.func @freed(%x: !aten.tensor<8xf32>) -> (!aten.tensor<8xf32>) symbols [] {
  %a = aten.relu(%x) : !aten.tensor<8xf32>
  host.free %x
  host.return %a
}

// CHECK-LABEL: host.func @freed
// CHECK: host.free %x
// CHECK-NEXT: host.return %a
