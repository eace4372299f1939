"""Weights that oneDNN arranges once, with `freezing`: right values, NaN, changes, sizes that vary, memory."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch
from torch import nn

import inductile
from inductile.backends.compiled import REPORTS
from inductile.backends.host.kept import KeptResults
from inductile.lowering.fx_packed_weights import packed_elements
from inductile.machines.libraries import MKL

OPTIONS: dict[str, Any] = {"freezing": True, "products": "onednn"}
DTYPES = [
    pytest.param(dtype, marks=pytest.mark.skipif(name not in packed_elements(), reason="oneDNN does not pack it here"))
    for name, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16))
]


class Block(nn.Module):
    """Convolutions with what stands behind them in published models."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(8, 32, 3, padding=1, bias=False)
        self.deep = nn.Conv2d(32, 32, 3, padding=1, groups=32)
        self.norm = nn.BatchNorm2d(32)
        self.last = nn.Conv2d(32, 32, 3, padding=2, dilation=2)
        self.norm.get_buffer("running_var").uniform_(0.5, 1.5)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = nn.functional.hardswish(self.first(x))
        y = nn.functional.silu(self.norm(self.deep(x)))
        y = self.last(y) + x
        return torch.relu(self.last(y)), y


def _exact(model: nn.Module, x: torch.Tensor) -> Any:
    dtype = x.dtype
    found = model.double()(x.double())
    model.to(dtype)
    return found


def _compare(found: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor) -> None:
    """Not more than twice as far from float64 as eager is, and some roundings."""
    least = 4 * torch.finfo(eager.dtype).eps * float(exact.abs().max())
    assert float((found - exact).abs().max()) <= 2 * float((eager - exact).abs().max()) + least
    assert found.stride() == eager.stride()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("options", [{}, {"patterns": "all"}, {"emulate_precision_casts": True}])
def test_convolutions(dtype: torch.dtype, options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    torch.compiler.reset()
    model = Block().eval().to(dtype)
    compiled = torch.compile(model, backend="inductile", options=OPTIONS | options)
    with torch.no_grad():
        for shape in ((1, 8, 17, 13), (3, 8, 9, 9)):
            x = torch.randn(shape).to(dtype)
            for found, eager, exact in zip(compiled(x), model(x), _exact(model, x), strict=True):
                _compare(found, eager, exact)
        (report,) = inductile.explain(model, options=OPTIONS | options)(x).reports
    assert report.aten_calls["inductile::packed_convolution"] == 3
    assert report.once["inductile::packed_filter"] == 3


_OTHER_DIMENSIONS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "lines": (lambda: (nn.Conv1d(24, 40, 5, padding=2, stride=2), nn.Conv1d(40, 32, 3, dilation=3)), (3, 24, 61)),
    "volumes": (lambda: (nn.Conv3d(8, 24, 3, padding=1), nn.Conv3d(24, 16, (1, 2, 3), stride=2)), (2, 8, 5, 9, 11)),
    "transposed": (lambda: (nn.ConvTranspose2d(16, 24, 4, stride=2, padding=1),
                            nn.ConvTranspose2d(24, 32, 3, stride=2, output_padding=1, groups=4)), (2, 16, 9, 7)),
    "transposed lines": (lambda: (nn.ConvTranspose1d(16, 24, 8, stride=4), nn.Conv1d(24, 24, 3)), (2, 16, 21)),
    "transposed volumes": (lambda: (nn.ConvTranspose3d(8, 16, 2, stride=2, bias=False), nn.Conv3d(16, 8, 2)),
                           (1, 8, 3, 4, 5)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", _OTHER_DIMENSIONS)
def test_convolutions_of_other_dimensions(dtype: torch.dtype, case: str) -> None:
    torch.manual_seed(0)
    make, shape = _OTHER_DIMENSIONS[case]
    first, last = make()
    model = nn.Sequential(first, nn.SiLU(), last).eval().to(dtype)
    compiled = _compiled(model)
    with torch.no_grad():
        for size in (shape, (shape[0] + 1, *shape[1:-1], shape[-1] + 2)):
            x = torch.randn(size).to(dtype)
            _compare(compiled(x), model(x), _exact(model, x))
        (report,) = inductile.explain(model, options=OPTIONS)(torch.randn(shape).to(dtype)).reports
    assert report.aten_calls["inductile::packed_convolution"] == 2


class Residuals(nn.Module):
    """Sums that follow each other; the first one is of an argument, and the third of what is returned."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(16, 16, 3, padding=1) for _ in range(4))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        first, second, third, fourth = self.layers
        y = first(x) + x
        z = third(second(y) * 2) + y
        return fourth(z * 2) + z, z


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_residual_that_dies_is_where_the_sum_is_put(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    model = Residuals().eval().to(dtype)
    x = torch.randn(2, 16, 9, 7).to(dtype).to(memory_format=torch.channels_last)
    before = x.clone()
    compiled = _compiled(model)
    with torch.no_grad():
        for _ in range(2):
            for found, eager, exact in zip(compiled(x), model(x), _exact(model, x), strict=True):
                _compare(found, eager, exact)
        assert torch.equal(x, before)
        (report,) = inductile.explain(model, options=OPTIONS)(x).reports
    assert report.aten_calls["inductile::packed_convolution_"] == 1
    assert report.aten_calls["inductile::packed_convolution"] == 3


def test_nan_stays_behind_relu() -> None:
    model = nn.Sequential(nn.Conv2d(8, 32, 3), nn.ReLU()).eval()
    x = torch.randn(2, 8, 9, 9)
    x[0, 0, 4, 4] = torch.nan
    with torch.no_grad():
        eager = model(x)
        assert eager.isnan().any()
        torch.testing.assert_close(_compiled(model)(x), eager, equal_nan=True)


def _compiled(model: nn.Module) -> Any:
    torch.compiler.reset()
    return torch.compile(model, backend="inductile", options=OPTIONS)


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_of_any_rows_and_of_weights_that_change(dtype: torch.dtype) -> None:
    model = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256, bias=False)).eval().to(dtype)
    compiled = torch.compile(model, backend="inductile", options=OPTIONS, dynamic=True)
    with torch.no_grad():
        for rows in (64, 33, 2, 64):
            x = torch.randn(rows, 256).to(dtype)
            _compare(compiled(x), model(x), _exact(model, x))
        before = compiled(x)
        model.get_parameter("0.weight").mul_(2)
        assert not torch.equal(compiled(x), before)
        _compare(compiled(x), model(x), _exact(model, x))


def test_what_is_kept_is_the_packed_weight_alone() -> None:
    class Normalised(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(1024, 1024))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ (self.weight / self.weight.norm(dim=1, keepdim=True)).t()

    model, x = Normalised().eval(), torch.randn(64, 1024)
    gc.collect()
    others = {id(each) for each in gc.get_objects() if type(each) is KeptResults}
    compiled = _compiled(model)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), model(x))
    (kept,) = (each for each in gc.get_objects() if type(each) is KeptResults and id(each) not in others)
    assert kept.bytes_kept == 4 << 20


def test_it_is_an_option() -> None:
    model, x = nn.Linear(1024, 1024).eval(), torch.randn(64, 1024)
    with torch.no_grad():
        (report,) = inductile.explain(model, options=OPTIONS | {"packed_weights": "never"})(x).reports
    assert "inductile::packed_product" not in report.aten_calls


@pytest.mark.parametrize("dtype", DTYPES)
def test_equal_layers_are_compiled_once_with_packed_weights(dtype: torch.dtype) -> None:
    layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True, activation="gelu")
    model = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).eval().to(dtype)
    for weight in model.parameters():
        weight.data += 0.02 * torch.randn_like(weight)  # the layers are copies
    x = torch.randn(2, 64, 256).to(dtype)
    with torch.no_grad():
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            (report,) = inductile.explain(model, options=OPTIONS)(x).reports
            _compare(_compiled(model)(x), model(x), _exact(model, x))
        finally:
            torch.backends.mha.set_fastpath_enabled(True)
    assert report.aten_calls["inductile::packed_product"] == 16


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("made", [{}, {"bidirectional": True, "batch_first": True}, {"bias": False, "num_layers": 1}])
@torch._dynamo.config.patch(allow_rnn=True)
def test_layers_of_an_lstm(dtype: torch.dtype, made: dict[str, Any]) -> None:
    model = nn.LSTM(24, 40, **{"num_layers": 2, **made}).eval().to(dtype)
    layers = model.num_layers * (1 + model.bidirectional)
    compiled = _compiled(model)
    with torch.no_grad():
        for states in (False, True):
            x, state = torch.randn(5, 7, 24).to(dtype), torch.randn(layers, 5 if model.batch_first else 7, 40).to(dtype)
            given = ((state, state.cos()),) if states else ()
            found, eager = compiled(x, *given), model(x, *given)
            for ours, theirs in zip((found[0], *found[1]), (eager[0], *eager[1]), strict=True):
                torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
                assert ours.stride() == theirs.stride()
        before = compiled(x)[0]
        model.get_parameter("weight_hh_l0").mul_(2)
        assert not torch.equal(compiled(x)[0], before)
        assert torch.equal(compiled(x)[0], model(x)[0])
        (report,) = inductile.explain(model, options=OPTIONS)(x).reports
    assert report.aten_calls["inductile::packed_lstm"] == layers
    assert report.once["inductile::packed_recurrent_matrices"] == layers


@pytest.mark.skipif(MKL not in packed_elements(), reason="this torch has no MKL that packs")
def test_mkl_arranges_matrices_of_a_number_of_rows() -> None:
    """Bit for bit eager's, also when the weight has changed; other rows are the BLAS's as they are."""
    torch.manual_seed(0)
    torch.compiler.reset()
    model = nn.Sequential(nn.Linear(512, 2048), nn.Tanh(), nn.Linear(2048, 512, bias=False)).eval()
    run = torch.compile(model, backend="inductile", options={"freezing": True, "products": "blas"}, dynamic=False)
    for rows, call in ((64, "inductile::mkl_product"), (48, "inductile::mkl_product")):
        x = torch.randn(rows, 512)
        with torch.no_grad():
            for _ in range(2):
                torch.testing.assert_close(run(x), model(x), rtol=1e-6, atol=1e-6)
                model.get_parameter("0.weight").mul_(1.5)
        assert REPORTS[-1].aten_calls == {call: 2}
    torch.compiler.reset()
    run = torch.compile(model, backend="inductile", options={"freezing": True, "products": "blas"}, dynamic=True)
    with torch.no_grad():
        torch.testing.assert_close(run(x), model(x), rtol=1e-6, atol=1e-6)
    assert REPORTS[-1].aten_calls == {"aten.addmm": 1, "aten.mm": 1}


@pytest.mark.skipif("bf16" not in packed_elements(), reason="oneDNN does not pack it here")
@pytest.mark.parametrize("has_units", [False, True])
def test_one_row_is_the_librarys_where_the_processor_has_matrix_units(
    has_units: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: has_units)
    torch.manual_seed(0)
    model = nn.Linear(512, 1024).eval().bfloat16()
    x = torch.randn(1, 512).bfloat16()
    with torch.no_grad():
        _compare(_compiled(model)(x), model(x), _exact(model, x))
        (report,) = inductile.explain(model, options=OPTIONS)(x).reports
    assert ("inductile::packed_product" in report.aten_calls) == has_units


class Rectified(nn.Module):
    """Convolutions with relu, alone and behind sums, and a gate."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(8, 32, 3, padding=1)
        self.layers = nn.ModuleList(nn.Conv2d(32, 32, 3, padding=1) for _ in range(4))
        self.squeeze, self.excite = nn.Conv2d(32, 8, 1), nn.Conv2d(8, 32, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.first(x))
        for layer in self.layers:
            y = torch.relu(layer(x))
            gate = torch.sigmoid(self.excite(torch.relu(self.squeeze(y.mean((2, 3), keepdim=True)))))
            x = torch.relu(layer(y * gate) + x)
        return x


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [0.0, torch.nan, torch.inf, -torch.inf, 1e30])
def test_relu_of_the_library_is_eagers(dtype: torch.dtype, value: float) -> None:
    """What is measured of an image says whether the library may rectify: NaN and infinity are where eager has them."""
    torch.manual_seed(0)
    model = Rectified().eval().to(dtype)
    x = torch.randn(2, 8, 14, 14)
    x[1, 3, 5, 5] = value
    x = x.to(dtype)
    compiled = _compiled(model)
    with torch.no_grad():
        eager, found = model(x), compiled(x)
        (report,) = inductile.explain(model, options=OPTIONS)(x).reports
    assert torch.equal(found.isnan(), eager.isnan())
    assert torch.equal(found.isinf(), eager.isinf())
    for mine, theirs in zip(found, eager, strict=True):
        finite = theirs[theirs.isfinite()]
        if finite.numel():
            most = 8 * torch.finfo(dtype).eps * float(finite.abs().max())
            torch.testing.assert_close(mine[theirs.isfinite()], finite, rtol=0, atol=most)
    assert report.once["inductile::finite_limit"] >= 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_weights_decide_whether_sums_are_finite(dtype: torch.dtype) -> None:
    """Sums that overflow to infinities of both signs are NaN behind the next layer, though the image is small."""
    model = nn.Sequential(nn.Conv2d(8, 32, 3), nn.ReLU(), nn.Conv2d(32, 32, 3), nn.ReLU()).eval().to(dtype)
    x = torch.ones(1, 8, 9, 9, dtype=dtype)
    compiled = _compiled(model)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), model(x))
        model[0].get_parameter("weight").fill_(3e38)
        eager = model(x)
        assert eager.isnan().any()
        torch.testing.assert_close(compiled(x), eager, equal_nan=True)
        model[2].get_parameter("weight").fill_(torch.nan)
        assert compiled(x).isnan().all()
