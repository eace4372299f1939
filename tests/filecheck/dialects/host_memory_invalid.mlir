// RUN: inductile-opt %s --split-input-file --verify-diagnostics

// A kernel would be given an address of another device.

host.func @pool(%x: !aten.tensor<4xf32>) -> (!aten.tensor<4xf32>) {
  %p = host.empty : !aten.tensor<16xui8, device = "cuda:0">
  // expected-error @+1 {{a tensor on cpu does not lie in memory on cuda:0}}
  %a = host.empty in %p at 0 : !aten.tensor<4xf32>
  host.copy %x to %a
  host.return %a
}

// -----

host.func @view(%x: !aten.tensor<4xf32>) -> (!aten.tensor<4xf32, device = "cuda:0">) {
  // expected-error @+1 {{a tensor on cuda:0 does not lie in memory on cpu}}
  %v = host.view %x offset 0 : !aten.tensor<4xf32, device = "cuda:0">
  host.return %v
}
