// RUN: inductile-opt %s --split-input-file --verify-each -p host-compose-views | filecheck %s

kernel.func @k(%x: !kernel.buffer<f32, 2>, %y: !kernel.buffer<f32, 8>) {
  kernel.yield
}

// Offsets add up, also where symbols are in them; what was only looked at through others disappears; a view that changes
// nothing is its source.

host.func @f(%x: !aten.tensor<(s0)x8xf32>) -> (!aten.tensor<8xf32>) symbols [#sym.symbol<s0, arg = 0, dim = 0>] {
  %row = host.view %x offset 8*s0 - 8 : !aten.tensor<1x8xf32>
  %flat = host.view %row offset 0 : !aten.tensor<8xf32>
  %inner = host.view %flat offset 2 : !aten.tensor<2xf32>
  %y = host.empty : !aten.tensor<8xf32>
  %matrix = host.view %y offset 0 : !aten.tensor<2x4xf32>
  %back = host.view %matrix offset 0 : !aten.tensor<8xf32>
  host.launch @k(%flat, %back)
  host.launch @k(%inner, %y)
  host.return %y
}

// CHECK-LABEL: host.func @f
// CHECK-NOT: %row
// CHECK: %flat = host.view %x offset 8*s0 - 8 : !aten.tensor<8xf32>
// CHECK-NEXT: %inner = host.view %x offset 8*s0 - 6 : !aten.tensor<2xf32>
// CHECK-NEXT: %y = host.empty : !aten.tensor<8xf32>
// CHECK-NEXT: host.launch @k(%flat, %y)
// CHECK-NEXT: host.launch @k(%inner, %y)

// -----

// An output stays a tensor of its own, and memory is looked at with other elements from the view that says so.

host.func @g(%x: !aten.tensor<8xf32>, %w: !aten.tensor<2x2xf32>) -> (!aten.tensor<8xf32>, !aten.tensor<1x2xf64>) symbols [] {
  %same = host.view %x offset 0 : !aten.tensor<8xf32>
  %bytes = host.view %x offset 2 : !aten.tensor<6xf32>
  %wide = host.view %bytes offset 0 : !aten.tensor<1x2xf64>
  %other = host.view %wide offset 1 : !aten.tensor<1x1xf64>
  %z = aten.add.Tensor(%wide, %other) : !aten.tensor<1x2xf64>
  host.return %same, %z
}

// CHECK-LABEL: host.func @g
// CHECK-NEXT: %same = host.view %x offset 0
// CHECK-NEXT: %bytes = host.view %x offset 2
// CHECK-NEXT: %wide = host.view %bytes offset 0
// CHECK-NEXT: %other = host.view %wide offset 1
