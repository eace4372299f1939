"""`inductile.autotune_backends(fn, inputs)`: the fastest of several backends whose results are right, with a table."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils.benchmark import Timer

from ...errors import UserError
from ...records import dataclass
from .outcome import Named, Subject, difference, weigh, weights_of

DEFAULT = ("eager", "inductor", "inductile")
#: a backend that is less than this much faster than one in front of it does not replace it
_MARGIN = 0.03
#: calls that are compared with eager's: with CUDA graphs the second one is recorded and the third replayed
_CALLS = 3


@dataclass(frozen=True)
class Trial:
    """What was seen of one backend.

    first_call:   seconds of the first call, in which it compiles; None where that failed
    microseconds: the median time of a call; None where the results are wrong or it failed
    fault:        how the results differ from eager's, or what was raised; None where they are right
    """

    backend: str
    first_call: float | None
    microseconds: float | None
    fault: str | None


@dataclass(frozen=True)
class BackendChoice:
    """The backend that was chosen, the function compiled by it, and what was seen of each.

    function: compiles at its first call, from caches on disk where the backend has them
    random:   whether the function draws random numbers, so that values were not compared
    """

    best: str
    function: Callable[..., Any]
    trials: tuple[Trial, ...]
    random: bool

    def __str__(self) -> str:
        """A table, a row a backend, in the order in which they were tried."""
        eager = next((each.microseconds for each in self.trials if each.backend == "eager"), None)
        rows = [("", "backend", "first call", "a call", "speed-up", "results")]
        for each in self.trials:
            faster = eager / each.microseconds if eager and each.microseconds else None
            rows.append((
                "*" if each.backend == self.best else "",
                each.backend,
                "-" if each.first_call is None else f"{each.first_call:.2f} s",
                "-" if each.microseconds is None else f"{each.microseconds:.1f} us",
                "-" if faster is None else f"{faster:.2f}",
                each.fault or ("of eager's shapes (random numbers)" if self.random else "as eager's"),
            ))  # fmt: skip
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]) - 1)]
        return "\n".join("  ".join([*(c.ljust(w) for c, w in zip(row, widths, strict=False)), row[-1]]) for row in rows)


def autotune_backends(
    function: Callable[..., Any],
    inputs: Sequence[Any] = (),
    backends: Sequence[str] | Mapping[str, Mapping[str, Any]] = DEFAULT,
    *,
    kwargs: Mapping[str, Any] | None = None,
    backward: bool = False,
    rtol: float | None = None,
    atol: float | None = None,
    seconds: float = 0.2,
) -> BackendChoice:
    """Try backends of torch.compile on a function, and choose the fastest whose results are eager's.

    function: a function, a module, or a method of one; it is called with copies of the inputs, and a module's
              parameters and buffers are put back after each call
    inputs:   the positional arguments; tensors in tuples, lists and dicts are found
    backends: names for torch.compile, or a name for each row of the table with arguments of torch.compile,
              `{"inductile, tuned": {"backend": "inductile", "mode": "max-autotune"}}`; "eager" compiles nothing
    kwargs:   the arguments by name
    backward: also take gradients in each call, compare them, and count their time; else calls take none
    rtol, atol: how far values may be from eager's. Without them a value that is not within the tolerances of
              `torch.testing.assert_close` is right still where it is as near as eager's to that computed in float64
    seconds:  for how long calls of each are timed, at least

    Results, inputs afterwards, and buffers are compared in three calls. Among backends that are equally fast, within
    3 %, the first one is chosen. Compiled code of other functions is dropped, as `torch.compiler.reset` does. A backend
    that fails is not chosen, and the table says why; `UserError` for a backend that nobody knows, and where none of
    them gives what eager does.
    """
    candidates = _candidates(backends)
    if (rtol is None) != (atol is None):
        raise UserError("autotune_backends got one of 'rtol' and 'atol'", "give both, or none for those of the dtype")
    close = {} if rtol is None or atol is None else {"rtol": rtol, "atol": atol}
    subject = Subject(function, tuple(inputs), dict(kwargs or {}), backward)
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with torch.set_grad_enabled(backward), torch.random.fork_rng(devices):
        comparison = _Comparison.of(subject, close)
        trials = tuple(_tried(subject, comparison, name, given, seconds) for name, given in candidates.items())
    torch.compiler.reset()
    right = [each for each in trials if each.microseconds is not None]
    if not right:
        told = "; ".join(f"{each.backend}: {each.fault}" for each in trials)
        raise UserError(
            f"no backend gives what eager does: {told}", "name 'eager' among them, or give 'rtol' and 'atol'"
        )
    fastest = min(each.microseconds or 0.0 for each in right)
    best = next(each.backend for each in right if (each.microseconds or 0.0) <= fastest * (1 + _MARGIN))
    return BackendChoice(best, _compiled(function, candidates[best]), trials, not comparison.values)


def _candidates(backends: Sequence[str] | Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    named = backends if isinstance(backends, Mapping) else {name: {"backend": name} for name in backends}
    if isinstance(backends, str) or not named:
        raise UserError(f"'backends' is {backends!r}", "write a list of names, such as ['eager', 'inductile']")
    known = {"eager", *torch.compiler.list_backends(exclude_tags=())}
    for name, given in named.items():
        backend = given.get("backend", "inductor")
        if isinstance(backend, str) and backend not in known:
            raise UserError(f"torch.compile knows no backend {backend!r} (row {name!r})", f"it knows {sorted(known)}")
    return {name: dict(given) for name, given in named.items()}


def _compiled(function: Callable[..., Any], given: Mapping[str, Any]) -> Callable[..., Any]:
    return function if given.get("backend") == "eager" else torch.compile(function, **given)


@dataclass(frozen=True)
class _Comparison:
    """What eager does, and how near another has to come.

    values: False where eager gives other values with another seed
    """

    expected: Named
    values: bool
    exact: Callable[[], Named | None]
    close: Mapping[str, float]

    @staticmethod
    def of(subject: Subject, close: Mapping[str, float]) -> _Comparison:
        """Run eager twice, with two seeds."""
        torch.compiler.reset()
        expected = subject.observe(subject.function)
        other = subject.observe(subject.function, seed=1)
        loose = {"rtol": 1e-2, "atol": 1e-2}
        values = difference(expected, other, True, lambda: None, loose) is None

        @cache
        def exact() -> Named | None:
            try:
                wide = subject.in_float64()
                return None if wide is None else wide.observe(wide.function)
            except Exception:  # a closure's weights, or a type that the program writes, keep it from being wide
                return None

        return _Comparison(expected, values, exact, close)

    def fault(self, got: Named) -> str | None:
        """How what a backend did differs from this."""
        return difference(self.expected, got, self.values, self.exact, self.close)


def _tried(subject: Subject, comparison: _Comparison, name: str, given: Mapping[str, Any], seconds: float) -> Trial:
    """Compile, compare, and time where the results are right."""
    torch.compiler.reset()
    first: float | None = None
    try:
        compiled = _compiled(subject.function, given)
        for _ in range(_CALLS):
            start = time.perf_counter()
            got = subject.observe(compiled)
            first = time.perf_counter() - start if first is None else first
            fault = comparison.fault(got)
            if fault is not None:
                return Trial(name, first, None, fault)
        return Trial(name, first, _timed(subject, compiled, seconds), None)
    except Exception as raised:
        error = getattr(raised, "inner_exception", raised)  # what Dynamo wraps
        lines = str(error).strip().splitlines()
        return Trial(name, first, None, f"{type(error).__name__}: {lines[0] if lines else ''}".removesuffix(": "))


def _timed(subject: Subject, compiled: Callable[..., Any], seconds: float) -> float:
    """The median time of a call, in microseconds."""
    args, kwargs = subject.copy_of_inputs()
    with subject.kept():
        weights = weights_of(compiled(*args, **kwargs)) if subject.backward else []
        leaves = [*pytree.tree_leaves((args, kwargs)), *subject.state().values()]
        wanted = [each for each in leaves if isinstance(each, torch.Tensor) and each.requires_grad]

        def call() -> None:
            for leaf in wanted:
                leaf.grad = None
            weigh(compiled(*args, **kwargs), weights)

        timer = Timer("call()", globals={"call": call}, num_threads=torch.get_num_threads())
        return timer.blocked_autorange(min_run_time=seconds).median * 1e6
