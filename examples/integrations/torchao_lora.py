"""torchao and peft: LoRA on weights of 8 bits (QLoRA), the model compiled by inductile.

    python examples/integrations/torchao_lora.py
    python examples/integrations/torchao_lora.py --steps 50

Needs `pip install torchao peft transformers`. Quantise the base model, let `get_peft_model` put adapters beside its
layers, and compile what it returns, in place: scales are multiplied inside of the kernels around the products, and only
the adapters have gradients. torchtune does the same in its recipes; there TORCH_COMPILE_BACKEND names the backend.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence

import torch
from peft import LoraConfig, get_peft_model
from torchao.quantization import Int8WeightOnlyConfig, quantize_
from transformers import LlamaConfig, LlamaForCausalLM

from inductile.backends.compiled import REPORTS

ADAPTED = ["q_proj", "v_proj", "up_proj"]


def adapted_model() -> torch.nn.Module:
    """A small language model whose layers have weights of 8 bits, and adapters beside them."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=32,
    )  # fmt: skip
    base = LlamaForCausalLM(config)
    quantize_(base.model, Int8WeightOnlyConfig(version=2))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*get_apply_tensor_subclass")  # which merging needs
        return get_peft_model(base, LoraConfig(r=4, lora_alpha=8, target_modules=ADAPTED))


def tuned(steps: int, compiled: bool) -> tuple[list[float], list[torch.Tensor]]:
    """The loss of each step, and the adapters behind the last."""
    model = adapted_model()
    if compiled:
        model.compile(backend="inductile")
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-2)
    tokens = torch.randint(64, (4, 12), generator=torch.Generator().manual_seed(0))
    told: list[float] = []
    for _ in range(steps):
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        told.append(loss.item())
    return told, [parameter.detach() for parameter in trained]


def main(argv: Sequence[str] | None = None) -> int:
    """Tune twice; 1 where the losses or the adapters differ, or where nothing is learned."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=4)
    given = parser.parse_args(argv)
    expected, wanted = tuned(given.steps, False)
    before = len(REPORTS)
    got, adapters = tuned(given.steps, True)
    print("eager:   ", expected)
    print("compiled:", got)
    for report in list(REPORTS)[before:]:
        print(report)
    close = all(abs(a - b) <= 1e-3 * max(abs(a), 0.1) for a, b in zip(expected, got, strict=True))
    torch.testing.assert_close(adapters, wanted, rtol=1e-3, atol=1e-3)
    return 0 if close and got[-1] < got[0] and len(REPORTS) > before else 1


if __name__ == "__main__":
    sys.exit(main())
