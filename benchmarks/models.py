"""Models with random weights that benchmarks and tests compile; nothing is downloaded.

`build(name, dtype, small)` gives (callable, inputs). `small` keeps the structure and cuts depth and width, for tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

Built = tuple[Callable[..., Any], tuple[Any, ...]]


@dataclass(frozen=True)
class Model:
    """A model: its maker, whether it is one of those also measured in bfloat16, and what its users vary.

    dynamic: (position of an input, dimension): sizes that are one number, the batch or the length of a sequence
    """

    name: str
    make: Callable[[bool], Built]
    bfloat16: bool = False
    dynamic: tuple[tuple[int, int], ...] = ((0, 0),)


def _tokens(batch: int, length: int, vocabulary: int) -> torch.Tensor:
    return torch.randint(0, vocabulary, (batch, length), generator=torch.Generator().manual_seed(0))


def _logits(module: torch.nn.Module) -> Callable[..., Any]:
    """First output of a Hugging Face model, so that only tensors are compared."""

    def forward(*args: Any, **kwargs: Any) -> Any:
        return module(*args, **kwargs, return_dict=False)[0]

    forward.module = module  # pyright: ignore[reportFunctionMemberAccess]
    return forward


def bert(small: bool) -> Built:
    """BERT-base encoder, 2 sequences of 128 tokens."""
    from transformers import BertConfig, BertModel

    size: dict[str, Any] = (
        {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128} if small else {}
    )
    config = BertConfig(**size)
    length = 16 if small else 128
    model = BertModel(config, add_pooling_layer=False).eval()
    return _logits(model), (_tokens(2, length, config.vocab_size), torch.ones(2, length, dtype=torch.int64))


def gpt2(small: bool) -> Built:
    """GPT-2 with its language-model head, 1 sequence of 128 tokens."""
    from transformers import GPT2Config, GPT2LMHeadModel

    size: dict[str, Any] = {"n_layer": 2, "n_embd": 64, "n_head": 4, "vocab_size": 1000} if small else {}
    config = GPT2Config(use_cache=False, **size)
    model = GPT2LMHeadModel(config).eval()
    return _logits(model), (_tokens(1, 16 if small else 128, config.vocab_size),)


def _llama_config(small: bool) -> Any:
    from transformers import LlamaConfig

    if small:
        return LlamaConfig(
            vocab_size=1000, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2,
        )  # fmt: skip
    return LlamaConfig(
        vocab_size=32000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16,
        num_key_value_heads=8,
    )  # fmt: skip


def llama(small: bool) -> Built:
    """An 8-layer Llama of width 1024, 1 sequence of 128 tokens, no cache."""
    from transformers import LlamaForCausalLM

    config = _llama_config(small)
    config.use_cache = False
    model = LlamaForCausalLM(config).eval()
    return _logits(model), (_tokens(1, 16 if small else 128, config.vocab_size),)


def _tinyllama_config(small: bool) -> Any:
    from transformers import LlamaConfig

    if small:
        return _llama_config(small)
    return LlamaConfig(
        vocab_size=32000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=22, num_attention_heads=32,
        num_key_value_heads=4,
    )  # fmt: skip


def llama_decode(small: bool) -> Built:
    """One decoding step of that Llama with a static key-value cache, at position 100 of 256."""
    return _decode(_llama_config(small), 100, 256)


def tinyllama_decode(small: bool) -> Built:
    """One decoding step of TinyLlama's shape, 1.1 billion parameters, at position 500 of a static cache of 1,024."""
    return _decode(_tinyllama_config(small), 500, 1024)


def _decode(config: Any, position: int, length: int) -> Built:
    from transformers import LlamaForCausalLM, StaticCache

    model = LlamaForCausalLM(config).eval()
    heads, width = config.num_key_value_heads, config.hidden_size // config.num_attention_heads
    cache: Any = None

    def place(dtype: torch.dtype, device: str) -> None:
        nonlocal cache
        cache = StaticCache(config=config, max_cache_len=length)
        cache.early_initialization(1, heads, width, dtype, torch.device(device))

    def step(token: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        for layer in cache.layers:  # which count the tokens that they have seen, whatever the position is
            if isinstance(getattr(layer, "cumulative_length", None), torch.Tensor):
                layer.cumulative_length.copy_(position[0])
        return model(token, past_key_values=cache, cache_position=position, use_cache=True, return_dict=False)[0]

    step.module = model  # pyright: ignore[reportFunctionMemberAccess]
    step.place = place  # pyright: ignore[reportFunctionMemberAccess]
    return step, (_tokens(1, 1, config.vocab_size), torch.tensor([position]))


def t5(small: bool) -> Built:
    """T5-small encoder and decoder, 128 and 32 tokens."""
    from transformers import T5Config, T5ForConditionalGeneration

    size: dict[str, Any] = (
        {"num_layers": 2, "d_model": 64, "d_ff": 128, "num_heads": 4, "d_kv": 16} if small else {"num_layers": 6}
    )
    config = T5Config(use_cache=False, **size)
    model = T5ForConditionalGeneration(config).eval()

    def forward(tokens: torch.Tensor, decoder_tokens: torch.Tensor) -> torch.Tensor:
        return model(input_ids=tokens, decoder_input_ids=decoder_tokens, use_cache=False, return_dict=False)[0]

    forward.module = model  # pyright: ignore[reportFunctionMemberAccess]
    lengths = (16, 8) if small else (128, 32)
    return forward, (_tokens(1, lengths[0], config.vocab_size), _tokens(1, lengths[1], config.vocab_size))


def _images(small: bool) -> torch.Tensor:
    size = 64 if small else 224
    return torch.randn(4, 3, size, size, generator=torch.Generator().manual_seed(0))


def resnet50(small: bool) -> Built:
    """torchvision's ResNet-50 (ResNet-18 when small), 4 images."""
    import torchvision

    model = (torchvision.models.resnet18 if small else torchvision.models.resnet50)(weights=None).eval()
    return model, (_images(small),)


def _timm(name: str, small_name: str, small: bool, **options: Any) -> Built:
    import timm

    model = timm.create_model(small_name if small else name, pretrained=False, **options).eval()
    return model, (_images(small),)


def vit(small: bool) -> Built:
    """timm's ViT-base of patch size 16, 4 images."""
    options = {"img_size": 64, "depth": 2} if small else {}
    return _timm("vit_base_patch16_224", "vit_tiny_patch16_224", small, **options)


def convnext(small: bool) -> Built:
    """timm's ConvNeXt-tiny, 4 images."""
    return _timm("convnext_tiny", "convnext_atto", small)


def mobilenetv3(small: bool) -> Built:
    """timm's MobileNetV3-large, 4 images."""
    return _timm("mobilenetv3_large_100", "mobilenetv3_small_050", small)


MODELS: dict[str, Model] = {
    m.name: m
    for m in (
        Model("bert", bert, bfloat16=True, dynamic=((0, 0), (1, 0))),
        Model("gpt2", gpt2, bfloat16=True, dynamic=((0, 1),)),
        Model("llama", llama, bfloat16=True, dynamic=((0, 1),)),
        Model("llama_decode", llama_decode, bfloat16=True, dynamic=()),  # a token, a position: nothing varies
        Model("t5", t5, dynamic=((0, 1),)),
        Model("resnet50", resnet50),
        Model("vit", vit),
        Model("convnext", convnext),
        Model("mobilenetv3", mobilenetv3),
    )
}


def bert_masked_lm(small: bool) -> Built:
    """BERT-base with its language-model head, 16 sequences of 512 tokens, without a mask."""
    from transformers import BertConfig, BertForMaskedLM

    size: dict[str, Any] = (
        {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128} if small else {}
    )
    config = BertConfig(**size)
    tokens = _tokens(2, 16, config.vocab_size) if small else _tokens(16, 512, config.vocab_size)
    return _logits(BertForMaskedLM(config).eval()), (tokens,)


def _larger(make: Callable[[bool], Built], batch: int, length: int = 0) -> Callable[[bool], Built]:
    """A model with larger inputs: batches of tokens of a length, or of images."""

    def made(small: bool) -> Built:
        function, inputs = make(small)
        if small:
            return function, inputs
        if length:
            return function, tuple(_tokens(batch, length, int(x.max()) + 1) for x in inputs)
        return function, tuple(x[:1].repeat(batch, 1, 1, 1) for x in inputs)

    return made


#: at the sizes that published suites run, batch x length or images, for GPUs
PUBLISHED: dict[str, Model] = {
    m.name: m
    for m in (
        Model("bert_16x512", bert_masked_lm, bfloat16=True, dynamic=((0, 1),)),
        Model("gpt2_8x512", _larger(gpt2, 8, 512), bfloat16=True, dynamic=((0, 1),)),
        Model("llama_8x512", _larger(llama, 8, 512), bfloat16=True, dynamic=((0, 1),)),
        Model("tinyllama_decode", tinyllama_decode, bfloat16=True, dynamic=()),
        Model("t5_8x512", _larger(t5, 8, 512), bfloat16=True, dynamic=((0, 1), (1, 1))),
        Model("resnet50_64", _larger(resnet50, 64), bfloat16=True),
        Model("vit_64", _larger(vit, 64), bfloat16=True),
        Model("convnext_64", _larger(convnext, 64), bfloat16=True),
        Model("mobilenetv3_128", _larger(mobilenetv3, 128), bfloat16=True),
    )
}


def build(name: str, dtype: torch.dtype = torch.float32, small: bool = False, device: str = "cpu") -> Built:
    """(callable, inputs) of a model, in `dtype` on `device`. Same seed, same weights."""
    torch.manual_seed(0)
    function, inputs = (MODELS | PUBLISHED)[name].make(small)
    module: Any = getattr(function, "module", function)
    module.to(device=device, dtype=dtype)
    place = getattr(function, "place", None)  # what a model keeps beside its module
    if place is not None:
        place(dtype, device)
    return function, tuple(x.to(device, dtype if x.is_floating_point() else x.dtype) for x in inputs)
