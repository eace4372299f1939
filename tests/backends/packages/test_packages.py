"""A package does what the exported module does, or says in one message why not."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._higher_order_ops import scan, while_loop
from torch.export import Dim, export
from torch.utils._pytree import tree_leaves

import inductile
from inductile.backends.packages import archive, needs
from inductile.backends.packages.load import Package
from inductile.errors import UserError

AUTO: Any = getattr(Dim, "AUTO", None)


class Of(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


class Counting(torch.nn.Module):
    """Writes to a buffer, shares a weight, holds a constant, and returns a structure."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = torch.nn.Embedding(10, 8)
        self.out = torch.nn.Linear(8, 10, bias=False)
        self.out.weight = self.embedding.weight
        self.register_buffer("calls", torch.zeros(2))
        self.calls: torch.Tensor
        self.constant = torch.tensor([1.0, 2.0])

    def forward(self, x: torch.Tensor, scale: int = 3) -> dict[str, Any]:
        self.calls.add_(1)
        made = torch.softmax(self.out(self.embedding(x)), -1) * self.calls.sum() * scale + self.constant[1]
        return {"made": made, "size": x.shape[0], "none": None, "x": x.t()}


X = torch.arange(12).reshape(4, 3) % 10


@pytest.fixture(scope="module")
def counting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    exported = export(Counting(), (X,), dynamic_shapes={"x": {0: Dim("rows", min=2, max=100)}})
    return inductile.package(exported, tmp_path_factory.mktemp("packages") / "counting.pt2i")


def compare(package: Package, module: torch.nn.Module, *inputs: Any, **named: Any) -> None:
    """Results, their strides, and what is written are those of the module."""
    given, expected = ([x.clone() if isinstance(x, torch.Tensor) else x for x in inputs] for _ in range(2))
    results = package(*given, **named)
    with torch.no_grad():
        wanted = module(*expected, **named)
    for one, other in zip(tree_leaves((results, given)), tree_leaves((wanted, expected)), strict=True):
        if isinstance(one, torch.Tensor):
            torch.testing.assert_close(one, other, equal_nan=True)
            assert one.stride() == other.stride()
        else:
            assert one == other


def write(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.mul_(2)
    return y * x


def swap(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    kept = x.clone()
    x.copy_(y.t())
    y.copy_(kept)
    return x.sum()


@torch.compiler.nested_compile_region
def region(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x).sin() + x


def branches(x: torch.Tensor) -> Any:
    return torch.cond(x.sum() > 0, lambda a: region(region(a)), lambda a: a.cos(), (x,))


def rounds(x: torch.Tensor) -> Any:
    return while_loop(lambda n, a: n < 3, lambda n, a: (n + 1, a * 0.5 + a.sin()), (torch.tensor(0), x))


def rows(x: torch.Tensor) -> Any:
    return scan(lambda c, r: (c * 0.5 + r, (c + r).sin()), torch.zeros(4), x)


R = torch.linspace(-1, 1, 36)
CASES: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]], Any]] = {
    "divisible": (lambda x: x.view(-1, 4).sum(1), [(R[:8],), (R[:12],), (R,)], ({0: AUTO},)),
    "derived": (
        lambda x, y: x[::2] + y, [(R[:6], R[:3]), (R[:10], R[:5])], ({0: 2 * Dim("n")}, {0: Dim("n")}),
    ),
    "integer": (lambda x, n: x.new_zeros(n) + n, [(R, 5), (R, 9)], ({}, AUTO)),
    "compiled in": (lambda x, a, b, c, d: x * a if d else x, [(R, 2.5, "s", None, True)], None),
    "written": (write, [(R[:12].view(4, 3), R[:12].view(4, 3)), (R[:12].view(3, 4).t(), R[:12].view(4, 3))], None),
    "swapped": (swap, [(R[:9].view(3, 3), R[9:18].view(3, 3))], None),
    "conjugate": (lambda z: z * 2, [(torch.complex(R, R),), (torch.complex(R, R).conj(),)], None),
    "of data": (lambda x: x[x > 0].sum(), [(R,), (-R.abs(),)], None),
    "branches": (branches, [(R + 1,), (-R.abs(),), (R.abs(),)], ({0: AUTO},)),
    "rounds": (rounds, [(R,), (-R,)], None),
    "rows": (rows, [(R.view(9, 4),)], None),
    "no element": (lambda x: x * 2, [(R[:0].view(0, 3),)], None),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_programs(name: str, tmp_path: Path) -> None:
    function, calls, dynamic = CASES[name]
    module = Of(function)
    examples = tuple(x.clone() if isinstance(x, torch.Tensor) else x for x in calls[0])
    exported = export(module, examples, dynamic_shapes=None if dynamic is None else (dynamic,))
    package = inductile.load_package(inductile.package(exported, tmp_path / "made.pt2i"))
    for call in calls:
        compare(package, module, *call)


SCRIPT = """
import sys, torch
from torch._higher_order_ops import scan, while_loop

import inductile
package = inductile.load_package(sys.argv[1])
x = torch.arange(15).reshape(5, 3) % 10
results = package(x), package(x)
assert not {"torch._dynamo", "torch._inductor", "xdsl", "sympy", "triton"} & sys.modules.keys()
torch.save(results, sys.argv[2])
"""


@pytest.mark.parametrize("module", ["host.products", "triton.frozen"])
def test_what_programs_call_loads_no_compiler(module: str) -> None:
    """Loading it costs more than all else of a load."""
    script = f"import sys, inductile.backends.{module} as p; assert p and not {{'xdsl', 'sympy'}} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_no_compiler_no_dynamo_no_cache(counting: Path, tmp_path: Path) -> None:
    elsewhere = {"CXX": "/nonexistent", "PATH": "/nonexistent", "INDUCTILE_CACHE_DIR": "/nonexistent/cache"}
    script = [sys.executable, "-W", "error", "-c", SCRIPT, str(counting), str(tmp_path / "results")]
    done = subprocess.run(script, env=os.environ | elsewhere, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    module, x = Counting(), torch.arange(15).reshape(5, 3) % 10
    with torch.no_grad():
        torch.testing.assert_close(torch.load(tmp_path / "results"), (module(x), module(x)))


WRONG: dict[str, tuple[tuple[Any, ...], dict[str, Any], str]] = {
    "too few": ((X[:1],), {}, r"s\d+ is 1, the package takes 2 to 100"),
    "columns": ((X[:, :2],), {}, r"x is int64\[4, 2\], the package takes x: int64\[s\d+, 3\]"),
    "dtype": ((X.int(),), {}, r"x is int32\[4, 3\]"),
    "device": ((X.to("meta"),), {}, "on meta"),
    "no tensor": ((3,), {}, "x is a int"),
    "sparse": ((X.to_sparse(),), {}, "layout torch.sparse_coo"),
    "two": ((X, 3), {}, "2 positional inputs"),
    "unknown": ((X,), {"scales": 3}, "scales"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_inputs_are_told_of(counting: Path, name: str) -> None:
    args, kwargs, message = WRONG[name]
    with pytest.raises(UserError, match=message):
        inductile.load_package(counting)(*args, **kwargs)


def test_weights_apart(tmp_path: Path, counting: Path) -> None:
    module = Counting()
    apart = inductile.package(export(module, (X,)), tmp_path / "apart.pt2i", weights=False)
    inside, outside = (zipfile.ZipFile(path).getinfo(archive.WEIGHTS).file_size for path in (counting, apart))
    assert outside < inside  # of constants alone
    with pytest.raises(UserError, match="no weights inside"):
        inductile.load_package(apart)
    state = Counting().state_dict()
    with pytest.raises(UserError, match=r"calls is torch.float64\[2\]"):
        inductile.load_package(apart, weights={**state, "calls": torch.zeros(2, dtype=torch.float64)})
    package = inductile.load_package(apart, weights=state)
    compare(package, module, X)
    assert state["calls"].tolist() == [1, 1]  # they are the caller's


def test_weights_that_share_memory_share_it_again(counting: Path) -> None:
    state = inductile.load_package(counting).state_dict()
    assert state["embedding.weight"].data_ptr() == state["out.weight"].data_ptr()
    (described,) = (each for each in zipfile.ZipFile(counting).infolist() if each.filename == archive.WEIGHTS)
    assert described.file_size <= 10 * 8 * 4 + 2 * 2 * 4 + 3 * archive.ALIGNMENT


def test_damage_is_one_message(counting: Path, tmp_path: Path) -> None:
    """Anywhere: what is not found by digests is the room between members, or what nobody reads."""
    whole = counting.read_bytes()
    expected = inductile.load_package(counting)(X)
    damaged = tmp_path / "damaged.pt2i"
    found = 0
    for place in range(0, len(whole), max(len(whole) // 150, 1)):
        damaged.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        try:
            torch.testing.assert_close(inductile.load_package(damaged)(X), expected)
        except UserError as error:
            assert "is damaged" in str(error)
            found += 1
    assert found > 50
    for size in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        damaged.write_bytes(whole[:size])
        with pytest.raises(UserError, match="is damaged"):
            inductile.load_package(damaged)
    with pytest.raises(UserError, match="cannot be read"):
        inductile.load_package(tmp_path / "none.pt2i")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("runtime", "of tomorrow", "of other code"),
        ("torch", "2.9.0", "torch 2.9.0"),
        ("machine", "riscv64", "is for Linux on riscv64"),
        ("instructions", ["avx512_of_tomorrow"], "a processor with avx512_of_tomorrow"),
    ],
)
def test_what_a_package_needs(counting: Path, tmp_path: Path, name: str, value: Any, message: str) -> None:
    opened = archive.Archive(counting)
    members = {each: bytes(opened.read(each)) for each in opened.index["files"]}
    index = {**opened.index, "needs": {**opened.index["needs"], name: value}}
    archive.write_archive(tmp_path / "other.pt2i", index, members)
    with pytest.raises(UserError, match=message):
        inductile.load_package(tmp_path / "other.pt2i")


def test_classes_of_outputs_have_to_be_known(counting: Path, tmp_path: Path) -> None:
    opened = archive.Archive(counting)
    members = {each: bytes(opened.read(each)) for each in opened.index["files"]}
    index = {**opened.index, "returned": opened.index["returned"].replace("builtins.dict", "library.Output")}
    archive.write_archive(tmp_path / "other.pt2i", index, members)
    with pytest.raises(UserError, match=r"a class that is not known here: .*library[.]Output.*import the module"):
        inductile.load_package(tmp_path / "other.pt2i")


def test_a_program_keeps_its_types_under_autocast(tmp_path: Path) -> None:
    """Its operators would return bfloat16 otherwise, which kernels take for float32: they read and write too far."""
    module = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.GELU(), torch.nn.LayerNorm(64)).eval()
    x = torch.randn(6, 8)
    package = inductile.load_package(inductile.package(export(module, (x,)), tmp_path / "x.pt2i"))
    with torch.autocast("cpu", torch.bfloat16):
        got = package(x)
        assert torch.is_autocast_enabled("cpu")
    torch.testing.assert_close(got, module(x).detach())


def test_what_is_never_loaded() -> None:
    """The folder of the runtime that a package depends on has the files that it calls."""
    assert needs.runtime() == needs.runtime.__wrapped__()
    assert all((needs._ROOT / name).exists() for name in needs._CALLED)


def test_what_cannot_be_packaged(tmp_path: Path) -> None:
    exported = export(Of(lambda x: x * 2), (R,))
    with pytest.raises(UserError, match="freezing"):
        inductile.package(exported, tmp_path / "x.pt2i", options={"freezing": True})
    with pytest.raises(UserError, match="cannot have cudagraphs; give mode='max-autotune-no-cudagraphs'"):
        inductile.package(exported, tmp_path / "x.pt2i", mode="max-autotune")
    with pytest.raises(UserError, match="cannot be written"):
        inductile.package(exported, tmp_path / "none" / "x.pt2i")
    with pytest.raises(UserError, match="of an exported program, and not of a Of"):
        inductile.package(Of(torch.exp), tmp_path / "x.pt2i")  # pyright: ignore[reportArgumentType]
    with pytest.raises(UserError, match="unknown target 'gpu'"):
        inductile.package(exported, tmp_path / "x.pt2i", targets="gpu")


class _Tied(torch.nn.Module):
    """A buffer that is a row of a weight, and is written."""

    row: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4, 4))
        self.register_buffer("row", self.weight.detach()[0])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.row.add_(1)
        return x @ self.weight + self.row


def test_messages_use_the_names_of_users(tmp_path: Path) -> None:
    for size, said in ((2 * Dim("h"), r"2 \* h, and no size of an input is h"), (Dim("h") + 1, r"1 \+ h")):
        exported = export(Of(lambda x: x * 2), (R,), dynamic_shapes={"args": ({0: size},)})
        with pytest.raises(UserError, match=rf"dimension 0 of the input \w+ is {said}"):
            inductile.package(exported, tmp_path / "x.pt2i")
    with pytest.raises(UserError, match=r"share memory.*weight and row"):
        inductile.package(export(_Tied(), (torch.randn(2, 4),)), tmp_path / "x.pt2i")


def test_what_a_call_writes_is_apart_and_known_to_autograd(tmp_path: Path, counting: Path) -> None:
    exported = export(Of(write), (torch.randn(4, 3), torch.randn(4, 3)))
    package = inductile.load_package(inductile.package(exported, tmp_path / "write.pt2i"))
    whole, x = torch.ones(4, 6), torch.ones(4, 3)
    with pytest.raises(UserError, match="is written, and shares memory with"):
        package(x, x)
    with pytest.raises(UserError, match="is written, and shares memory with"):
        package(whole[:, :3], whole[:, 2:5])
    assert torch.equal(package(whole[:, :3], whole[:, 3:]), torch.full((4, 3), 2.0))  # beside each other is apart
    with pytest.raises(UserError, match="requires a gradient"):
        package(torch.ones(4, 3, requires_grad=True), x)
    w = torch.ones(4, 3, requires_grad=True)
    total = (x * w).sum()
    package(x, torch.ones(4, 3))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        total.backward()
    counter = inductile.load_package(counting)
    calls = counter.state_dict()["calls"]
    before = calls._version
    counter(X)
    assert calls._version > before
