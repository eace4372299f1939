"""Which kernel the attention of transformers' models takes: `python benchmarks/attention.py [--device cuda]`.

A row is a family of models, small and with random weights, with or without padding in the batch, with static or dynamic
sizes. `proved` counts what `prove-attention-masks` says of the masks, `kernels` what reaches the aten level: a fused
kernel of the library by its name, or `decomposed` where scores are computed op by op. On a CPU torch chooses otherwise
than on a GPU, and only what is proved is of interest.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from gpu import make_importable

LENGTH = 40
_SMALL: dict[str, Any] = {
    "vocab_size": 99, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 96,
    "max_position_embeddings": 128,
}  # fmt: skip
_GROUPED = _SMALL | {"num_key_value_heads": 1, "head_dim": 32}
_GPT = {"vocab_size": 99, "n_embd": 64, "n_layer": 2, "n_head": 2}
_BART = {
    "vocab_size": 99, "d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 96, "decoder_ffn_dim": 96, "max_position_embeddings": 128,
}  # fmt: skip
_T5 = {"vocab_size": 99, "d_model": 64, "d_kv": 32, "d_ff": 96, "num_layers": 2, "num_heads": 2}
_WHISPER = _BART | {"max_source_positions": 50, "max_target_positions": 128, "num_mel_bins": 8}
_GEMMA = _GROUPED | {"sliding_window": 16, "num_hidden_layers": 4}

#: name -> (class of the model, of its configuration, options)
FAMILIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bert": ("BertModel", "BertConfig", _SMALL),
    "roberta": ("RobertaModel", "RobertaConfig", _SMALL),
    "xlm-r": ("XLMRobertaModel", "XLMRobertaConfig", _SMALL),
    "distilbert": (
        "DistilBertModel", "DistilBertConfig",
        {"vocab_size": 99, "dim": 64, "n_layers": 2, "n_heads": 2, "hidden_dim": 96},
    ),
    "deberta": ("DebertaV2Model", "DebertaV2Config", _SMALL),
    "vit": ("ViTModel", "ViTConfig", _SMALL | {"image_size": 64, "patch_size": 16}),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", _GPT),
    "gpt-neo": (
        "GPTNeoForCausalLM", "GPTNeoConfig",
        {"vocab_size": 99, "hidden_size": 64, "num_layers": 2, "num_heads": 2, "window_size": 16,
         "attention_types": [[["global", "local"], 1]], "max_position_embeddings": 128},
    ),
    "llama": ("LlamaForCausalLM", "LlamaConfig", _GROUPED),
    "mistral": ("MistralForCausalLM", "MistralConfig", _GROUPED | {"sliding_window": 16}),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config", _GEMMA),
    "gemma3": ("Gemma3ForCausalLM", "Gemma3TextConfig", _GEMMA),
    "falcon": ("FalconForCausalLM", "FalconConfig", {k: v for k, v in _SMALL.items() if k != "intermediate_size"}),
    "falcon-alibi": (
        "FalconForCausalLM", "FalconConfig",
        {k: v for k, v in _SMALL.items() if k != "intermediate_size"} | {"alibi": True},
    ),
    "bloom": ("BloomForCausalLM", "BloomConfig", {"vocab_size": 99, "hidden_size": 64, "n_layer": 2, "n_head": 2}),
    "t5": ("T5ForConditionalGeneration", "T5Config", _T5),
    "bart": ("BartForConditionalGeneration", "BartConfig", _BART),
    "whisper": ("WhisperForConditionalGeneration", "WhisperConfig", _WHISPER),
}  # fmt: skip


def build(name: str, device: str) -> tuple[Callable[..., Any], Callable[[int, int, bool], dict[str, Any]]]:
    """A model in evaluation, and a maker of its inputs for a batch, a length, and padding."""
    import transformers

    model_class, config_class, options = FAMILIES[name]
    config = getattr(transformers, config_class)(**options)
    dtype = torch.bfloat16 if device != "cpu" else torch.float32
    model = getattr(transformers, model_class)(config).eval().to(device, dtype)

    def inputs(batch: int, length: int, padding: bool) -> dict[str, Any]:
        generator = torch.Generator().manual_seed(0)
        if name == "vit":
            return {"pixel_values": torch.randn(batch, 3, 64, 64, generator=generator).to(device, dtype)}
        ids = torch.randint(3, 99, (batch, length), generator=generator).to(device)
        given: dict[str, Any] = {"input_ids": ids}
        if padding:
            given["attention_mask"] = (torch.arange(length) < length - torch.arange(batch)[:, None]).long().to(device)
        if name in ("t5", "bart"):
            given["decoder_input_ids"] = ids[:, : length // 2]
        if name == "whisper":
            features = torch.randn(batch, 8, 100, generator=generator).to(device, dtype)
            given = {"input_features": features, "decoder_input_ids": ids}
        return given

    def run(**given: Any) -> Any:
        extra = {} if name in ("vit", "bert", "roberta", "xlm-r", "distilbert", "deberta") else {"use_cache": False}
        return model(**given, **extra, return_dict=False)[0]

    return run, inputs


def kernels(reports: list[Any], texts: list[str]) -> Counter[str]:
    """What computes attention: calls of fused kernels by name, and softmaxes of scores that are left."""
    found: Counter[str] = Counter()
    for report in reports:
        for call, times in report.aten_calls.items():
            if "attention" in call:
                found[re.sub(r"^aten\._?(scaled_dot_product_)?", "", call)] += times
    decomposed = sum(text.count("aten._safe_softmax(") + text.count("aten._softmax(") for text in texts)
    if decomposed:
        found["decomposed"] = decomposed
    return found


def row(name: str, padding: bool, dynamic: bool, args: argparse.Namespace) -> str:
    """A line of the table."""
    import inductile.backends.compile_graph as compile_graph
    from inductile.backends.compiled import REPORTS
    from inductile.passes.printing import module_text
    from inductile.passes.remarks import collecting

    torch.compiler.reset()
    torch.manual_seed(0)
    run, inputs = build(name, args.device)
    texts: list[str] = []
    known = compile_graph.import_graph

    def import_graph(*given: Any) -> Any:
        imported = known(*given)
        texts.append(module_text(imported.module))
        return imported

    compile_graph.import_graph = import_graph
    before = len(REPORTS)
    worst = 0.0
    try:
        with torch.no_grad(), collecting() as remarks:
            compiled = torch.compile(run, backend="inductile", dynamic=dynamic or None)
            for length in (LENGTH, LENGTH + 8) if dynamic else (LENGTH,):
                given = inputs(4, length, padding)
                got, eager = compiled(**given), run(**given)
                worst = max(worst, float((got.float() - eager.float()).norm() / eager.float().norm()))
    finally:
        compile_graph.import_graph = known
    proved = Counter(r.reason.partition(": ")[2] or r.reason for r in remarks if r.pass_name == "prove-attention-masks")
    shown = kernels(REPORTS[before:], texts)
    texts_of = [", ".join(f"{text} x{times}" for text, times in each.items()) or "-" for each in (proved, shown)]
    kind = f"{'padding' if padding else 'full'}, {'dynamic' if dynamic else 'static'}"
    return f"{name:13s} {kind:17s} {len(texts)} graphs  error {worst:.1e}  {texts_of[1]:60s} proved: {texts_of[0]}"


def main() -> None:
    """Print a row for each family."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--quick", action="store_true", help="without padding and static sizes alone")
    args = parser.parse_args()
    make_importable()
    for name in args.families:
        for padding in (False,) if args.quick or name in ("vit", "whisper") else (False, True):
            for dynamic in (False,) if args.quick or name == "vit" else (False, True):
                try:
                    print(row(name, padding, dynamic, args), flush=True)
                except Exception as error:
                    print(
                        f"{name:13s} padding={padding} dynamic={dynamic}: {type(error).__name__}: {error}"[:300],
                        flush=True,
                    )


if __name__ == "__main__":
    main()
