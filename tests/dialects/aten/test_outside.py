"""Every operator that the installed torch registers is classified: what a file may call, and what it may not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from inductile.dialects.aten.outside import computes


def test_every_operator_of_torch_is_classified() -> None:
    script = Path(__file__).with_name("registry_audit.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    "name",
    [
        "aten::from_file", "aten::save", "aten::_print", "aten::set_.source_Tensor", "aten::resize_",
        "aten::_sparse_coo_tensor_unsafe", "aten::_reshape_alias", "aten::backward", "c10d::broadcast_",
        "image::read_file", "debugprims::load_tensor", "higher_order::print", "higher_order::call_torchbind",
        "higher_order::triton_kernel_wrapper_mutation", "mylib::f", "aten::quantized_lstm.input",
        "aten::align_to.ellipsis_idx", "aten::all.dimname", "aten::_sparse_softmax.Dimname", "aten::empty.names",
        "aten::sum.dim_DimnameList", "aten::flatten.using_names", "aten::std_mean.correction_names_out",
    ],
)  # fmt: skip
def test_what_reaches_outside_is_not_called(name: str) -> None:
    assert not computes(name)


@pytest.mark.parametrize("name", ["aten::add.Tensor", "prims::mul", "math::sqrt", "higher_order::cond"])
def test_what_computes_is_called(name: str) -> None:
    assert computes(name)
