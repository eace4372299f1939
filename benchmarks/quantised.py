"""Models of 8 bits on the CPU beside float ones: `python benchmarks/quantised.py --models resnet50 --repeats 5`.

PT2E with torchao's X86 quantizer, `reduce_range` unless `--full-range`, weights and inputs at random. Each line: the
least milliseconds of a call, rounds over all backends in turns; and over `--inputs` other inputs how far results are
from the float model's in their norm, the cosine with them, and how often the greatest number of a row is the same one.
Batch norms get the statistics of random images first, for without them numbers vanish. With `--cpu-time` it is CPU time
of one thread. Needs `pip install torchao torchvision transformers timm`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch


def _vision(name: str) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    import torchvision

    model = getattr(torchvision.models, name)(weights=None)
    norms = [module for module in model.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    for module in norms:
        module.momentum = None  # a mean over all batches
    with torch.no_grad():
        for _ in range(4 if norms else 0):
            model.train()(torch.randn(4, 3, 224, 224))
        model.eval()
        for parameter in model.parameters():  # a head of zeros gives zeros
            if parameter.dim() == 2 and not parameter.any():
                parameter.normal_(std=0.02)
    return model, (torch.randn(1, 3, 224, 224),)


def _bert() -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    from transformers import BertConfig, BertModel

    class Pooled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = BertModel(BertConfig(), add_pooling_layer=False)  # the quantizer refuses a dead layer

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return self.inner(tokens).last_hidden_state

    return Pooled().eval(), (torch.randint(30000, (1, 128)),)


MODELS: dict[str, Callable[[], tuple[torch.nn.Module, tuple[torch.Tensor, ...]]]] = {
    "resnet18": lambda: _vision("resnet18"),
    "resnet50": lambda: _vision("resnet50"),
    "mobilenet_v3_large": lambda: _vision("mobilenet_v3_large"),
    "vit_b_16": lambda: _vision("vit_b_16"),
    "bert": _bert,
}


def quantised(model: torch.nn.Module, inputs: tuple[torch.Tensor, ...], reduce_range: bool) -> Any:
    """The model by PT2E, calibrated on a few inputs."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    quantizer = x86.X86InductorQuantizer()
    quantizer.set_global(x86.get_default_x86_inductor_quantization_config(reduce_range=reduce_range))
    prepared = prepare_pt2e(torch.export.export(model, inputs, strict=True).module(), quantizer)
    for _ in range(4):
        prepared(*(_another(x) for x in inputs))
    prepared(*inputs)
    return convert_pt2e(prepared)


def _another(x: torch.Tensor) -> torch.Tensor:
    return torch.randn_like(x) if x.is_floating_point() else torch.randint_like(x, 30000)


def candidates(model: Any, integer: Any, inputs: tuple[torch.Tensor, ...]) -> dict[str, Callable[..., Any]]:
    """What is timed, compiled and warm."""
    import torch._inductor.config as settings

    found: dict[str, Callable[..., Any]] = {"eager, float": model}
    plans = (
        ("inductile, float", model, {"backend": "inductile", "options": {"freezing": True}}),
        ("inductile, int8", integer, {"backend": "inductile", "options": {"freezing": True}}),
        ("Inductor, float", model, {}),
        ("Inductor, int8", integer, {}),
    )
    with settings.patch(freezing=True):
        for name, which, how in plans:
            torch._dynamo.reset()
            compiled = torch.compile(which, **how)
            started = time.perf_counter()
            compiled(*inputs)
            print(f"  {name}: first call {time.perf_counter() - started:.1f} s", flush=True)
            found[name] = compiled
            compiled(*inputs)
    return found


def accuracy(call: Callable[..., Any], model: Any, others: list[tuple[torch.Tensor, ...]]) -> str:
    """How near a model's results are to the float model's."""
    got, exact = (torch.stack([run(*each) for each in others]).float() for run in (call, model))
    cosine = float(torch.nn.functional.cosine_similarity(got.flatten(1), exact.flatten(1)).mean())
    lost, same = float((got - exact).norm() / exact.norm()), got.argmax(-1) == exact.argmax(-1)
    return f"from float {lost:.1e}, cosine {cosine:.5f}, same first {100 * float(same.float().mean()):.1f} %"


def measure(name: str, repeats: int, reduce_range: bool, clock: Callable[[], float], count: int) -> None:
    """Print a model's lines."""
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    print(name)
    calls = candidates(model, quantised(model, inputs, reduce_range), inputs)
    others = [tuple(map(_another, inputs)) for _ in range(count)]
    least = dict.fromkeys(calls, float("inf"))
    for _ in range(repeats):
        for each, call in calls.items():
            started = clock()
            call(*inputs)
            least[each] = min(least[each], 1e3 * (clock() - started))
    for each, call in calls.items():
        print(f"  {each:18s} {least[each]:9.2f} ms   {accuracy(call, model, others)}", flush=True)


def main() -> None:
    """Measure the models that are asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=[m for m in MODELS if m != "resnet18"])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--full-range", action="store_true", help="8 bits of activations, for processors with VNNI")
    parser.add_argument("--cpu-time", action="store_true", help="CPU time on one thread, where others use the machine")
    parser.add_argument("--inputs", type=int, default=16, help="inputs on which results are compared")
    given = parser.parse_args()
    if given.cpu_time:
        torch.set_num_threads(1)
    clock = time.process_time if given.cpu_time else time.perf_counter
    with torch.no_grad():
        for name in given.models:
            measure(name, given.repeats, not given.full_range, clock, given.inputs)


if __name__ == "__main__":
    main()
