"""One model of the zoo in one mode: eager, float64 and compiled, compared.

An output, gradient or buffer is right when its error, against the same model in float64, is at most twice eager's own
plus a floor. Eager's own is that of the tensor or, where it happens to be smaller, what is usual for the model: a
single number may come out exact by luck. A model that cannot run in float64 has eager as its reference, and for
eager's own error what moves where every weight is moved by one unit in the last place.

Where values differ, the model is compared again with every weight moved by a unit: up, down, and each at random. A
wrong kernel is wrong in all of them. Where one is right, and eager itself jumps as far between them as we are off, the
inputs lie at a kink (a ReLU at 0, two equal candidates of a maximum, the norm of a batch of two numbers, which is their
order), whose side a rounding decides: the row is right and says so. Deep models have many kinks, so that a few moves
may be needed to find a place without one near.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import statistics
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import nn
from torch._prims_common import check_significant_strides
from torch.utils._python_dispatch import TorchDispatchMode
from zoo_models import Case, MissingError, Row

#: what a call gives: name -> outputs, and gradients and buffers behind a step of training
Observed: TypeAlias = dict[str, torch.Tensor]

#: times eager's own error
FACTOR = 2.0
#: the same where that is only estimated, by moved weights
FACTOR_OF_MOVED = 4.0
#: how often weights are moved to find out whether inputs lie at a kink
MOVES = 6
#: units in the last place that are always agreement
FLOOR = {torch.float32: 4, torch.bfloat16: 1, torch.float16: 1}


@dataclass(frozen=True)
class Mode:
    """How a model is run.

    train:   a step of training, gradients and buffers compared
    dynamic: as torch.compile takes it
    sizes:   calls, each at another size
    """

    train: bool = False
    dynamic: bool | None = False
    sizes: int = 1
    autocast: bool = False


MODES: dict[str, Mode] = {
    "inference": Mode(),
    "training": Mode(train=True),
    "dynamic": Mode(dynamic=True, sizes=2),
    "lengths": Mode(train=True, dynamic=None, sizes=3),
    "autocast": Mode(train=True, autocast=True),
}
DEFAULT_MODES = ("inference", "training", "dynamic")


# running


def named(value: Any, name: str = "out") -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors in an output, by their places in it."""
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from named(each, f"{name}.{key}")
    elif isinstance(value, list | tuple):
        for key, each in enumerate(value):
            yield from named(each, f"{name}.{key}")
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from named(getattr(value, field.name), f"{name}.{field.name}")


def placed(inputs: Mapping[str, Any], device: str, wide: bool = False) -> tuple[list[Any], dict[str, Any]]:
    """Arguments by position and by name, as copies on a device, in float64 if wanted."""

    def place(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return widened(value.clone()).to(device) if wide else value.clone().to(device)
        if isinstance(value, list | tuple):
            return type(value)(place(each) for each in value)
        return {k: place(each) for k, each in value.items()} if isinstance(value, dict) else value

    found = {name: place(value) for name, value in inputs.items()}
    return [found.pop(str(k)) for k in range(len(found)) if str(k) in found], found


def widened(tensor: torch.Tensor) -> torch.Tensor:
    """In float64 or complex128."""
    if tensor.is_floating_point():
        return tensor.double()
    return tensor.to(torch.complex128) if tensor.is_complex() else tensor


def call(module: nn.Module, run: Any, inputs: Mapping[str, Any], mode: Mode, device: str, wide: bool) -> Observed:
    """Call what runs a module and take the outputs; in training, gradients and buffers too."""
    args, kwargs = placed(inputs, device, wide)
    module.train(mode.train)
    module.zero_grad(set_to_none=True)
    torch.manual_seed(0)
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.set_grad_enabled(mode.train))
        if mode.autocast and not wide:
            stack.enter_context(torch.autocast(device.partition(":")[0], torch.bfloat16))
        if wide:
            stack.enter_context(in_float64())
        outputs = dict(named(run(*args, **kwargs)))
    if not outputs:
        raise ValueError("the model gave no tensor")
    found = {name: tensor.detach() for name, tensor in outputs.items()}
    if mode.train:
        roots = [t for t in outputs.values() if t.requires_grad]
        torch.autograd.backward(roots, [_cotangent(t) for t in roots])
        found |= {f"grad.{n}": p.grad.detach().clone() for n, p in module.named_parameters() if p.grad is not None}
        found |= {f"buffer.{n}": b.detach().clone() for n, b in module.named_buffers()}
    return found


class Widening(TorchDispatchMode):
    """All that a model asks for in a float type is in float64: many convert to float32 in places, and where they do a
    reference would round as eager does, which no other order of operations can."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator, with another dtype if it is given one."""
        del types
        given = dict(kwargs or {})
        if isinstance(given.get("dtype"), torch.dtype) and given["dtype"].is_floating_point:
            given["dtype"] = torch.float64
        return func(*args, **given)


@contextlib.contextmanager
def in_float64() -> Iterator[None]:
    """Have a model run in float64 whatever it says."""
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with Widening():
            yield
    finally:
        torch.set_default_dtype(usual)


def _cotangent(output: torch.Tensor) -> torch.Tensor:
    """Fixed normal numbers: a sum of outputs has no gradient behind a normalization."""
    numbers = torch.randn(output.shape, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
    return numbers.to(output.device, output.dtype)


def moved(module: nn.Module, move: int) -> nn.Module:
    """A copy with each weight one unit in the last place up (0), down (1), or either way at random (from 2)."""
    found = copy.deepcopy(module)
    generator = torch.Generator().manual_seed(move)
    with torch.no_grad():
        for weight in found.parameters():
            if weight.is_floating_point():
                up = torch.randint(0, 2, weight.shape, generator=generator) if move > 1 else torch.tensor(1 - move)
                end = (up.double() * 2 - 1) * torch.inf
                weight.copy_(torch.nextafter(weight, end.to(weight.device, weight.dtype).expand_as(weight)))
    return found


# comparing


@dataclass(frozen=True)
class References:
    """What a call should give, and how far from the exact values eager is: tensor -> L2 norm."""

    eager: Observed
    exact: Observed
    error: dict[str, float]
    is_exact: bool

    @staticmethod
    def of(module: nn.Module, inputs: Mapping[str, Any], mode: Mode, device: str) -> References:
        """Run a copy in eager, and one in float64 or, if there is none, two whose weights are moved."""
        own = copy.deepcopy(module)
        eager = call(own, own, inputs, mode, device, False)
        with contextlib.suppress(Exception):
            wide = copy.deepcopy(module)._apply(widened)
            exact = call(wide, wide, inputs, mode, device, True)
            if {n: t.shape for n, t in exact.items()} == {n: t.shape for n, t in eager.items()}:
                return References(eager, exact, {n: _distance(eager[n], exact[n]) for n in eager}, True)
        error = dict.fromkeys(eager, 0.0)
        for move in range(2):
            other = moved(module, move)
            for name, tensor in call(other, other, inputs, mode, device, False).items():
                if name in eager and tensor.shape == eager[name].shape:
                    error[name] = max(error[name], _distance(tensor, eager[name]))
        return References(eager, eager, error, False)


def _finite(tensor: torch.Tensor) -> torch.Tensor:
    wide = widened(tensor.detach()).to("cpu")
    return torch.where(torch.isfinite(wide), wide, torch.zeros_like(wide))


def _norm(tensor: torch.Tensor) -> float:
    return float(_finite(tensor).to(torch.complex128).norm()) if tensor.numel() else 0.0


def _distance(a: torch.Tensor, b: torch.Tensor) -> float:
    if not (a.is_floating_point() or a.is_complex()) or not a.numel():
        return 0.0
    return float((_finite(a) - _finite(b)).to(torch.complex128).norm())


def compare(got: Observed, references: References) -> tuple[list[str], float]:
    """Faults, and the largest error in multiples of what is allowed."""
    eager, exact = references.eager, references.exact
    norms = {name: _norm(exact[name]) for name in eager}
    usual = statistics.median([references.error[n] / norms[n] for n in eager if norms[n]] or [0.0])
    most = max((norms[n] for n in eager if n.startswith("grad.")), default=0.0)
    faults = [f"{name} is missing" for name in eager if name not in got]
    faults += [f"{name} is no output of eager" for name in got if name not in eager and _norm(got[name])]
    worst, factor = 0.0, FACTOR if references.is_exact else FACTOR_OF_MOVED
    for name in eager:
        if name not in got:
            continue
        fault = _kind(name, eager[name], got[name])
        if fault is None and (eager[name].is_floating_point() or eager[name].is_complex()):
            unit = torch.finfo(eager[name].dtype).eps
            floor = FLOOR.get(eager[name].dtype, 4) * unit
            allowed = factor * max(references.error[name], usual * norms[name]) + floor * norms[name]
            allowed += unit * most if name.startswith("grad.") else 0.0  # gradients that are zero but for rounding
            error = _distance(got[name], exact[name])
            ratio = error / allowed if allowed else (float("inf") if error else 0.0)
            worst = max(worst, ratio)
            if ratio > 1:
                scale = norms[name] or 1.0
                relative = f"{error / scale:.1e}, eager's {references.error[name] / scale:.1e}"
                fault = f"{name}: relative error {relative}{'' if references.is_exact else ' (moved weights)'}"
        elif fault is None and not torch.equal(eager[name], got[name]) and torch.equal(eager[name], exact[name]):
            fault = f"{name}: {int((eager[name] != got[name]).sum())} of {got[name].numel()} elements differ"
        faults += [fault] if fault else []
    return faults, worst


def _kind(name: str, eager: torch.Tensor, got: torch.Tensor) -> str | None:
    for what in ("dtype", "shape", "layout", "device"):
        if getattr(eager, what) != getattr(got, what):
            return f"{name}: {what} {getattr(eager, what)} -> {getattr(got, what)}"
    is_output = name.startswith("out") and eager.layout == torch.strided
    if is_output and not check_significant_strides(eager, got, only_cuda=False)[0]:
        return f"{name}: stride {eager.stride()} -> {got.stride()}"
    if (eager.is_floating_point() or eager.is_complex()) and not torch.equal(eager.isfinite(), got.isfinite()):
        return f"{name}: {int((eager.isfinite() != got.isfinite()).sum())} elements are finite in one only"
    return None


# a model in a mode


@dataclass
class Compiled:
    """What compiling a model and calling it gave."""

    faults: list[str] = dataclasses.field(default_factory=list)
    error: str = ""
    ratio: float = 0.0
    graphs: int = 0
    breaks: int = 0
    first: float = 0.0
    recompiles: list[int] = dataclasses.field(default_factory=list)
    kernels: int = 0
    aten: dict[str, int] = dataclasses.field(default_factory=dict)
    warnings: list[str] = dataclasses.field(default_factory=list)


def measure(row: Row, mode_name: str, device: str, threads: int, backend: str = "inductile") -> dict[str, Any]:
    """A row of results; what fails is run under aot_eager too, which says whose failure it is."""
    mode = MODES[mode_name]
    result: dict[str, Any] = {"model": row.name, "family": row.family, "mode": mode_name, "device": device}
    reason = row.without.get(mode_name)
    if reason is not None:
        return result | {"status": "none", "problem": reason}
    try:
        case = row.build()
        case.module.to(device)
        inputs = [case.inputs(size) for size in range(mode.sizes)]
        references = [References.of(case.module, each, mode, device) for each in inputs]
    except (MissingError, ImportError) as error:
        return result | {"status": "missing", "problem": short(error)}
    except Exception as error:
        return result | {"status": "eager", "problem": short(error)}
    if hasattr(torch._dynamo.config, "allow_rnn"):
        torch._dynamo.config.allow_rnn = True  # else recurrent networks never reach a backend
    ours = compile_and_compare(case, inputs, references, mode, device, backend, threads)
    in_eager = [warning for warning in ours.warnings if "runs a graph in eager" in warning]
    ours.error = ours.error or "; ".join(in_eager)
    status = "error" if ours.error else "values" if ours.faults else "pass" if ours.graphs else "none"
    result |= {"status": status, "problem": ours.error or "; ".join(ours.faults[:3]), "fault_count": len(ours.faults)}
    result |= {name: value for name, value in dataclasses.asdict(ours).items() if name not in ("faults", "error")}
    if status == "none":
        result["problem"] = "Dynamo gives the backend no graph"
    if status == "values" and _is_kink(case, inputs, references, mode, device, backend, threads, ours):
        result |= {"status": "pass", "kink": result["problem"], "problem": ""}
    result["reference"] = "float64" if all(r.is_exact for r in references) else "moved weights"
    if backend == "inductile" and (result["status"] in ("error", "values") or any(ours.recompiles)):
        other = compile_and_compare(case, inputs, references, mode, device, "aot_eager", threads)
        result["aot_eager"] = other.error or "; ".join(other.faults[:3]) or "pass"
        result["aot_eager_recompiles"] = other.recompiles
        result["shared"] = (
            bool(other.error) if ours.error else bool(ours.faults) and set(places(ours)) <= set(places(other))
        )
    return result


def _is_kink(
    case: Case,
    inputs: Sequence[Mapping[str, Any]],
    references: Sequence[References],
    mode: Mode,
    device: str,
    backend: Any,
    threads: int,
    ours: Compiled,
) -> bool:
    """Whether we are right somewhere where weights are a unit off, and eager jumps there as far as we were off."""
    right, jump = False, 0.0
    for move in range(MOVES):
        near = dataclasses.replace(case, module=moved(case.module, move))
        others = [References.of(near.module, each, mode, device) for each in inputs]
        if not right:
            found = compile_and_compare(near, inputs, others, mode, device, backend, threads)
            if found.error:
                return False
            right = not found.faults
        for reference, other in zip(references, others, strict=True):
            jump = max(jump, compare(other.eager, reference)[1])
        if right and FACTOR_OF_MOVED * jump >= ours.ratio:
            return True
    return False


def places(found: Compiled) -> list[str]:
    """The outputs that are wrong, each with the kind of fault."""
    return [" ".join(fault.split()[:2]) for fault in found.faults]


def short(error: BaseException) -> str:
    """An error in a line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines)[:400]}"


def compile_and_compare(
    case: Case,
    inputs: Sequence[Mapping[str, Any]],
    references: Sequence[References],
    mode: Mode,
    device: str,
    backend: str,
    threads: int,
) -> Compiled:
    """Compile a copy of the model, call it at all sizes, compare."""
    from torch._dynamo.utils import counters

    torch._dynamo.reset()
    counters.clear()
    reports = _reports()
    reports.clear()
    found = Compiled()
    options: dict[str, Any] = {"options": {"compile_threads": threads}} if backend == "inductile" else {}
    module = copy.deepcopy(case.module)
    before = copy.deepcopy(module.state_dict())
    run: Any = torch.compile(module, backend=backend, dynamic=mode.dynamic, **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for number, (given, reference) in enumerate(zip(inputs, references, strict=True)):
            module.load_state_dict(before)  # buffers start as they did for the references
            start, graphs = time.perf_counter(), counters["stats"]["unique_graphs"]
            try:
                got = call(module, run, given, mode, device, False)
            except Exception as error:
                found.error = f"{f'size {number}: ' if number else ''}{short(error)}"
                break
            if number == 0:
                found.first = round(time.perf_counter() - start, 2)
            else:
                found.recompiles.append(counters["stats"]["unique_graphs"] - graphs)
            faults, ratio = compare(got, reference)
            found.faults += [f"{f'size {number} ' if number else ''}{fault}" for fault in faults]
            found.ratio = round(max(found.ratio, min(ratio, 1e9)), 3)
    found.graphs, found.breaks = counters["stats"]["unique_graphs"], sum(counters["graph_break"].values())
    found.kernels = sum(sum(report.kernels.values()) for report in reports)
    aten = Counter[str]()
    for report in reports:
        aten.update(report.aten_calls)
    found.aten = dict(aten)
    found.warnings = sorted(
        {str(w.message).splitlines()[0][:200] for w in caught if "inductile" in f"{w.filename}{w.message}"}
    )
    return found


def _reports() -> list[Any]:
    from inductile.backends.compiled import REPORTS

    return REPORTS
