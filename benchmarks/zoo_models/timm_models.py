"""Models of timm, one or two of each kind, as shallow and narrow as their options allow."""

from __future__ import annotations

from functools import partial
from typing import Any

from .base import Case, Row, attribute, numbers


def build(model: str, size: int, options: dict[str, Any]) -> Case:
    """A model of timm, by its name or as `module:Class`, without pretrained weights, with 10 classes."""
    given = {name: _resolved(value) for name, value in options.items()}
    module, _, made = model.partition(":")
    if made:
        built = attribute(f"timm.models.{module}", made)(num_classes=10, **given)
    else:
        built = attribute("timm", "create_model")(model, pretrained=False, num_classes=10, **given)
    return Case(built, numbers("0", 0, 3, size, size))


def _resolved(value: Any) -> Any:
    """The class that `module:Class` names."""
    module, _, name = value.partition(":") if isinstance(value, str) else ("", "", "")
    return attribute(f"timm.models.{module}", name) if name else value


def row(model: str, size: int = 64, name: str = "", **options: Any) -> Row:
    """A row of the zoo."""
    skip = options.pop("skip", {})
    return Row(f"timm_{name or model}", "timm", "timm", partial(build, model, size, options), skip)


_MIXER: dict[str, Any] = {"img_size": 64, "num_blocks": 2, "embed_dim": 32}
_FOUR: dict[str, Any] = {"depths": (1, 1, 1, 1)}

ROWS: tuple[Row, ...] = (
    row("test_byobnet"),
    row("test_convnext"),
    row("test_convnext2"),
    row("test_efficientnet"),
    row("test_efficientnet_evos"),
    row("test_efficientnet_gn"),
    row("test_efficientnet_ln"),
    row("test_mambaout"),
    row("test_nfnet"),
    row("test_resnet"),
    row("test_vit", img_size=64),
    row("test_vit2", img_size=64),
    row("test_vit3", img_size=64),
    row("test_vit4", img_size=64),
    row("resnet10t"),
    row("resnet14t"),
    row("resnetv2_18"),
    row("seresnet18"),
    row("resnetblur18"),
    row("ecaresnet26t", layers=(1, 1, 1, 1)),
    row("skresnet18", layers=(1, 1, 1, 1)),
    row("res2net50_14w_8s", layers=(1, 1, 1, 1)),
    row("resnest14d"),
    row("regnetx_002"),
    row("mobilenetv3_small_050"),
    row("mobilenetv2_035"),
    row("efficientnet_lite0"),
    row("lcnet_035"),
    row("ghostnet_050"),
    row("vgg:VGG", name="vgg", size=32, cfg=[8, "M", 16, "M", 32, 32, "M"]),
    row("densenet121", block_config=(2, 2, 2, 2)),
    row("dla34"),
    row("darknet17"),
    row("ese_vovnet19b_slim"),
    row("xception41", size=96, skip={"training": "over a hundred layers, which no option makes fewer"}),
    row("convmixer:ConvMixer", name="convmixer", dim=32, depth=2, kernel_size=5, patch_size=4),
    row("mlp_mixer:MlpMixer", name="mlp_mixer", **_MIXER),
    row("mlp_mixer:MlpMixer", name="gmlp", block_layer="mlp_mixer:SpatialGatingBlock", mlp_layer="mlp_mixer:GatedMlp",
        mlp_ratio=6, **_MIXER),
    row("mlp_mixer:MlpMixer", name="resmlp", block_layer="mlp_mixer:ResBlock", norm_layer="mlp_mixer:Affine",
        mlp_ratio=4, **_MIXER),
    row("deit_tiny_patch16_224", img_size=64, depth=2),
    row("deit3_small_patch16_224", img_size=64, depth=2, embed_dim=48, num_heads=3),
    row("beit_base_patch16_224", img_size=64, depth=2, embed_dim=48, num_heads=3),
    row("eva02_tiny_patch14_224", size=56, img_size=56, depth=2),
    row("cait_xxs24_224", img_size=64, depth=2, depth_token_only=1),
    row("xcit_nano_12_p16_224", img_size=64, depth=2),
    row("convit_tiny", img_size=64, depth=2, local_up_to_layer=1),
    row("crossvit_tiny_240", size=240, depth=((1, 1, 0), (1, 1, 0), (1, 1, 0))),
    row("levit_128s", size=224, depth=(1, 1, 1)),
    row("swin_tiny_patch4_window7_224", img_size=64, window_size=4, depths=(2, 1), num_heads=(2, 4), embed_dim=24),
    row("swinv2_tiny_window8_256", img_size=64, window_size=4, depths=(2, 1), num_heads=(2, 4), embed_dim=24),
    row("maxvit_pico_rw_256", img_size=64, depths=(1, 1), embed_dim=(32, 64)),
    row("coatnet_pico_rw_224", size=64, img_size=64, depths=(1, 1, 1, 1)),
    row("pvt_v2_b0", **_FOUR),
    row("twins_svt_small", img_size=224, size=224, depths=(1, 1, 1, 1)),
    row("metaformer:MetaFormer", name="metaformer", depths=(1, 1, 1, 1), dims=(16, 32, 48, 64)),
    row("edgenext_xx_small", **_FOUR),
    row("mobilevit_xxs"),
    row("visformer_tiny", img_size=64, depth=(1, 1, 1)),
    row("gcvit:GlobalContextVit", name="gcvit", size=224, img_size=224, depths=(1, 1, 1, 1), embed_dim=16,
        num_heads=(2, 2, 4, 4)),
    row("davit_tiny", depths=(1, 1, 1, 1), embed_dims=(24, 48, 96, 192)),
    row("hrnet_w18_small", skip={"training": "hundreds of layers", "dynamic": "hundreds of layers"}),
    row("fastvit_t8", layers=(1, 1, 1, 1)),
    row("starnet_s1", depths=(1, 1, 1, 1)),
    row("inception_next_atto", depths=(1, 1, 1, 1)),
)  # fmt: skip
