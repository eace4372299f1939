"""Models of diffusers: networks that denoise, and autoencoders."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from .base import BATCHES, Case, Inputs, Maker, Row, attribute, integers, noise, numbers


def build(name: str, inputs: Maker, options: dict[str, Any]) -> Case:
    """A model of diffusers by its class."""
    return Case(attribute("diffusers", name)(**options), inputs)


def row(name: str, family: str, model: str, inputs: Maker, skip: dict[str, str] | None = None, **options: Any) -> Row:
    """A row of the zoo."""
    return Row(f"sd_{name}", f"diffusers, {family}", "diffusers", partial(build, model, inputs, options), skip or {})


def _steps(size: int) -> torch.Tensor:
    return integers(1000, BATCHES[size], seed=size)


def denoised(*shape: int, name: str = "sample", step: str = "timestep", **more: Callable[[int], Any]) -> Maker:
    """A noisy sample, its times, and what else is known, by the batch."""

    def make(size: int) -> Inputs:
        found: Inputs = {name: noise(BATCHES[size], *shape, seed=size), step: _steps(size)}
        return found | {key: of(size) for key, of in more.items()}

    return make


def _text(length: int, width: int) -> Callable[[int], torch.Tensor]:
    return lambda size: noise(BATCHES[size], length, width, seed=size + 5)


def _flux(size: int) -> Inputs:
    places = torch.zeros(16, 3)
    places[:, 1], places[:, 2] = torch.arange(16) // 4, torch.arange(16) % 4
    return denoised(
        16, 4, name="hidden_states", encoder_hidden_states=_text(8, 32), img_ids=lambda _: places,
        pooled_projections=lambda size: noise(BATCHES[size], 32, seed=3), txt_ids=lambda _: torch.zeros(8, 3),
    )(size) | {"timestep": noise(BATCHES[size]).sigmoid()}  # fmt: skip


_BLOCKS: dict[str, Any] = {"block_out_channels": (16, 32), "layers_per_block": 1, "norm_num_groups": 8}
_VAE: dict[str, Any] = {
    "down_block_types": ("DownEncoderBlock2D",) * 2,
    "up_block_types": ("UpDecoderBlock2D",) * 2,
    **_BLOCKS,
}

ROWS: tuple[Row, ...] = (
    row("unet", "UNet", "UNet2DModel", denoised(3, 16, 16), sample_size=16, down_block_types=(
        "DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"), **_BLOCKS),
    row("unet_text", "UNet", "UNet2DConditionModel", denoised(4, 16, 16, encoder_hidden_states=_text(8, 32)),
        sample_size=16, cross_attention_dim=32, attention_head_dim=8, down_block_types=(
            "CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), **_BLOCKS),
    row("unet_1d", "UNet", "UNet1DModel", denoised(2, 32), sample_size=32, in_channels=2, out_channels=2,
        extra_in_channels=32, down_block_types=("DownBlock1DNoSkip", "DownBlock1D"),
        up_block_types=("UpBlock1D", "UpBlock1DNoSkip"), block_out_channels=(16, 32)),
    row("controlnet", "UNet", "ControlNetModel", denoised(4, 16, 16, encoder_hidden_states=_text(8, 32),
        controlnet_cond=lambda size: noise(BATCHES[size], 3, 64, 64, seed=9)), cross_attention_dim=32,
        attention_head_dim=8, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        conditioning_embedding_out_channels=(8, 8, 16), **_BLOCKS),
    row("dit", "transformer", "DiTTransformer2DModel", denoised(4, 8, 8, name="hidden_states", class_labels=lambda size:
        integers(10, BATCHES[size], seed=size)), num_attention_heads=2, attention_head_dim=16, num_layers=2,
        sample_size=8, in_channels=4, out_channels=8, num_embeds_ada_norm=10, norm_num_groups=8,
        skip={"training": "drops labels at random", "lengths": "drops labels", "autocast": "drops labels"}),
    row("pixart", "transformer", "PixArtTransformer2DModel", denoised(4, 8, 8, name="hidden_states",
        encoder_hidden_states=_text(8, 32)), num_attention_heads=2, attention_head_dim=16, num_layers=2,
        sample_size=8, cross_attention_dim=32, caption_channels=32, norm_num_groups=8,
        use_additional_conditions=False),
    row("flux", "transformer", "FluxTransformer2DModel", _flux, patch_size=1, in_channels=4, num_layers=1,
        num_single_layers=1, attention_head_dim=16, num_attention_heads=2, joint_attention_dim=32,
        pooled_projection_dim=32, axes_dims_rope=(4, 4, 8)),
    row("sd3", "transformer", "SD3Transformer2DModel", denoised(4, 8, 8, name="hidden_states",
        encoder_hidden_states=_text(8, 32), pooled_projections=lambda size: noise(BATCHES[size], 32, seed=3)),
        sample_size=8, in_channels=4, out_channels=4, num_layers=2, attention_head_dim=16, num_attention_heads=2,
        joint_attention_dim=32, caption_projection_dim=32, pooled_projection_dim=32, pos_embed_max_size=8),
    row("sana", "transformer", "SanaTransformer2DModel", denoised(4, 8, 8, name="hidden_states",
        encoder_hidden_states=_text(8, 32)), in_channels=4, out_channels=4, num_attention_heads=2,
        attention_head_dim=16, num_layers=2, num_cross_attention_heads=2, cross_attention_head_dim=16,
        cross_attention_dim=32, caption_channels=32, sample_size=8),
    row("wan", "video transformer", "WanTransformer3DModel", denoised(4, 2, 8, 8, name="hidden_states",
        encoder_hidden_states=_text(8, 32)), num_attention_heads=2, attention_head_dim=12, in_channels=4,
        out_channels=4, text_dim=32, freq_dim=32, ffn_dim=32, num_layers=2),
    row("vae", "autoencoder", "AutoencoderKL", numbers("sample", 0, 3, 16, 16), **_VAE),
    row("vae_tiny", "autoencoder", "AutoencoderTiny", numbers("sample", 0, 3, 32, 32),
        encoder_block_out_channels=(8, 8), decoder_block_out_channels=(8, 8), num_encoder_blocks=(1, 1),
        num_decoder_blocks=(1, 1)),
    row("vq", "autoencoder", "VQModel", numbers("sample", 0, 3, 16, 16), num_vq_embeddings=16, **_VAE),
)  # fmt: skip
