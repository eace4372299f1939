"""peft: fine-tuning a language model with LoRA, the model compiled by inductile.

    python examples/integrations/peft_lora.py
    python examples/integrations/peft_lora.py --steps 50 --checkpointing

Needs `pip install peft transformers`. Compile what `get_peft_model` returns, in place. Where adapters are merged or
others are set, Dynamo's guards see it, and the graph is compiled again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

from inductile.backends.compiled import REPORTS


def tuned(steps: int, checkpointing: bool, compiled: bool) -> tuple[list[float], torch.Tensor]:
    """The loss of each step, and what the model says when the adapters are merged into it."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=32,
    )  # fmt: skip
    base = LlamaForCausalLM(config)
    model = get_peft_model(base, LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj", "up_proj"]))
    if checkpointing:
        model.enable_input_require_grads()
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if compiled:
        model.compile(backend="inductile")
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-2)
    generator = torch.Generator().manual_seed(0)
    told: list[float] = []
    for _ in range(steps):
        tokens = torch.randint(64, (4, 12), generator=generator)
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        told.append(loss.item())
    frozen = [name for name, parameter in model.named_parameters() if parameter.grad is not None]
    assert not frozen, f"gradients of {frozen} are left"
    with torch.no_grad():
        return told, model.merge_and_unload()(input_ids=torch.arange(8)[None]).logits


def main(argv: Sequence[str] | None = None) -> int:
    """Tune twice; 1 where the losses or the merged models differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--checkpointing", action="store_true", help="compute activations again in backward")
    given = parser.parse_args(argv)
    expected, logits = tuned(given.steps, given.checkpointing, False)
    before = len(REPORTS)
    got, merged = tuned(given.steps, given.checkpointing, True)
    print("eager:   ", expected)
    print("compiled:", got)
    for report in list(REPORTS)[before:]:
        print(report)
    close = all(abs(a - b) <= 1e-3 * max(abs(a), 0.1) for a, b in zip(expected, got, strict=True))
    torch.testing.assert_close(merged, logits, rtol=1e-3, atol=1e-3)
    return 0 if close and len(REPORTS) > before else 1


if __name__ == "__main__":
    sys.exit(main())
