"""The strides that eager's kernels give, where torch's meta functions give others.

A graph promises the strides of its fake tensors: to the caller, to views that are made of an output, to backward. Fake
tensors get theirs from meta functions and decompositions, some of which differ from the kernel. So while AOTAutograd
traces, each result of a call passes through a `_Corrector`, and what follows from it (views, gradients, what
AOTAutograd records) is traced with eager's strides. `fx_stride_families.py` says of each op by which rule its kernel
chooses them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from .fx_private import fake_mode_of, fake_results, has_symbols
from .fx_stride_families import Numbers, Rule, are_alike, rules_of


@contextmanager
def eager_strides(inputs: Sequence[Any]) -> Iterator[None]:
    """Trace with eager's strides: a context around what runs ops on the fake tensors of a compile.

    inputs: those of the graph that is compiled; without a fake mode of their own or of the compile nothing is changed
    """
    mode = fake_mode_of(inputs)
    if mode is None:
        yield
        return
    with fake_results(mode, _Corrector(mode).corrected):
        yield


def corrected(mode: Any, op: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Any:
    """The result of an op on tensors of a fake mode, with eager's strides."""
    return _Corrector(mode).corrected(op, args, kwargs, result)


class _Corrector:
    """Gives results of ops on tensors of a fake mode eager's strides.

    The ops of layers that repeat, each traced several times, come again and again with the same sizes and strides:
    without symbols among those, what a rule says is known from the first time.
    """

    def __init__(self, mode: Any) -> None:
        self.mode = mode
        self.known: dict[Any, Any] = {}

    def corrected(self, op: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Any:
        """The result of an op, or results, with eager's strides."""
        rules = rules_of(op)
        if rules is None:
            return result
        if isinstance(result, (tuple, list)):
            strides = self._strides(rules, op, args, kwargs, result)
            if strides is None:
                return result
            changed = [self._restrided(each, wanted) for each, wanted in zip(result, strides, strict=True)]
            return type(result)(changed) if type(result) in (tuple, list) else type(result)(*changed)
        if not isinstance(result, torch.Tensor) or result.dim() < 2:
            return result
        strides = self._strides(rules, op, args, kwargs, (result,))
        return result if strides is None else self._restrided(result, strides[0])

    def _restrided(self, result: Any, strides: Numbers | None) -> Any:
        if strides is None:
            return result
        with self.mode:
            return torch.empty_strided(result.shape, strides, dtype=result.dtype, device=result.device)

    def _strides(
        self,
        rules: Sequence[Rule | None],
        op: Any,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        results: Sequence[Any],
    ) -> Sequence[Numbers | None] | None:
        """Strides that each result lacks, None for one that has eager's; None where all have."""
        try:
            named = _described(tuple(kwargs.items())) if kwargs else ()
            key = (id(op), _device(results), _described(results), _described(args), named)
            known = self.known.get(key, self)
        except TypeError:  # a symbol, which has no hash, or a tensor without strides
            return _missing_of(rules, op, args, kwargs, results)
        if known is self:
            known = self.known[key] = _missing_of(rules, op, args, kwargs, results)
        return known


def _device(results: Sequence[Any]) -> Any:
    return next((each.device for each in results if isinstance(each, torch.Tensor)), None)


def _missing_of(
    rules: Sequence[Rule | None], op: Any, args: Sequence[Any], kwargs: Mapping[str, Any], results: Sequence[Any]
) -> Sequence[Numbers | None] | None:
    found: list[Numbers | None] = [None] * len(results)
    for number, (rule, result) in enumerate(zip(rules, results, strict=False)):
        if rule is not None and isinstance(result, torch.Tensor) and result.dim() >= 2 and _is_strided(result):
            found[number] = _missing(rule(op, args, kwargs, result), result)
    return None if all(strides is None for strides in found) else found


def _missing(strides: Numbers | None, result: torch.Tensor) -> Numbers | None:
    return None if strides is None or are_alike(strides, result.stride()) else strides


#: what stands for itself in a key; most arguments that are no tensors
_PLAIN = frozenset({int, float, bool, str, type(None)})


def _described(value: Any) -> Any:
    """All that rules look at in an argument; TypeError for symbolic sizes. One question to a tensor for each."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, (list, tuple)):
        return tuple([_described(each) for each in value])
    if not isinstance(value, torch.Tensor):
        if isinstance(value, torch.SymFloat):  # it has a hash, which fixes its value
            raise TypeError
        return value
    if has_symbols(value):
        raise TypeError
    try:
        strides = value.stride()
    except RuntimeError as error:
        raise TypeError from error
    if 0 in strides and value.layout is not torch.strided:
        raise TypeError
    return (*value.shape, strides, value.dtype)  # a torch.Size takes ten times as long to hash


def _is_strided(tensor: torch.Tensor) -> bool:
    """Whether a tensor has strides. To ask a fake one for its layout takes longer than all else here does."""
    if not has_symbols(tensor):
        try:
            if 0 not in tensor.stride():  # what other layouts show
                return True
        except RuntimeError:
            return False
    return tensor.layout is torch.strided
