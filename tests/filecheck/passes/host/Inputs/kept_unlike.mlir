host.func @f(%w: !aten.tensor<4xf32>) -> (!aten.tensor<4xf32>) symbols [] {
  %p = host.call @f_weights(%w) : !aten.tensor<4xf32>
  host.return %p
}

host.func @f_weights(%w: !aten.tensor<4xf32>) -> (!aten.tensor<4xf32>) symbols [] kept {
  %p = host.empty : !aten.tensor<4xf32>
  host.return %p
}
