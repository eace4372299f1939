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

// CHECK-BLESS
// CHECK: builtin.module {
// CHECK-NEXT:   kernel.func @k(%x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 8>) {
// CHECK-NEXT:     kernel.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   host.func @f(%x: !aten.tensor<8xf32>, %unused: !aten.tensor<8xf32>) -> (!aten.tensor<8xf32>, !aten.tensor<2xf32>) {
// CHECK-NEXT:     host.free %unused
// CHECK-NEXT:     %a = host.empty : !aten.tensor<8xf32>
// CHECK-NEXT:     host.launch @k(%x, %a)
// CHECK-NEXT:     host.free %x
// CHECK-NEXT:     %v = host.view %a offset 4 : !aten.tensor<4xf32>
// CHECK-NEXT:     %b = host.empty : !aten.tensor<8xf32>
// CHECK-NEXT:     host.launch @k(%a, %b)
// CHECK-NEXT:     %c = aten.relu(%v) : !aten.tensor<4xf32>
// CHECK-NEXT:     %d = aten.cat([%c, %v]) : !aten.tensor<8xf32>
// CHECK-NEXT:     host.free %c, %v, %a
// CHECK-NEXT:     %e = host.view %d offset 2 : !aten.tensor<2xf32>
// CHECK-NEXT:     host.return %b, %e
// CHECK-NEXT:   }
// CHECK-NEXT: }

// -----

// What an ATen call may return a view of lives on with it.

host.func @alias(%x: !aten.tensor<8xf32>) -> (!aten.tensor<4x2xf32>) symbols [] {
  %a = aten.relu(%x) : !aten.tensor<8xf32>
  %b = aten.reshape(%a, shape = [4, 2]) : !aten.tensor<4x2xf32>
  host.return %b
}

// CHECK-BLESS
// CHECK: builtin.module {
// CHECK-NEXT:   host.func @alias(%x: !aten.tensor<8xf32>) -> (!aten.tensor<4x2xf32>) {
// CHECK-NEXT:     %a = aten.relu(%x) : !aten.tensor<8xf32>
// CHECK-NEXT:     host.free %x
// CHECK-NEXT:     %b = aten.reshape(%a, shape = [4, 2]) : !aten.tensor<4x2xf32>
// CHECK-NEXT:     host.return %b
// CHECK-NEXT:   }
// CHECK-NEXT: }

// -----

// An update of an argument is a use of it; nothing returned, nothing kept.

host.func @update(%x: !aten.tensor<8xf32>, %y: !aten.tensor<8xf32>) symbols [] {
  host.copy %y to %x
  host.return
}

// CHECK-BLESS
// CHECK: builtin.module {
// CHECK-NEXT:   host.func @update(%x: !aten.tensor<8xf32>, %y: !aten.tensor<8xf32>) {
// CHECK-NEXT:     host.copy %y to %x
// CHECK-NEXT:     host.free %x, %y
// CHECK-NEXT:     host.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
