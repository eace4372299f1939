"""A GPT-2 as IR of the aten level, as torch captures transformers' model, at a small width."""

from __future__ import annotations

_LAYER = """\
  %n{k}, %m{k}, %r{k} = aten.native_layer_norm(%x{k}, %g{k}, %b{k}, normalized_shape = [48], eps = 1.0e-05) : \
!aten.tensor<2x32x48xf32>, !aten.tensor<2x32x1xf32>, !aten.tensor<2x32x1xf32>
  %v{k} = aten.view(%n{k}, size = [-1, 48]) : !aten.tensor<64x48xf32>
  %a{k} = aten.addmm(%qb{k}, %v{k}, %qw{k}) : !aten.tensor<64x144xf32>
  %w{k} = aten.view(%a{k}, size = [2, 32, 144]) : !aten.tensor<2x32x144xf32>
  %q{k}, %k{k}, %u{k} = aten.split.Tensor(%w{k}, split_size = 48, dim = 2) : \
!aten.tensor<2x32x48xf32, strides = [4608, 144, 1]>, !aten.tensor<2x32x48xf32, strides = [4608, 144, 1]>, \
!aten.tensor<2x32x48xf32, strides = [4608, 144, 1]>
  %qv{k} = aten.view(%q{k}, size = [2, 32, -1, 12]) : !aten.tensor<2x32x4x12xf32, strides = [4608, 144, 12, 1]>
  %qt{k} = aten.transpose.int(%qv{k}, dim0 = 1, dim1 = 2) : !aten.tensor<2x4x32x12xf32, strides = [4608, 12, 144, 1]>
  %kv{k} = aten.view(%k{k}, size = [2, 32, -1, 12]) : !aten.tensor<2x32x4x12xf32, strides = [4608, 144, 12, 1]>
  %kt{k} = aten.transpose.int(%kv{k}, dim0 = 1, dim1 = 2) : !aten.tensor<2x4x32x12xf32, strides = [4608, 12, 144, 1]>
  %uv{k} = aten.view(%u{k}, size = [2, 32, -1, 12]) : !aten.tensor<2x32x4x12xf32, strides = [4608, 144, 12, 1]>
  %ut{k} = aten.transpose.int(%uv{k}, dim0 = 1, dim1 = 2) : !aten.tensor<2x4x32x12xf32, strides = [4608, 12, 144, 1]>
  %s{k}, %l{k} = aten._scaled_dot_product_flash_attention_for_cpu(%qt{k}, %kt{k}, %ut{k}, is_causal = true, \
scale = 0.28867513459481287) : !aten.tensor<2x4x32x12xf32, strides = [1536, 12, 48, 1]>, \
!aten.tensor<2x4x32xf32, strides = [128, 1, 4]>
  %st{k} = aten.transpose.int(%s{k}, dim0 = 1, dim1 = 2) : !aten.tensor<2x32x4x12xf32>
  %sv{k} = aten.view(%st{k}, size = [-1, 48]) : !aten.tensor<64x48xf32>
  %o{k} = aten.addmm(%ob{k}, %sv{k}, %ow{k}) : !aten.tensor<64x48xf32>
  %ov{k} = aten.view(%o{k}, size = [2, 32, 48]) : !aten.tensor<2x32x48xf32>
  %y{k} = aten.add.Tensor(%ov{k}, %x{k}) : !aten.tensor<2x32x48xf32>
  %n2{k}, %m2{k}, %r2{k} = aten.native_layer_norm(%y{k}, %g2{k}, %b2{k}, normalized_shape = [48], eps = 1.0e-05) : \
!aten.tensor<2x32x48xf32>, !aten.tensor<2x32x1xf32>, !aten.tensor<2x32x1xf32>
  %v2{k} = aten.view(%n2{k}, size = [-1, 48]) : !aten.tensor<64x48xf32>
  %f{k} = aten.addmm(%fb{k}, %v2{k}, %fw{k}) : !aten.tensor<64x192xf32>
  %fv{k} = aten.view(%f{k}, size = [2, 32, 192]) : !aten.tensor<2x32x192xf32>
  %h{k} = aten.mul.Scalar(%fv{k}, other = 0.5) : !aten.tensor<2x32x192xf32>
  %c{k} = aten.pow.Tensor_Scalar(%fv{k}, exponent = 3.0) : !aten.tensor<2x32x192xf32>
  %d{k} = aten.mul.Scalar(%c{k}, other = 0.044715) : !aten.tensor<2x32x192xf32>
  %e{k} = aten.add.Tensor(%fv{k}, %d{k}) : !aten.tensor<2x32x192xf32>
  %i{k} = aten.mul.Scalar(%e{k}, other = 0.7978845608028654) : !aten.tensor<2x32x192xf32>
  %t{k} = aten.tanh(%i{k}) : !aten.tensor<2x32x192xf32>
  %j{k} = aten.add.Scalar(%t{k}, other = 1.0) : !aten.tensor<2x32x192xf32>
  %z{k} = aten.mul.Tensor(%h{k}, %j{k}) : !aten.tensor<2x32x192xf32>
  %zv{k} = aten.view(%z{k}, size = [-1, 192]) : !aten.tensor<64x192xf32>
  %p{k} = aten.addmm(%pb{k}, %zv{k}, %pw{k}) : !aten.tensor<64x48xf32>
  %pv{k} = aten.view(%p{k}, size = [2, 32, 48]) : !aten.tensor<2x32x48xf32>
  %x{next} = aten.add.Tensor(%y{k}, %pv{k}) : !aten.tensor<2x32x48xf32>"""

_WEIGHTS = {
    "g": "48", "b": "48", "qb": "144", "qw": "48x144", "ob": "48", "ow": "48x48", "g2": "48", "b2": "48", "fb": "192",
    "fw": "48x192", "pb": "48", "pw": "192x48",
}  # fmt: skip


def gpt2_text(layers: int, source: str) -> str:
    """The module; its op number n is said to come from line n of the file `source`."""
    weights = [f"%{name}{k}: !aten.tensor<{shape}xf32>" for k in range(layers) for name, shape in _WEIGHTS.items()]
    arguments = ["%ids: !aten.tensor<2x32xi64>", "%wte: !aten.tensor<200x48xf32>", "%head: !aten.tensor<48x200xf32>"]
    ops = ["  %x0 = aten.embedding(%wte, %ids) : !aten.tensor<2x32x48xf32>"]
    for k in range(layers):
        ops += _LAYER.format(k=k, next=k + 1).split("\n")
    ops.append(f"  %last = aten.view(%x{layers}, size = [-1, 48]) : !aten.tensor<64x48xf32>")
    ops.append("  %logits = aten.mm(%last, %head) : !aten.tensor<64x200xf32>")
    body = "\n".join(f'{op} loc("{source}":{line}:0)' for line, op in enumerate(ops, 1))
    head = f"func.func @gpt2({', '.join([*arguments, *weights])}) -> !aten.tensor<64x200xf32> {{"
    return f"{head}\n{body}\n  func.return %logits : !aten.tensor<64x200xf32>\n}}\n"
