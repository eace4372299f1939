"""Which kernel the attention of transformers' models takes: `python benchmarks/attention.py [--quick] [--jobs 14]`.

A row is a family of models, small and with random weights, with or without padding in the batch, with static or dynamic
sizes. `proved` counts what the passes on Dynamo's graph say of attention and its masks, `kernels` what reaches the aten
level: a fused kernel of the library by its name, or `decomposed` where scores are computed op by op. On a CPU torch
chooses otherwise than on a GPU, and only what is proved is of interest. `--jobs` processes take a family each. Of the
four rows of a family `--quick` leaves out two: with padding and static sizes, and without and dynamic ones.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from gpu import make_importable
from processes import MeasurementError, in_fresh_process

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
_SPECIAL_TOKENS: dict[str, Any] = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
"""Within the small vocabularies."""
_ENCODERS = ("vit", "bert", "roberta", "xlm-r", "distilbert", "deberta", "deberta-relative", "mpnet")
_PASSES = ("prove-attention-masks", "recognise-attention")

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
    "deberta-relative": (
        "DebertaV2Model", "DebertaV2Config", _SMALL | {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    ),
    "mpnet": ("MPNetModel", "MPNetConfig", _SMALL),
    "vit": ("ViTModel", "ViTConfig", _SMALL | {"image_size": 64, "patch_size": 16}),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", _GPT),
    "gpt-neo": (
        "GPTNeoForCausalLM", "GPTNeoConfig",
        {"vocab_size": 99, "hidden_size": 64, "num_layers": 2, "num_heads": 2, "window_size": 16,
         "attention_types": [[["global", "local"], 1]], "max_position_embeddings": 128},
    ),
    "gptj": ("GPTJForCausalLM", "GPTJConfig", _GPT | {"rotary_dim": 16}),
    "mpt": ("MptForCausalLM", "MptConfig", {"vocab_size": 99, "d_model": 64, "n_layers": 2, "n_heads": 2}),
    "llama": ("LlamaForCausalLM", "LlamaConfig", _GROUPED),
    "prefix": ("LlamaForCausalLM", "LlamaConfig", _GROUPED),
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
    config = getattr(transformers, config_class)(**_SPECIAL_TOKENS, **options)
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
        extra = {} if name in _ENCODERS else {"use_cache": False}
        if name == "prefix":
            given["attention_mask"] = prefix_mask(given["input_ids"], given.get("attention_mask"))
        return model(**given, **extra, return_dict=False)[0]

    return run, inputs


def prefix_mask(ids: torch.Tensor, padding: torch.Tensor | None, prefix: int = 8) -> torch.Tensor:
    """What a language model sees of which the first tokens see one another, made in the graph."""
    place = torch.arange(ids.shape[1], device=ids.device)
    mask = ((place[None, :] <= place[:, None]) | (place[None, :] < prefix))[None, None]
    return mask.expand(ids.shape[0], 1, -1, -1) if padding is None else mask & padding[:, None, None, :].bool()


def kernels(reports: Sequence[Any], texts: Sequence[str]) -> Counter[str]:
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


def row(name: str, padding: bool, dynamic: bool, device: str) -> dict[str, Any]:
    """What the attention of a family takes, and the error of the compiled model against eager."""
    import inductile.backends.compile_graph as compile_graph
    from inductile.backends.compiled import REPORTS
    from inductile.passes.printing import module_text
    from inductile.passes.remarks import collecting

    torch.compiler.reset()
    torch.manual_seed(0)
    run, inputs = build(name, device)
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
    proved = Counter(_without_names(each.reason) for each in remarks if each.pass_name in _PASSES)
    return {"graphs": len(texts), "error": worst, "kernels": kernels(REPORTS[before:], texts), "proved": proved}


def _without_names(reason: str) -> str:
    """A remark without the name of the call that it is about."""
    return reason.partition(": ")[2] or reason.partition(" is ")[2] or reason


def rows(name: str, quick: bool, device: str) -> Iterator[dict[str, Any]]:
    """Those of a family; one that failed has a `problem`."""
    for padding in (False,) if name in ("vit", "whisper") else (False, True):
        for dynamic in (False,) if name == "vit" else (False, True):
            if quick and name != "whisper" and padding != dynamic:
                continue
            kind = {"family": name, "padding": padding, "dynamic": dynamic}
            try:
                yield kind | row(name, padding, dynamic, device)
            except Exception as error:
                yield kind | {"problem": f"{type(error).__name__}: {error}"[:300]}


def line(found: dict[str, Any]) -> str:
    """A row of the table, in Markdown."""
    kind = f"{'padding' if found['padding'] else 'full'}, {'dynamic' if found['dynamic'] else 'static'}"
    if "problem" in found:
        return f"| {found['family']} | {kind} | {found['problem']} |"
    texts = [", ".join(f"{text} x{n}" for text, n in found[key].items()) or "-" for key in ("kernels", "proved")]
    return f"| {found['family']} | {kind} | {texts[0]} | {texts[1]} | {found['graphs']} | {found['error']:.1e} |"


def side_by_side(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The rows of all families, in order, from as many processes at once as `jobs` says."""
    os.environ["OMP_NUM_THREADS"] = str(max((os.cpu_count() or 1) // args.jobs, 1))

    def worked(name: str) -> list[dict[str, Any]]:
        given = ["--worker", name, "--device", args.device, *(["--quick"] * args.quick)]
        try:
            return in_fresh_process(__file__, given, cache, args.timeout)["rows"]
        except MeasurementError as error:
            return [{"family": name, "padding": False, "dynamic": False, "problem": str(error)}]

    with tempfile.TemporaryDirectory() as cache, ThreadPoolExecutor(args.jobs) as pool:
        for found in pool.map(worked, args.families):
            yield from found


def main() -> None:
    """Print a row for each family."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--quick", action="store_true", help="two rows a family: full and static, padded and dynamic")
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for the rows of a family, with --jobs")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    make_importable()
    if args.worker:
        return print(json.dumps({"rows": list(rows(args.worker, args.quick, args.device))}))
    one_by_one = (each for name in args.families for each in rows(name, args.quick, args.device))
    print("| family | batch, sizes | kernels | proved | graphs | error |\n|---|---|---|---|---|---|")
    decomposed = []
    for each in side_by_side(args) if args.jobs > 1 else one_by_one:
        print(line(each), flush=True)
        if "problem" in each or "decomposed" in each["kernels"]:
            decomposed.append(f"{each['family']} ({'padding' if each['padding'] else 'full'})")
    print(f"not fused: {', '.join(decomposed) or 'none'}")


if __name__ == "__main__":
    main()
