"""The class `Model` of a runner: weights, inputs and what has to hold of them, from what a package says of itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ....errors import UnsupportedError
from ...host.gpu import is_gpu
from ..inputs import ConstantInput, NumberInput, TensorInput, input_of
from ..placing import devices_of
from ..plain import decode
from ..sizes import Size, text_of
from .arguments import double, scalar_type
from .gpu import kernels_text

_FUNCTIONS = {"//": "floordiv", "%": "mod", "max": "max", "min": "min"}
_OPERATORS = {"and": "&&", "or": "||"}


def size_text(size: Size) -> str:
    """An expression as C++; symbols are variables."""
    if isinstance(size, int):
        return f"int64_t({size})"
    if isinstance(size, str):
        return f"n_{size}"
    name, parts = str(size[0]), [size_text(each) for each in size[1:]]
    if name in _FUNCTIONS:
        return f"{_FUNCTIONS[name]}({', '.join(parts)})"
    return f"(!{parts[0]})" if name == "not" else f"({f' {_OPERATORS.get(name, name)} '.join(parts)})"


def sizes_text(sizes: Sequence[Size]) -> str:
    """A list of expressions."""
    return f"{{{', '.join(map(size_text, sizes))}}}"


def model_text(index: Mapping[str, Any], part: Mapping[str, Any], program: str) -> str:
    """A whole file: the program, the class, and a command line. UnsupportedError for what a runner does not have."""
    names = list(dict.fromkeys([*part["weights"], *part["constants"]]))
    weights = "".join(
        f"    weights_.push_back({_weight(index, name, name in part['devices'])});  // {name}\n" for name in names
    )
    brought = ", ".join(json.dumps(name) for name in index["apart"])
    weights += f"    known_alone(brought_weights, {{{brought}}});\n"
    lines = "".join(f"    {line}\n" for line in _run(part, {name: k for k, name in enumerate(names)}))
    device = next(iter(devices_of(part)), None)
    head, members = _on_the_cpu(part) if device is None else _on_a_gpu(part, device)
    return f"""\
{"" if device is None else '#include "gpu.h"'}
#include "main.h"
#include "products.h"

namespace inductile {{

{program}
class Model {{
 public:
{head}
{weights}  }}

  Values run(const Values& given) {{
{lines}  }}

{members}
  std::vector<at::Tensor> weights_;
}};

}}  // namespace inductile

#ifndef INDUCTILE_LIBRARY
int main(int count, char** words) {{ return inductile::run_command<inductile::Model>(count, words); }}
#endif
"""


def _on_the_cpu(part: Mapping[str, Any]) -> tuple[str, str]:
    """How a model begins, and its members."""
    head = f"""\
  explicit Model(const std::string& path, const Weights& brought_weights = {{}})
      : package_(path), program_({_kernels(part)}) {{"""
    return head, " private:\n  Package package_;\n  Program program_;"


def _kernels(part: Mapping[str, Any]) -> str:
    """The kernels for a processor."""
    places = [f"{{{json.dumps(name)}, {', '.join(map(json.dumps, each))}}}" for name, each in part["kernels"].items()]
    return f"Kernels(package_, {{{', '.join(places)}}})"


def _on_a_gpu(part: Mapping[str, Any], device: str) -> tuple[str, str]:
    """The same for a model on a GPU, which may be another one of the machine."""
    kernels = f"{_kernels(part)}, GpuKernels(package_, gpu_, {kernels_text(part['on_gpu'])})"
    inputs = (each for each in map(input_of, part["inputs"]) if not isinstance(each, ConstantInput))
    moved = "".join(
        f"    given.at({number}) = given.at({number}).toTensor().to(gpu_.device);\n"
        for number, each in enumerate(inputs)
        if isinstance(each, TensorInput) and is_gpu(str(each.device))
    )
    head = f"""\
  explicit Model(const std::string& path, const Weights& brought_weights = {{}})
      : Model(path, c10::Device({json.dumps(device)}), brought_weights) {{}}

  Model(const std::string& path, c10::Device device, const Weights& brought_weights = {{}})
      : package_(path), gpu_(device), program_({kernels}) {{
    const Upload there(package_, device);"""
    members = f"""\
  // Inputs on the devices that `run` takes them on.
  Values placed(Values given) const {{
{moved}    return given;
  }}

  // Waits for the GPU, and raises what kernels have reported.
  void wait() const {{
    gpu_.wait();
    program_.check();
  }}

 private:
  Package package_;
  Gpu gpu_;
  Program program_;"""
    return head, members


def _weight(index: Mapping[str, Any], name: str, on_gpu: bool) -> str:
    apart = name in index["apart"]
    described = index["apart" if apart else "tensors"][name]
    dtype = scalar_type(str(decode(described["dtype"])).removeprefix("torch."))
    shape, stride = (sizes_text(described[each]) for each in ("shape", "stride"))
    if apart:
        made = f"brought(brought_weights, {json.dumps(name)}, {dtype}, {shape}, {stride}{', device' if on_gpu else ''})"
        return f"aligned({made})" if on_gpu else made
    called = "there.weight(" if on_gpu else "weight(package_, "
    return f"{called}{dtype}, {shape}, {stride}, {described['start']})"


def _run(part: Mapping[str, Any], weights: Mapping[str, int]) -> Iterator[str]:
    """The statements of a call."""
    inputs = [input_of(each) for each in part["inputs"]]
    passed = [each for each in inputs if not isinstance(each, ConstantInput)]
    shown = "; ".join(map(str, passed))
    problem = json.dumps(f"the package takes {len(passed)} inputs: {shown}")
    yield f"require(given.size() == {len(passed)}, {problem});"
    yield "const c10::InferenceMode mode;"
    yield "const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);"
    yield "at::internal::lazy_init_num_threads();"
    if devices_of(part):
        yield "const Gpu::Scope here(gpu_);"
    yield from _inputs(passed)
    for name, (low, high) in part["bounds"].items():
        most = "" if high is None else f" && n_{name} <= {high}"
        limits = json.dumps(f"the size {name} has to be {low} to {'any' if high is None else high}")
        yield f"require(n_{name} >= {low}{most}, {limits});"
    for relation in part["relations"]:
        yield f"require({size_text(relation)}, {json.dumps(f'{text_of(relation)} does not hold')});"
    for number, each in enumerate(passed):
        if isinstance(each, TensorInput):
            fitting = f"fit(x{number}, x{number}.sizes().vec(), {sizes_text(each.stride)})"
            yield f"const at::Tensor y{number} = {f'aligned({fitting})' if is_gpu(str(each.device)) else fitting};"
    arguments = [f"weights_[{weights[name]}]" for name in part["weights"]]
    arguments += [f"{'y' if isinstance(each, TensorInput) else 'x'}{k}" for k, each in enumerate(passed)]
    arguments += [f"weights_[{weights[name]}]" for name in part["constants"]]
    for each in part["arrangements"]:
        position, strides, order = decode(each)
        wanted = "{}" if strides is None else sizes_text(strides)
        arguments[position] = f"arranged({arguments[position]}, {wanted}, {{{', '.join(map(str, order or ()))}}})"
    yield f"const Values results = program_.run({{{', '.join(arguments)}}});"
    for number, each in enumerate(passed):
        if isinstance(each, TensorInput) and each.written:
            yield f"if (!y{number}.is_same(x{number})) given[{number}].toTensor().copy_(y{number});"
    if part["outputs"] is None:
        yield "return results;"
    else:
        outputs = [f"results[{each}]" if is_result else _constant(each) for is_result, each in decode(part["outputs"])]
        yield f"return {{{', '.join(outputs)}}};"


def _inputs(passed: Sequence[TensorInput | NumberInput]) -> Iterator[str]:
    """Inputs with the sizes that bind symbols; then all that has to hold of sizes."""
    bound: set[str] = set()
    checks: list[str] = []
    for number, each in enumerate(passed):
        shown = json.dumps(str(each))
        if isinstance(each, TensorInput):
            dtype = scalar_type(str(each.dtype).removeprefix("torch."))
            on = ", gpu_.device" if is_gpu(str(each.device)) else ""
            yield f"const at::Tensor x{number} = taken(given[{number}]{on}, {dtype}, {len(each.shape)}, {shown});"
            found = [(size, f"x{number}.size({dim})") for dim, size in enumerate(each.shape)]
        else:
            yield f"const int64_t x{number} = number(given[{number}], {shown});"
            found = [(each.size, f"x{number}")]
        for size, value in found:
            if isinstance(size, str) and size not in bound:
                bound.add(size)
                yield f"const int64_t n_{size} = {value};"
            else:
                checks.append(f"require({value} == {size_text(size)}, {json.dumps(f'the package takes {each}')});")
    yield from checks


def _constant(value: Any) -> str:
    if value is None:
        return "none()"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"int64_t({value})"
    if isinstance(value, float):
        return double(value)
    raise UnsupportedError(f"a runner has no output {value!r:.60}")
