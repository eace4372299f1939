"""The strides that eager's kernels give, where torch's meta functions give others.

A graph promises the strides of its fake tensors: to the caller, to views that are made of an output, to backward. Fake
tensors get theirs from meta functions and decompositions, some of which differ from the kernel. So while AOTAutograd
traces, each result of a call passes through `corrected`, and what follows from it (views, gradients, what AOTAutograd
records) is traced with eager's strides. `fx_stride_families.py` says of each op by which rule its kernel chooses them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from .fx_private import fake_mode_of, fake_results
from .fx_stride_families import Rule, are_alike, rules_of


@contextmanager
def eager_strides(inputs: Sequence[Any]) -> Iterator[None]:
    """Trace with eager's strides: a context around what runs ops on the fake tensors of a compile.

    inputs: those of the graph that is compiled; without a fake mode of their own or of the compile nothing is changed
    """
    mode = fake_mode_of(inputs)
    if mode is None:
        yield
        return
    with fake_results(mode, partial(corrected, mode)):
        yield


def corrected(mode: Any, op: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Any:
    """The result of an op on tensors of a fake mode, with eager's strides."""
    rules = rules_of(op)
    if rules is None:
        return result
    if isinstance(result, torch.Tensor):
        return _restrided(mode, rules[0], op, args, kwargs, result)
    if not isinstance(result, (tuple, list)):
        return result
    changed = [
        _restrided(mode, rules[k], op, args, kwargs, each) if k < len(rules) else each for k, each in enumerate(result)
    ]
    return type(result)(changed) if type(result) in (tuple, list) else type(result)(*changed)


def _restrided(
    mode: Any, rule: Rule | None, op: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
) -> Any:
    if rule is None or not isinstance(result, torch.Tensor) or result.layout is not torch.strided or result.dim() < 2:
        return result
    strides = rule(op, args, kwargs, result)
    if strides is None or are_alike(strides, result.stride()):
        return result
    with mode:
        return torch.empty_strided(result.shape, strides, dtype=result.dtype, device=result.device)
