"""What one call of a function does: its results, what it leaves in its inputs and state, and gradients."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ...records import dataclass

Named = dict[str, Any]

#: how much further than eager's a result may be from one computed in float64
_ROOT_MEAN_SQUARE, _LARGEST = 2.0, 4.0


@dataclass(frozen=True)
class Subject:
    """A function with the inputs that it is called with, and the state that a call may change.

    backward: whether a call takes gradients too, for random weights of each floating result
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    backward: bool

    def state(self) -> dict[str, torch.Tensor]:
        """Parameters and buffers of the module that the function is, or is a method of."""
        module = _module_of(self.function)
        if module is None:
            return {}
        return {**dict(module.named_parameters()), **dict(module.named_buffers())}

    def copy_of_inputs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Inputs for one call, which may write into them."""
        copies: dict[tuple[int, torch.dtype], torch.Tensor] = {}
        return pytree.tree_map_only(torch.Tensor, lambda each: _copied(each, copies), (self.args, dict(self.kwargs)))

    @contextmanager
    def kept(self) -> Iterator[dict[str, torch.Tensor]]:
        """The state, for calls that may change it; values and gradients are put back behind them."""
        state = self.state()
        values = {name: tensor.detach().clone() for name, tensor in state.items()}
        gradients = {name: tensor.grad for name, tensor in state.items()}
        for tensor in state.values():
            tensor.grad = None
        try:
            yield values
        finally:
            with torch.no_grad():
                for name in _changed(state, values):
                    state[name].copy_(values[name])
            for name, tensor in state.items():
                tensor.grad = gradients[name]

    def observe(self, function: Callable[..., Any], seed: int = 0) -> Named:
        """What a call of `function`, a compiled form of this one, does; the state is as before when it returns."""
        with self.kept() as before:
            args, kwargs = self.copy_of_inputs()
            torch.manual_seed(seed)
            result = function(*args, **kwargs)
            state = self.state()
            found = dict(_named("result", result))
            if self.backward:
                weigh(result, weights_of(result))
                wanted = {**dict(_named("input", (args, kwargs))), **state}
                found.update({f"gradient of {name}": _gradient(value) for name, value in wanted.items()})
            found.update({f"{name}, afterwards,": value for name, value in _named("input", (args, kwargs))})
            found.update({f"{name}, afterwards,": state[name] for name in _changed(state, before)})
            return {name: _frozen(value) for name, value in found.items()}

    def in_float64(self) -> Subject | None:
        """The same with all floats in float64; None where the function is no module, so that its weights are hidden."""
        module = _module_of(self.function)
        if isinstance(self.function, torch.nn.Module):
            function: Callable[..., Any] = copy.deepcopy(self.function).double()
        elif module is not None:
            function = getattr(copy.deepcopy(module).double(), self.function.__name__)
        else:
            function = self.function
        args, kwargs = pytree.tree_map_only(torch.Tensor, _double, (self.args, dict(self.kwargs)))
        return Subject(function, args, kwargs, self.backward)


def weights_of(result: Any) -> list[torch.Tensor]:
    """For each tensor of a result that has gradients, a weight for each element, the same each time."""
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(each.shape, generator=generator, dtype=torch.float64).to(each) for each in _roots(result)]


def weigh(result: Any, weights: Sequence[torch.Tensor]) -> None:
    """Take gradients of a result by its weights."""
    if weights:
        torch.autograd.backward(_roots(result), list(weights))


def _roots(result: Any) -> list[torch.Tensor]:
    return [each for each in pytree.tree_leaves(result) if isinstance(each, torch.Tensor) and each.requires_grad]


def _gradient(value: Any) -> torch.Tensor | None:
    return value.grad if isinstance(value, torch.Tensor) and value.is_leaf else None


def _changed(state: Mapping[str, torch.Tensor], before: Mapping[str, torch.Tensor]) -> list[str]:
    return [name for name, tensor in state.items() if not torch.equal(tensor, before[name])]


def difference(
    expected: Named, got: Named, values: bool, exact: Callable[[], Named | None], close: Mapping[str, float]
) -> str | None:
    """How what a backend did differs from what eager did, in one line; None where it does not.

    values: False where the function draws random numbers
    exact:  what the function does in float64, asked for where a result is not within the tolerance of eager's
    close:  `rtol` and `atol`, or nothing for those of `torch.testing.assert_close`
    """
    if list(expected) != list(got):
        return f"results are {', '.join(got)}, not {', '.join(expected)}"
    for name, wanted in expected.items():
        found = got[name]
        if not isinstance(wanted, torch.Tensor) or not isinstance(found, torch.Tensor):
            if type(wanted) is not type(found) or (isinstance(wanted, bool | int | float | str) and wanted != found):
                return f"{name} is {found!r}, not {wanted!r}"
            continue
        for what in ("shape", "dtype", "device", "layout"):
            if getattr(wanted, what) != getattr(found, what):
                return f"{name} has the {what} {getattr(found, what)}, not {getattr(wanted, what)}"
        if values and (said := _far(name, wanted, found, exact, close)):
            return said
    return None


def _far(
    name: str,
    wanted: torch.Tensor,
    found: torch.Tensor,
    exact: Callable[[], Named | None],
    close: Mapping[str, float],
) -> str | None:
    try:
        torch.testing.assert_close(
            found, wanted, rtol=close.get("rtol"), atol=close.get("atol"), equal_nan=True, check_stride=False
        )
    except AssertionError as error:
        wide = exact() if wanted.is_floating_point() and not close else None
        reference = wide.get(name) if wide is not None else None
        if isinstance(reference, torch.Tensor) and _as_good(wanted, found, reference):
            return None
        lines = [line for line in str(error).splitlines() if line.strip()]
        told = [
            line.partition(" at index")[0] for line in lines if line.startswith(("Mismatched", "Greatest absolute"))
        ]
        return f"{name}: {', '.join(told) or lines[0]}"
    return None


def _as_good(wanted: torch.Tensor, found: torch.Tensor, reference: torch.Tensor) -> bool:
    """Whether a result is as near to the exact one as eager's is, on the whole and where it is worst."""
    usual = torch.finfo(wanted.dtype).eps
    wide = reference.to(torch.float64)
    finite = wide.isfinite() & wanted.isfinite()
    if wide.shape != found.shape or not torch.equal(found.isfinite(), wanted.isfinite()) or not finite.any():
        return False
    ours, eagers = (found.double() - wide)[finite].abs(), (wanted.double() - wide)[finite].abs()
    size = wide[finite].abs().max()
    square = ours.square().mean().sqrt() <= _ROOT_MEAN_SQUARE * eagers.square().mean().sqrt() + usual * size
    return bool(square) and bool(ours.max() <= _LARGEST * eagers.max() + usual * size)


def _named(prefix: str, tree: Any) -> Iterator[tuple[str, Any]]:
    leaves: Sequence[Any] = pytree.tree_leaves(tree)
    for position, leaf in enumerate(leaves):
        yield (prefix if len(leaves) == 1 else f"{prefix} {position}"), leaf


def _module_of(function: Callable[..., Any]) -> torch.nn.Module | None:
    owner = function if isinstance(function, torch.nn.Module) else getattr(function, "__self__", None)
    return owner if isinstance(owner, torch.nn.Module) else None


def _frozen(value: Any) -> Any:
    """A copy, since the next call may write to the same memory, as CUDA graphs do."""
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _copied(tensor: torch.Tensor, copies: dict[tuple[int, torch.dtype], torch.Tensor]) -> torch.Tensor:
    """A copy with the same layout; inputs that share memory share the copy's."""
    if tensor.layout != torch.strided:
        return tensor.detach().clone().requires_grad_(tensor.requires_grad)
    storage = tensor.untyped_storage()
    key = (storage._cdata, tensor.dtype)
    if key not in copies:
        copies[key] = tensor.detach().as_strided((storage.nbytes() // tensor.element_size(),), (1,), 0).clone()
    copied = copies[key].as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
    return copied.detach().requires_grad_(tensor.requires_grad)


def _double(tensor: torch.Tensor) -> torch.Tensor:
    if not tensor.is_floating_point():
        return tensor
    return tensor.detach().double().requires_grad_(tensor.requires_grad)
