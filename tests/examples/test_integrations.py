"""The scripts in examples/integrations, at their smallest: each compares what is compiled with eager itself."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from ..scripts import load_example

FOLDER = Path(__file__).parents[2] / "examples" / "integrations"
#: script, its arguments, the packages that it needs
CASES: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "accelerate": ("accelerate_training", (), ("accelerate",)),
    "accelerate-regions": ("accelerate_training", ("--regions", "--precision", "bf16"), ("accelerate",)),
    "backends": ("choose_backend", ("--backends", "eager", "inductile", "--seconds", "0.01", "--backward"), ()),
    "diffusers": ("diffusers_pipeline", (), ("diffusers",)),
    "generate": ("transformers_generate", (), ("transformers",)),
    "lightning": ("lightning_training", (), ("lightning",)),
    "lightning-whole": ("lightning_training", ("--whole",), ("lightning",)),
    "lora": ("peft_lora", (), ("peft", "transformers")),
    "lora-checkpointing": ("peft_lora", ("--checkpointing",), ("peft", "transformers")),
    "paged-cache": ("paged_cache", (), ()),
    "torchao": ("torchao_quantised", (), ("torchao",)),
    "torchao-lora": ("torchao_lora", (), ("torchao", "peft", "transformers")),
    "timm": ("timm_training", (), ("timm",)),
    "trainer": ("transformers_trainer", (), ("transformers", "accelerate")),
}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Neither torch nor Accelerate, whose first use decides for the process, knows what another script set."""
    torch.compiler.reset()
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("ACCELERATE_")]:
            patch.delenv(name)
        yield
    torch.compiler.reset()
    if (state := sys.modules.get("accelerate.state")) is not None:
        state.AcceleratorState._reset_state(reset_partial_state=True)


def test_each_script_has_a_case() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == {script for script, _, _ in CASES.values()}


@pytest.mark.rotates(6)
@pytest.mark.parametrize("case", CASES)
def test_script(case: str, tmp_path: Path) -> None:
    script, arguments, packages = CASES[case]
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"`pip install {' '.join(missing)}` runs this example")
    with contextlib.chdir(tmp_path):
        assert load_example(f"integrations/{script}").main(arguments) == 0


def test_the_closed_list_is_closed_still() -> None:
    """Where Accelerate takes any name, the examples of it and of the Trainer become simpler."""
    utils = pytest.importorskip("accelerate.utils", reason="`pip install accelerate` runs this test")
    with pytest.raises(ValueError, match="INDUCTILE"):
        utils.TorchDynamoPlugin(backend="inductile")
