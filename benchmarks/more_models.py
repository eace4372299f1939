"""Published models beside those of `models.py`, with random weights, for the CPU: `MORE`."""

from __future__ import annotations

from typing import Any

import torch
from models import Built, Model


def _image(size: int = 224) -> torch.Tensor:
    return torch.randn(1, 3, size, size, generator=torch.Generator().manual_seed(0))


def _torchvision(name: str, small: bool) -> Built:
    import torchvision

    return getattr(torchvision.models, name)(weights=None).eval(), (_image(64 if small else 224),)


def efficientnet(small: bool) -> Built:
    """torchvision's EfficientNet-B0, 1 image."""
    return _torchvision("efficientnet_b0", small)


def densenet(small: bool) -> Built:
    """torchvision's DenseNet-121, 1 image."""
    return _torchvision("densenet121", small)


def regnet(small: bool) -> Built:
    """torchvision's RegNetY-400MF, 1 image."""
    return _torchvision("regnet_y_400mf", small)


def swin(small: bool) -> Built:
    """torchvision's Swin-T, 1 image."""
    return _torchvision("swin_t", small)


def mixer(small: bool) -> Built:
    """timm's MLP-Mixer-B/16, 1 image."""
    import timm

    name = "mixer_s32_224" if small else "mixer_b16_224"
    return timm.create_model(name, pretrained=False).eval(), (_image(),)


def distilbert(small: bool) -> Built:
    """DistilBERT, 1 sequence of 64 tokens."""
    from transformers import DistilBertConfig, DistilBertModel

    size: dict[str, Any] = {"n_layers": 1, "dim": 64, "n_heads": 4, "hidden_dim": 128} if small else {}
    config = DistilBertConfig(**size)
    model = DistilBertModel(config).eval()

    def forward(tokens: torch.Tensor) -> torch.Tensor:
        return model(tokens, return_dict=False)[0]

    forward.module = model  # pyright: ignore[reportFunctionMemberAccess]
    tokens = torch.randint(0, config.vocab_size, (1, 64), generator=torch.Generator().manual_seed(0))
    return forward, (tokens,)


def whisper(small: bool) -> Built:
    """The encoder of Whisper-tiny, 30 s of sound."""
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    config = WhisperConfig(encoder_layers=1 if small else 4, d_model=384, encoder_ffn_dim=1536)
    model = WhisperEncoder(config).eval()

    def forward(sound: torch.Tensor) -> torch.Tensor:
        return model(sound, return_dict=False)[0]

    forward.module = model  # pyright: ignore[reportFunctionMemberAccess]
    return forward, (torch.randn(1, 80, 3000, generator=torch.Generator().manual_seed(0)),)


class _LanguageModel(torch.nn.Module):
    """As PyTorch's examples/word_language_model has it."""

    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.encoder = torch.nn.Embedding(words, width)
        self.rnn = torch.nn.LSTM(width, width, 2)
        self.decoder = torch.nn.Linear(width, words)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        output, _ = self.rnn(self.encoder(tokens))
        return torch.nn.functional.log_softmax(self.decoder(output).flatten(0, 1), dim=1)


def lstm(small: bool) -> Built:
    """A word language model of two LSTM layers of 650, 4 sequences of 35 words."""
    words = 100 if small else 10000
    model = _LanguageModel(words, 64 if small else 650).eval()
    return model, (torch.randint(0, words, (35, 4), generator=torch.Generator().manual_seed(0)),)


MORE: dict[str, Model] = {
    m.name: m
    for m in (
        Model("efficientnet", efficientnet, bfloat16=True),
        Model("densenet", densenet, bfloat16=True),
        Model("regnet", regnet, bfloat16=True),
        Model("swin", swin, bfloat16=True),
        Model("mixer", mixer, bfloat16=True),
        Model("distilbert", distilbert, bfloat16=True),
        Model("whisper", whisper, bfloat16=True),
        Model("lstm", lstm, bfloat16=True),
    )
}
