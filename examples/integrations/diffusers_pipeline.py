"""diffusers: a class-to-image pipeline whose denoiser and decoder inductile compiles.

    python examples/integrations/diffusers_pipeline.py

Needs `pip install diffusers`. Weights are random and small, so that nothing is fetched; with those of
`DiTPipeline.from_pretrained(...)` the two `compile` lines are the same.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np
import torch
from diffusers import AutoencoderKL, DDIMScheduler, DiTPipeline, DiTTransformer2DModel

from inductile.backends.compiled import REPORTS


def pipeline_of(layers: int) -> DiTPipeline:
    """A diffusion transformer for 16x16 images of the thousand classes that the pipeline knows, with random weights."""
    torch.manual_seed(0)
    transformer = DiTTransformer2DModel(
        sample_size=8, patch_size=2, num_layers=layers, num_attention_heads=2, attention_head_dim=8, in_channels=4,
        out_channels=8, norm_type="ada_norm_zero", num_embeds_ada_norm=1000,
    )  # fmt: skip
    decoder = AutoencoderKL(
        block_out_channels=(16, 16), norm_num_groups=4, latent_channels=4, layers_per_block=1,
        down_block_types=("DownEncoderBlock2D", "DownEncoderBlock2D"),
        up_block_types=("UpDecoderBlock2D", "UpDecoderBlock2D"),
    )  # fmt: skip
    for parameter in transformer.parameters():  # those that start as zeros hide what is in front of them
        torch.nn.init.normal_(parameter, std=0.1)
    pipeline = DiTPipeline(transformer.eval(), decoder.eval(), DDIMScheduler())
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def image(pipeline: DiTPipeline, steps: int) -> np.ndarray:
    """The picture of a fixed seed, values from 0 to 1."""
    generator = torch.Generator().manual_seed(0)
    return pipeline([3], generator=generator, num_inference_steps=steps, output_type="np").images[0]


def main(argv: Sequence[str] | None = None) -> int:
    """Draw in eager and compiled; 1 where the pictures differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--layers", type=int, default=1)
    given = parser.parse_args(argv)
    pipeline = pipeline_of(given.layers)
    expected = image(pipeline, given.steps)
    before = len(REPORTS)
    pipeline.transformer.compile(backend="inductile")
    pipeline.vae.decoder.compile(backend="inductile")
    got = image(pipeline, given.steps)
    for report in list(REPORTS)[before:]:
        print(report)
    largest = float(np.abs(expected - got).max())
    print(f"largest difference of a channel: {largest:.1e}, the picture's spread is {expected.std():.3f}")
    return 0 if largest < 1e-3 and expected.std() > 1e-3 and len(REPORTS) > before else 1


if __name__ == "__main__":
    sys.exit(main())
