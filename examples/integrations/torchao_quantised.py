"""torchao: a model quantised to 8 bits, the weights alone, weights and activations, or by PT2E, compiled by inductile.

    python examples/integrations/torchao_quantised.py
    python examples/integrations/torchao_quantised.py --only pt2e --width 512

Needs `pip install torchao`. Quantise first, then compile: `torch.compile(model, backend="inductile")`. On a processor
without instructions for integers (VNNI) PT2E's quantizer should have `reduce_range=True`, as here: then products of
integers are exact, and fast, there too.
"""

from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Callable, Sequence

import torch
from torchao.quantization import Int8DynamicActivationInt8WeightConfig, Int8WeightOnlyConfig, quantize_
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

from inductile.backends.compiled import REPORTS


def network(width: int) -> torch.nn.Module:
    """Two linear layers."""
    torch.manual_seed(0)
    layers = torch.nn.Linear(width, 2 * width), torch.nn.ReLU(), torch.nn.Linear(2 * width, width)
    return torch.nn.Sequential(*layers).eval()


def of_weights(model: torch.nn.Module, x: torch.Tensor) -> torch.nn.Module:
    """Weights of 8 bits, activations of float32."""
    quantize_(model, Int8WeightOnlyConfig())
    return model


def of_both(model: torch.nn.Module, x: torch.Tensor) -> torch.nn.Module:
    """Weights of 8 bits, and activations that are quantised row by row in each call."""
    quantize_(model, Int8DynamicActivationInt8WeightConfig())
    return model


def by_pt2e(model: torch.nn.Module, x: torch.Tensor) -> torch.nn.Module:
    """Scales of activations that a calibration finds."""
    quantizer = x86.X86InductorQuantizer()
    quantizer.set_global(x86.get_default_x86_inductor_quantization_config(reduce_range=True))
    prepared = prepare_pt2e(torch.export.export(model, (x,), strict=True).module(), quantizer)
    prepared(x)
    return convert_pt2e(prepared)


WAYS: dict[str, Callable[[torch.nn.Module, torch.Tensor], torch.nn.Module]] = {
    "weights": of_weights,
    "both": of_both,
    "pt2e": by_pt2e,
}


def is_right(name: str, width: int) -> bool:
    """Quantise, compile, and compare with the quantised model in eager; both are also compared with the float one."""
    model, x = network(width), torch.randn(4, width)
    REPORTS.clear()
    torch._dynamo.reset()
    with torch.no_grad():
        quantised = WAYS[name](copy.deepcopy(model), x)
        exact, expected = model(x), quantised(x)
        got = torch.compile(quantised, backend="inductile")(x)
    scale = exact.abs().max()
    apart, lost, of_eager = ((a - b).abs().max() / scale for a, b in ((got, expected), (got, exact), (expected, exact)))
    calls = ", ".join(dict.fromkeys(call for report in REPORTS for call in report.aten_calls)) or "none"
    print(f"{name:8s} from eager {apart:.1e}; from the float model {lost:.1e}, eager's {of_eager:.1e}; calls: {calls}")
    return bool(apart < 1e-5)


def main(argv: Sequence[str] | None = None) -> int:
    """Compare each way; 1 where one differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", choices=WAYS)
    parser.add_argument("--width", type=int, default=64)
    given = parser.parse_args(argv)
    right = [is_right(name, given.width) for name in WAYS if given.only in (None, name)]
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
