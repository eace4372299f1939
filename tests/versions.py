"""Versions of what is installed, for what a test expects of torch or Triton themselves."""

from __future__ import annotations


def numbers(version: str) -> tuple[int, int]:
    """Major and minor of `2.11.0a0+git`."""
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def torch_version() -> tuple[int, int]:
    """That of torch."""
    import torch

    return numbers(torch.__version__)


def triton_version() -> tuple[int, int]:
    """That of Triton."""
    import triton

    return numbers(triton.__version__)
