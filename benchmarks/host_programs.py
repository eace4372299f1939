"""What host programs of graphs for a GPU cost, without a GPU: `python benchmarks/host_programs.py [--models ...]`.

The driver does nothing, ATen calls return what they returned once, and memory is the CPU's: what is left is our own
part of a call. Small models, static and dynamic sizes in turns; the least CPU time of a call in microseconds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from gpu import make_importable

MODELS = ("gpt2_8x512", "t5_8x512", "bert_16x512", "llama_8x512", "resnet50_64")
#: rounds, and calls of a round
ROUNDS, CALLS = 300, 10


def nothing() -> int:
    """The address of a function of C that returns 0."""
    from inductile.backends.c_like.emit import KernelSource
    from inductile.backends.c_like.library import compile_kernels
    from inductile.backends.cpp.language import CPP

    text = 'extern "C" int nothing(const int64_t*) { return 0; }\n'
    (loaded,) = compile_kernels([KernelSource(CPP, "nothing", text, (), (), (), "a")])
    return loaded.entry


@contextmanager
def no_gpu_needed() -> Iterator[None]:
    """Programs are written as for a GPU that is here, with one variant of each kernel in its table."""
    from inductile.backends.triton import bound, launch, run_table
    from inductile.backends.triton.targets import TritonTarget
    from inductile.backends.triton.variants import Variant, likely_variant

    def bind(self: Any, variant: Variant) -> Callable[..., None]:
        self.directs.setdefault(variant.traits, run_table.Direct(1, 128, 0, 0))
        return lambda *_: None

    def load_likely(self: Any) -> None:
        bind(self, likely_variant(self.kernel.source))

    address, make = nothing(), bound.Status.__init__
    with ExitStack() as stack:
        for place, name, value in (
            (run_table, "driver", lambda: address), (launch, "is_possible", lambda: True),
            (launch, "warm_up", mock.Mock()),
            (TritonTarget, "is_here", True), (bound.DeviceKernel, "bind", bind),
            (bound.DeviceKernel, "load_likely", load_likely), (bound.DeviceKernel, "entry", lambda self: self),
            (bound.Status, "__init__", lambda self, errors, _=False: make(self, errors)),
        ):  # fmt: skip
            stack.enter_context(mock.patch.object(place, name, value))
        yield


def program(name: str, dynamic: bool) -> Callable[[], Any]:
    """A call of the host program of a model."""
    import models

    from inductile.backends.host.program import emitter_of
    from inductile.backends.triton import offline
    from inductile.dialects import host

    found: list[tuple[str, dict[str, Any]]] = []
    traced: list[Sequence[Any]] = []

    def text(module: Any, references: Any = None) -> str:
        function = next(op for op in module.ops if isinstance(op, host.FuncOp))
        emitter = emitter_of(function, module, None, references or {}, ())
        found.append((emitter.source(), emitter.constants.namespace))
        return found[-1][0]

    class Backend(offline.OfflineBackend):
        def _compile(self, kind: str, graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
            traced.append(list(inputs))
            return super()._compile(kind, graph, inputs)

    function, given = models.build(name, torch.bfloat16, True)
    torch._dynamo.reset()
    with mock.patch.object(offline, "program_text", text), torch.no_grad():
        torch.compile(function, backend=Backend(["cuda:90"], "cuda:0"), dynamic=dynamic, fullgraph=True)(*given)
    ((source, namespace),), (fakes,) = found, traced
    return prepared(source, namespace, [real(each) for each in fakes])


def real(value: Any) -> Any:
    """An input of the CPU for a fake one."""
    if not isinstance(value, torch.Tensor):
        return value.node.hint if isinstance(value, torch.SymInt) else value
    sizes, strides = ([real(each) for each in layout] for layout in (value.shape, value.stride()))
    return torch.empty_strided(sizes, strides, dtype=value.dtype).zero_()


def prepared(source: str, namespace: dict[str, Any], inputs: Sequence[Any]) -> Callable[[], Any]:
    """A call of a program whose ATen calls have been made once."""
    from inductile.backends.host import runtime

    results: list[Any] = []
    place, recording = 0, True

    def instead(call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **named: Any) -> Any:
            nonlocal place
            if recording:
                results.append(call(*args, **{**named, **({"device": "cpu"} if "device" in named else {})}))
            place += 1
            return results[place - 1]

        return run

    calls = {name: instead(value) for name, value in namespace.items() if name.startswith("call")}
    scope = {**namespace, **calls, "on_device": lambda _: lambda run: run, "current_stream": lambda _: 0}
    scope["empty_gpu"] = runtime.empty_cpu
    exec(compile(source, "<host program>", "exec"), scope)  # all words of the text are our own
    run = scope["run"]
    run(list(inputs))
    recording = False

    def call() -> None:
        nonlocal place
        place = 0
        run(list(inputs))

    return call


def main() -> None:
    """Command line."""
    make_importable()
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", nargs="*", default=list(MODELS))
    args = p.parse_args()
    torch.set_num_threads(1)
    for name in args.models:
        with no_gpu_needed():
            calls = {kind: program(name, kind == "dynamic") for kind in ("static", "dynamic")}
            least = dict.fromkeys(calls, float("inf"))
            for _ in range(ROUNDS):
                for kind, call in calls.items():
                    started = time.thread_time_ns()
                    for _ in range(CALLS):
                        call()
                    least[kind] = min(least[kind], (time.thread_time_ns() - started) / CALLS / 1e3)
        print(name, *(f"{kind} {spent:.1f}" for kind, spent in least.items()), flush=True)


if __name__ == "__main__":
    main()
