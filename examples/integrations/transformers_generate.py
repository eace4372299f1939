"""transformers: `model.generate` with a static cache, whose decoding step inductile compiles.

    python examples/integrations/transformers_generate.py
    python examples/integrations/transformers_generate.py --tokens 64 --layers 12 --width 768

Needs `pip install transformers`. `CompileConfig(backend=...)` takes any backend of torch.compile. By itself `generate`
compiles on a GPU only; a model that was compiled by `model.forward = torch.compile(...)` is compiled anywhere, which
is what this script does on a CPU.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import torch
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.generation import CompileConfig

from inductile.backends.compiled import REPORTS


def model_of(layers: int, width: int, device: str) -> LlamaForCausalLM:
    """A Llama with random weights."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=256, hidden_size=width, intermediate_size=2 * width, num_hidden_layers=layers,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256,
        bos_token_id=0, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval().to(device)


def main(argv: Sequence[str] | None = None) -> int:
    """Generate in eager and compiled; 1 where the tokens differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tokens", type=int, default=8)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    given = parser.parse_args(argv)
    model = model_of(given.layers, given.width, given.device)
    prompt = torch.randint(1, 256, (2, 7), device=given.device)
    asked = {"max_new_tokens": given.tokens, "do_sample": False, "cache_implementation": "static"}
    mask = torch.ones_like(prompt)
    expected = model.generate(prompt, attention_mask=mask, disable_compile=True, **asked)
    if given.device == "cpu":
        model.forward = torch.compile(model.forward, backend="inductile")
    else:
        asked["compile_config"] = CompileConfig(backend="inductile", mode="reduce-overhead", fullgraph=True)
    before = len(REPORTS)
    got = model.generate(prompt, attention_mask=mask, **asked)
    print("eager:   ", expected[0].tolist())
    print("compiled:", got[0].tolist())
    for report in list(REPORTS)[before:]:
        print(report)
    return 0 if torch.equal(expected, got) and len(REPORTS) > before else 1


if __name__ == "__main__":
    sys.exit(main())
