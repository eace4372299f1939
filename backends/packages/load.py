"""Reading a package: a program that is called with real tensors. Loads neither Dynamo nor the compiler."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ...errors import InductileError, UserError
from ...lowering.fx_arrangements import Arrangement
from ..c_like.cache import keep_library, private_dir
from ..c_like.loaded import address_in
from ..graph_cache.frozen import program_of
from .archive import WEIGHTS, Archive, damaged
from .inputs import Conditions, ConstantInput, Input, TensorInput, input_of
from .needs import check_needs, chosen_part
from .placing import placed, wanted_device
from .plain import decode, decode_program
from .sizes import text_of
from .weights import on_device, tensors_in
from .writes import Named, check_writes, tell_of_writes

_CASTING = ("cpu", "cuda")
"""Kinds of devices that programs run on, each with an autocast of its own."""


class Package:
    """A loaded package: call it as the exported module. Gradients are not computed.

    path:       the file
    index:      what the file says of itself
    part:       what it says of the program for the target that was taken
    conditions: what has to hold of inputs
    """

    def __init__(
        self,
        path: Path,
        index: dict[str, Any],
        part: dict[str, Any],
        program: Any,
        tensors: Mapping[str, torch.Tensor],
    ) -> None:
        self.path, self.index, self.part = path, index, part
        bounds = {name: (low, high) for name, (low, high) in part["bounds"].items()}
        self.conditions = Conditions(tuple(map(input_of, part["inputs"])), bounds, tuple(part["relations"]))
        self._passed = [n for n, each in enumerate(self.conditions.inputs) if not isinstance(each, ConstantInput)]
        self._tensors = dict(tensors)
        self._weights = [tensors[name] for name in part["weights"]]
        self._buffers = [Named(f"the tensor {name}", tensors[name]) for name in dict.fromkeys(part["weights"])]
        self._written_buffers = [Named(f"the tensor {name}", tensors[name]) for name in part["written"]]
        self._writes = bool(self._written_buffers) or any(
            isinstance(each, TensorInput) and each.written for each in self.conditions.inputs
        )
        self._constants = [tensors[name] for name in part["constants"]]
        self._arrangements = [Arrangement(*decode(each)) for each in part["arrangements"]]
        self._outputs = None if part["outputs"] is None else decode(part["outputs"])
        self._taken, self._returned = (_structure(path, index[name]) for name in ("taken", "returned"))
        self._program = program

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The outputs. UserError for inputs that the program was not compiled for."""
        return self.call_flat(self._flat(args, kwargs))

    def call_flat(self, given: Sequence[Any]) -> Any:
        """The same for inputs in one list, in the order of `conditions.inputs`."""
        casting = [kind for kind in _CASTING if torch.is_autocast_enabled(kind)]
        if not casting:
            return self._called(given)
        with ExitStack() as stack:  # the program has its types: its operators must not return others
            for kind in casting:
                stack.enter_context(torch.autocast(kind, enabled=False))
            return self._called(given)

    def _called(self, given: Sequence[Any]) -> Any:
        symbols = self.conditions.bind(given)
        written = self._checked_writes(given)
        with torch.no_grad():
            taken = list(given)
            copied: list[tuple[torch.Tensor, torch.Tensor]] = []
            for number, each in enumerate(self.conditions.inputs):
                if isinstance(each, TensorInput):
                    taken[number] = each.arranged(given[number], symbols)
                    if each.written and taken[number] is not given[number]:
                        copied.append((given[number], taken[number]))
            results = self._run([*self._weights, *[taken[number] for number in self._passed]])
            for original, copy in copied:
                original.copy_(copy)
        if written:
            tell_of_writes([each.tensor for each in written])
        return pytree.tree_unflatten(results, self._returned)

    def _checked_writes(self, given: Sequence[Any]) -> list[Named]:
        """What the call will write. UserError where it must not."""
        if not self._writes:
            return []
        pairs = [
            (each, Named(f"the input {each.name}", tensor))
            for each, tensor in zip(self.conditions.inputs, given, strict=True)
            if isinstance(each, TensorInput)
        ]
        inputs = [named for _, named in pairs]
        written = [named for each, named in pairs if each.written]
        check_writes(written, [*inputs, *self._buffers])
        check_writes(self._written_buffers, inputs)
        return [*written, *self._written_buffers]

    def _run(self, arguments: list[Any]) -> list[Any]:
        for each in self._arrangements:
            arguments[each.position] = each.of(arguments[each.position])
        results = self._program.run([*arguments, *self._constants])
        if self._outputs is None:
            return list(results)
        return [results[each] if is_result else each for is_result, each in self._outputs]

    def _flat(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        expected = self._taken.children()[1].context if self._taken.num_children == 2 else []
        ordered = {name: kwargs[name] for name in expected if name in kwargs} | dict(kwargs)
        flat, found = pytree.tree_flatten((tuple(args), ordered))
        if found != self._taken:
            positional = self._taken.children()[0].num_children
            raise UserError(
                f"the call has {len(args)} positional inputs and {sorted(kwargs)}, of other structure than the export: "
                f"{positional} positional and {sorted(expected)}, {', '.join(map(str, self.conditions.inputs))}",
                "call as the example inputs of the export were given",
            )
        return flat

    @property
    def target(self) -> str:
        """The machine that the program is for: "cpp", "cuda:90"."""
        return self.part["target"]

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Parameters, buffers and constants by name, as they are now. They are those that calls read and write."""
        return dict(self._tensors)

    def with_constants(self, given: Sequence[Any]) -> list[Any]:
        """All inputs of a call, for those that are not compiled in, on the devices of the program.

        UserError for another number of them.
        """
        if len(given) != len(self._passed):
            raise UserError(f"{len(given)} inputs for a package that takes {len(self._passed)}", "give one for each")
        kinds = [self.conditions.inputs[number] for number in self._passed]
        left = iter(map(_on_its_device, given, kinds))
        return [each.value if isinstance(each, ConstantInput) else next(left) for each in self.conditions.inputs]

    def random_inputs(self, seed: int) -> list[Any]:
        """Inputs of the sizes that the export's examples had; integers are 0 or 1."""
        return [each.example(self.part["sizes"], seed + n) for n, each in enumerate(self.conditions.inputs)]

    def __str__(self) -> str:
        return describe(self.path, self.index)


def _on_its_device(value: Any, kind: Input) -> Any:
    """An input on the device that a program takes it on."""
    if isinstance(value, torch.Tensor) and isinstance(kind, TensorInput):
        return value.to(kind.device)
    return value


def describe(path: Path, index: dict[str, Any]) -> str:
    """What a package takes and returns, and what it was made by, for people. UserError for an index that is damaged."""
    with _telling_damage(path):
        needs = index["needs"]
        lines = [
            f"{path}: inductile {needs['inductile']}, torch {needs['torch']}, {needs['system']} on {needs['machine']}"
        ]
        for part in index["programs"]:
            lines += [f" {line}" for line in _described(part)]
        lines += [f"  weight {name}, which is not inside" for name in index["apart"]]
        lines.append(f"  instructions: {', '.join(needs['instructions'])}")
        return "\n".join(lines)


def _described(part: dict[str, Any]) -> Iterator[str]:
    yield f"for {part['target']}: {len(part['kernels']) + len(part['on_gpu'])} kernels"
    yield from (f" input  {input_of(each)}" for each in part["inputs"])
    yield from (f" output {each}" for each in part["results"])
    for name, (low, high) in part["bounds"].items():
        yield f" size   {name}: {low} to {'any' if high is None else high}"
    yield from (f" size   {text_of(each)}" for each in part["relations"])


def load_package(
    path: str | os.PathLike[str],
    *,
    weights: Mapping[str, torch.Tensor] | None = None,
    target: str | None = None,
    device: str | torch.device | None = None,
) -> Package:
    """Load what `inductile.package` wrote, and return it as a callable.

        model = inductile.load_package("model.pt2i")
        model(x)

    weights: tensors by the names of the state dictionary, where the file has none, or instead of those that it has
    target:  one of those that the file was made for; else the first of them that is here
    device:  where weights, inputs and kernels are, "cuda:1"; "cuda" is the current GPU, "cpu" the processor. Else what
             the export had; for a GPU that was not there "cuda:0"

    **The file is code**: machine code and the text of a program. Load only what you would run. Digests in it find
    damage, and no intent. No compiler is needed, and Dynamo is not loaded.

    Raises UserError for a file that is damaged, that was made by other versions, or for another machine.
    """
    archive = Archive(Path(path))
    with _telling_damage(archive.path):
        index = archive.index
        check_needs(index["needs"], archive.path)
        there = wanted_device(device)
        part = chosen_part(index["programs"], target, archive.path, there)
        part, frozen = placed(part, decode_program(part["program"]), there)
        tensors = tensors_in(index["tensors"], archive.read(WEIGHTS))
        tensors |= _given(index, tensors, weights or {})
        tensors = _placed(tensors, part["devices"])
        addresses = {name: _address(archive, member, symbol) for name, (member, symbol) in part["kernels"].items()}
        program = program_of(frozen, addresses, _on_gpu(archive, part), private_dir)
        return Package(archive.path, index, part, program, tensors)


def _on_gpu(archive: Archive, part: dict[str, Any]) -> dict[str, Any]:
    """Kernels for a GPU."""
    if not part["on_gpu"]:
        return {}
    from ..triton.frozen import from_json

    return {name: from_json(each, lambda name: bytes(archive.read(name))) for name, each in part["on_gpu"].items()}


def _placed(tensors: Mapping[str, torch.Tensor], devices: Mapping[str, str]) -> dict[str, torch.Tensor]:
    """Tensors on the devices where the program has them; those that share memory share it there."""
    placed = dict(tensors)
    for device in dict.fromkeys(devices.values()):
        placed |= on_device(
            {name: placed[name] for name, each in devices.items() if each == device and name in placed},
            torch.device(device),
        )
    return placed


def _structure(path: Path, text: str) -> pytree.TreeSpec:
    """How inputs or outputs nest. UserError where they are of a class that nobody has told torch of."""
    try:
        return pytree.treespec_loads(text)
    except NotImplementedError as error:
        remedy = "import the module that defines it before, or export a model that takes and returns tensors and tuples"
        raise UserError(
            f"the package {path} takes or returns a class that is not known here: {error}", remedy
        ) from error


@contextmanager
def _telling_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except InductileError:
        raise
    except Exception as error:
        raise damaged(path, f"{type(error).__name__}: {error}") from error


def _address(archive: Archive, member: str, symbol: str) -> int:
    """Where a kernel is in memory: its library lies in a folder of this process, under the name of its content."""
    library = keep_library(private_dir("packages"), bytes(archive.read(member)))
    try:
        return address_in(library, symbol)
    except OSError as error:
        remedy = "install what is missing (libgomp1 for libgomp.so.1), or set TMPDIR to a folder that may hold programs"
        raise UserError(f"kernels of the package {archive.path} do not load: {error}", remedy) from error


def _given(
    index: dict[str, Any], inside: Mapping[str, torch.Tensor], weights: Mapping[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Weights that the caller brings. UserError for one that is missing, unknown, or of another kind."""
    apart: Mapping[str, Any] = index["apart"]
    missing = sorted(apart.keys() - weights.keys())
    if missing:
        raise UserError(f"the package has no weights inside, and {', '.join(missing)} are not given", "give weights=")
    found: dict[str, torch.Tensor] = {}
    for name, tensor in weights.items():
        if name not in apart and name not in inside:
            raise UserError(f"the package has no tensor {name!r}", f"known: {', '.join([*apart, *inside])}")
        if name in apart:
            dtype, shape, stride = decode(apart[name]["dtype"]), apart[name]["shape"], apart[name]["stride"]
        else:
            dtype, shape, stride = inside[name].dtype, list(inside[name].shape), list(inside[name].stride())
        if (tensor.dtype, list(tensor.shape)) != (dtype, shape):
            problem = f"the tensor {name} is {tensor.dtype}{list(tensor.shape)}, the package takes {dtype}{shape}"
            raise UserError(problem, "give a tensor of that kind")
        plain = tensor.detach()
        if list(plain.stride()) != stride:
            plain = torch.empty_strided(shape, stride, dtype=dtype, device=plain.device).copy_(plain)
        found[name] = plain
    return found
