"""A test module of the shape of Inductor's, for the test of the harness: a template whose tests are copied."""

from __future__ import annotations

import os
import unittest
from typing import Any

import torch
import torch._dynamo
from torch._inductor.compile_fx import (
    compile_fx,
    name_of_another_version,  # pyright: ignore[reportAttributeAccessIssue]
)


def check_model(self: unittest.TestCase, model: Any, example_inputs: Any) -> None:
    called = False

    def compile_fx_wrapper(graph: Any, inputs: Any) -> Any:
        nonlocal called
        called = True
        return compile_fx(graph, inputs)

    expected = model(*[x.clone() for x in example_inputs])
    torch._dynamo.reset()
    actual = torch.compile(model, backend=compile_fx_wrapper, fullgraph=True)(*example_inputs)
    assert called
    torch.testing.assert_close(actual, expected)


#: what a test leaves behind that fails
LEFT: list[Any] = []


class CommonTemplate:
    common: Any
    device: str

    def test_sum(self) -> None:
        self.common(lambda x: (x * 2).sum(-1), (torch.randn(4, 5, device=self.device),))

    def test_default_backend(self) -> None:
        x = torch.randn(8, device=self.device)
        torch._dynamo.reset()
        torch.testing.assert_close(torch.compile(torch.sin)(x), x.sin())

    def test_wrong(self) -> None:
        LEFT.append(self)
        x = torch.randn(8, device=self.device)
        torch.testing.assert_close(torch.compile(lambda x: x + 1)(x), x)

    def test_metrics(self) -> None:
        from torch._inductor import metrics

        metrics.reset()
        self.common(lambda x: x.cos() + 1, (torch.randn(4, 5, device=self.device),))
        assert metrics.generated_kernel_count == 7

    def test_skips(self) -> None:
        raise unittest.SkipTest("needs another machine")

    def test_another_version(self) -> None:
        name_of_another_version(1)

    def test_zero_left(self) -> None:
        assert not LEFT

    def test_dies(self) -> None:
        if "SMALL_SUITE_DIES" in os.environ:
            os._exit(3)


class CpuTests(unittest.TestCase):
    common = check_model
    device = "cpu"


for _name, _test in list(vars(CommonTemplate).items()):
    if _name.startswith("test_"):
        setattr(CpuTests, f"{_name}_cpu", _test)
