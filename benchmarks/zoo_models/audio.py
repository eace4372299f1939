"""Models of torchaudio."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from .base import BATCHES, LENGTHS, Case, Inputs, Maker, Row, attribute, noise, numbers


def build(name: str, inputs: Maker, options: dict[str, Any]) -> Case:
    """A model of torchaudio by its class or its function."""
    return Case(attribute("torchaudio.models", name)(**options), inputs)


def row(name: str, model: str, inputs: Maker, skip: dict[str, str] | None = None, **options: Any) -> Row:
    """A row of the zoo."""
    return Row(f"ta_{name}", "torchaudio", "torchaudio", partial(build, model, inputs, options), skip or {})


def frames(width: int, factor: int = 1) -> Callable[[int], Inputs]:
    """Two sequences of vectors, and their lengths."""

    def make(size: int) -> Inputs:
        length = LENGTHS[size] * factor
        return {"0": noise(2, length, width, seed=size), "1": torch.tensor([length, length - 4])}

    return make


_CONFORMER: dict[str, Any] = {
    "input_dim": 16,
    "num_heads": 2,
    "ffn_dim": 32,
    "num_layers": 2,
    "depthwise_conv_kernel_size": 7,
}
_ENCODER: dict[str, Any] = {
    "extractor_mode": "group_norm", "extractor_conv_layer_config": [(16, 10, 5), (16, 8, 4)],
    "extractor_conv_bias": False, "encoder_embed_dim": 32, "encoder_projection_dropout": 0.0,
    "encoder_pos_conv_kernel": 8, "encoder_pos_conv_groups": 2, "encoder_num_layers": 2, "encoder_num_heads": 4,
    "encoder_attention_dropout": 0.0, "encoder_ff_interm_features": 64, "encoder_ff_interm_dropout": 0.0,
    "encoder_dropout": 0.0, "encoder_layer_norm_first": False, "encoder_layer_drop": 0.0, "aux_num_out": 8,
}  # fmt: skip

ROWS: tuple[Row, ...] = (
    row("conformer", "Conformer", frames(16), **_CONFORMER),
    row("conformer_group_norm", "Conformer", frames(16), use_group_norm=True, convolution_first=True, **_CONFORMER),
    row("emformer", "Emformer", frames(16), input_dim=16, num_heads=2, ffn_dim=32, num_layers=2, segment_length=4,
        right_context_length=1),
    row("conv_tasnet", "ConvTasNet", numbers("0", 2, 1, 0, axis=2, sizes=(400, 480, 640)), num_sources=2,
        enc_kernel_size=16, enc_num_feats=16, msk_kernel_size=3, msk_num_feats=8, msk_num_hidden_feats=16,
        msk_num_layers=2, msk_num_stacks=1),
    row("deep_speech", "DeepSpeech", numbers("0", 2, 1, 0, 16, axis=2, sizes=LENGTHS), n_feature=16, n_hidden=16,
        n_class=8),
    row("wav2letter", "Wav2Letter", numbers("0", 0, 1, 3200, sizes=BATCHES), num_classes=8, input_type="waveform",
        num_features=1),
    row("wav2vec2", "wav2vec2_model", numbers("0", 2, 0, axis=1, sizes=(1600, 2000, 2400)), **_ENCODER),
    row("wavernn", "WaveRNN", lambda size: {"0": noise(BATCHES[size], 1, 24, seed=size), "1": noise(
        BATCHES[size], 1, 8, 10, seed=size)}, upsample_scales=[2, 2], n_classes=8, hop_length=4, n_res_block=1,
        n_rnn=16, n_fc=16, kernel_size=5, n_freq=8, n_hidden=16, n_output=16),
)  # fmt: skip
