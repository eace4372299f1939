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
        if isinstance(result, torch.Tensor):
            return self._restrided(rules[0], op, args, kwargs, result)
        if not isinstance(result, (tuple, list)):
            return result
        changed = [
            self._restrided(rules[k], op, args, kwargs, each) if k < len(rules) else each
            for k, each in enumerate(result)
        ]
        return type(result)(changed) if type(result) in (tuple, list) else type(result)(*changed)

    def _restrided(
        self, rule: Rule | None, op: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
    ) -> Any:
        if rule is None or not isinstance(result, torch.Tensor) or result.dim() < 2:
            return result
        if not _is_strided(result):
            return result
        strides = self._strides(rule, op, args, kwargs, result)
        if strides is None:
            return result
        with self.mode:
            return torch.empty_strided(result.shape, strides, dtype=result.dtype, device=result.device)

    def _strides(
        self, rule: Rule, op: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor
    ) -> Numbers | None:
        """Strides that the result lacks; None where it has eager's."""
        try:
            named = _described(tuple(kwargs.items())) if kwargs else ()
            key = (id(op), id(rule), result.device, _described(result), _described(args), named)
            known = self.known.get(key, self)
        except TypeError:  # a symbol, which has no hash, or a tensor without strides
            return _missing(rule(op, args, kwargs, result), result)
        if known is self:
            known = self.known[key] = _missing(rule(op, args, kwargs, result), result)
        return known


def _missing(strides: Numbers | None, result: torch.Tensor) -> Numbers | None:
    return None if strides is None or are_alike(strides, result.stride()) else strides


def _described(value: Any) -> Any:
    """All that rules look at in an argument; TypeError for symbolic sizes."""
    if isinstance(value, torch.Tensor):
        if has_symbols(value) or not _is_strided(value):
            raise TypeError
        return value.shape, value.stride(), value.dtype
    return tuple([_described(each) for each in value]) if isinstance(value, (list, tuple)) else value


def _is_strided(tensor: torch.Tensor) -> bool:
    """Whether a tensor has strides. To ask a fake one for its layout takes longer than all else here does."""
    if not has_symbols(tensor):
        try:
            if 0 not in tensor.stride():  # what other layouts show
                return True
        except RuntimeError:
            return False
    return tensor.layout is torch.strided
