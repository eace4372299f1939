// RUN: inductile-opt %s --split-input-file --verify-each -p host-share-places,host-free | filecheck %s

kernel.func @k(%x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 8>) {
  kernel.yield
}

// What lies in the same bytes with the same type is one tensor, a view and memory as well; other bytes, another type and
// what launches alone use have no number. The pool is freed behind all that lies in it.

host.func @f(%x: !aten.tensor<8xf32>) -> (!aten.tensor<8xf32>, !aten.tensor<4xf32>, !aten.tensor<4xf32>) {
  %pool = host.empty : !aten.tensor<128xui8>
  %a = host.empty in %pool at 64 : !aten.tensor<8xf32>
  host.launch @k(%x, %a)
  %b = aten.relu(%a) : !aten.tensor<8xf32>
  %half = host.view %a offset 4 : !aten.tensor<4xf32>
  %c = aten.relu(%half) : !aten.tensor<4xf32>
  %launched = host.empty in %pool at 64 : !aten.tensor<8xf32>
  host.launch @k(%b, %launched)
  host.launch @k(%launched, %x)
  %again = host.empty in %pool at 64 : !aten.tensor<8xf32>
  host.launch @k(%x, %again)
  %d = aten.neg(%again) : !aten.tensor<8xf32>
  %other = host.empty in %pool at 64 : !aten.tensor<8xi32>
  %e = aten.neg(%other) : !aten.tensor<8xi32>
  %quarter = host.empty in %pool at 80 : !aten.tensor<4xf32>
  %g = aten.neg(%quarter) : !aten.tensor<4xf32>
  host.return %d, %c, %g
}

// CHECK-LABEL: host.func @f
// CHECK: %a = host.empty in %pool at 64 place 0 : !aten.tensor<8xf32>
// CHECK: %half = host.view %a offset 4 place 1 : !aten.tensor<4xf32>
// CHECK: %launched = host.empty in %pool at 64 : !aten.tensor<8xf32>
// CHECK: %again = host.empty in %pool at 64 place 0 : !aten.tensor<8xf32>
// CHECK: %other = host.empty in %pool at 64 : !aten.tensor<8xi32>
// CHECK: %quarter = host.empty in %pool at 80 place 1 : !aten.tensor<4xf32>
// CHECK: %g = aten.neg(%quarter)
// CHECK-NEXT: host.free %quarter, %pool
