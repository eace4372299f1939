"""Models of torchvision: classification, segmentation, detection, video, optical flow."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from .base import BATCHES, Case, Inputs, Maker, Row, attribute, noise, numbers


def build(path: str, inputs: Maker, options: dict[str, Any]) -> Case:
    """A model of torchvision by the place of its function."""
    package, _, name = f"torchvision.models.{path}".rpartition(".")
    if name.islower():  # a function, not a class
        options = {"weights": None} | options
    return Case(attribute(package, name)(**options), inputs)


def row(name: str, family: str, path: str, inputs: Maker, skip: dict[str, str] | None = None, **options: Any) -> Row:
    """A row of the zoo."""
    return Row(f"tv_{name}", f"torchvision, {family}", "torchvision", partial(build, path, inputs, options), skip or {})


class Detector(nn.Module):
    """A detector of one image, whose list of images and targets becomes tensors; detections are those of all scores."""

    def __init__(self, detector: nn.Module) -> None:
        super().__init__()
        self.detector = detector

    def forward(self, image: torch.Tensor, boxes: torch.Tensor, labels: torch.Tensor) -> Any:
        """Losses in training, detections in evaluation."""
        if self.training:
            return self.detector([image], [{"boxes": boxes, "labels": labels}])
        return self.detector([image])


def _image(size: int) -> Inputs:
    width = (64, 80, 96)[size]
    boxes = torch.tensor([[4.0, 6.0, 40.0, 50.0], [20.0, 10.0, 60.0, 44.0]])
    return {"0": noise(3, 64, width, seed=size).sigmoid(), "1": boxes, "2": torch.tensor([1, 2])}


def detector(path: str, options: dict[str, Any]) -> Case:
    """A detector with images of 64 pixels, which draws no samples of boxes: all of them count in training."""
    case = build(f"detection.{path}", _image, {"weights_backbone": None} | options)
    return Case(Detector(case.module), _image)


def detection(name: str, path: str, **options: Any) -> Row:
    """A row of the zoo."""
    make: Callable[[], Case] = partial(detector, path, options)
    skip = {"training": "draws samples of boxes", "lengths": "draws samples", "autocast": "draws samples"}
    keep = name in ("retinanet", "fcos")
    return Row(f"tv_{name}", "torchvision, detection", "torchvision", make, {} if keep else skip)


_SMALL: dict[str, Any] = {"min_size": 64, "max_size": 96}
_IMAGES = numbers("0", 0, 3, 64, 64)
_NO_BACKBONE: dict[str, Any] = {"weights_backbone": None, "num_classes": 5}


def _flow(size: int) -> Inputs:
    return {"0": noise(BATCHES[size], 3, 128, 128, seed=size), "1": noise(BATCHES[size], 3, 128, 128, seed=size + 1),
            "2": 2}  # fmt: skip


ROWS: tuple[Row, ...] = (
    row("squeezenet", "classification", "squeezenet1_1", _IMAGES, num_classes=10),
    row("shufflenet", "classification", "shufflenet_v2_x0_5", _IMAGES, num_classes=10),
    row("alexnet", "classification", "alexnet", _IMAGES, num_classes=10),
    row("vit", "classification", "VisionTransformer", numbers("0", 0, 3, 32, 32), image_size=32, patch_size=8,
        num_layers=2, num_heads=4, hidden_dim=32, mlp_dim=64),
    row("swin_v2", "classification", "swin_transformer.SwinTransformer", numbers("0", 0, 3, 32, 32),
        patch_size=[4, 4], embed_dim=16, depths=[2, 1], num_heads=[2, 2], window_size=[4, 4],
        stochastic_depth_prob=0.0),
    row("fcn", "segmentation", "segmentation.fcn_resnet50", _IMAGES, **_NO_BACKBONE),
    row("lraspp", "segmentation", "segmentation.lraspp_mobilenet_v3_large", _IMAGES, **_NO_BACKBONE),
    row("deeplabv3", "segmentation", "segmentation.deeplabv3_mobilenet_v3_large", _IMAGES, **_NO_BACKBONE),
    detection("ssdlite", "ssdlite320_mobilenet_v3_large", num_classes=3),
    detection("fasterrcnn", "fasterrcnn_mobilenet_v3_large_320_fpn", num_classes=3, **_SMALL, rpn_pre_nms_top_n_test=32,
              box_detections_per_img=8),
    detection("retinanet", "retinanet_resnet50_fpn", num_classes=3, **_SMALL),
    detection("fcos", "fcos_resnet50_fpn", num_classes=3, **_SMALL),
    detection("maskrcnn", "maskrcnn_resnet50_fpn", num_classes=3, **_SMALL, rpn_pre_nms_top_n_test=32,
              box_detections_per_img=8),
    row("r3d", "video", "video.r3d_18", numbers("0", 0, 3, 4, 32, 32), num_classes=10),
    row("raft", "optical flow", "optical_flow.raft_small", _flow),
)  # fmt: skip
