"""Packages for GPUs that are not here: what the file holds, what it says of machines, and its program as objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.export import Dim, export

import inductile
from inductile.backends.c_like.cache import private_dir
from inductile.backends.graph_cache.frozen import program_of
from inductile.backends.host.executable import HostProgram
from inductile.backends.packages import load
from inductile.backends.packages.archive import Archive
from inductile.backends.packages.placing import placed
from inductile.backends.packages.plain import decode_program
from inductile.backends.triton.run_table import Resume
from inductile.errors import UserError

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="the program would be loaded on the GPU")


class Attending(torch.nn.Module):
    """Looks up tokens, whose numbers a kernel checks, and attends to them."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = torch.nn.Embedding(10, 64)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens).unflatten(-1, (4, 16)).transpose(1, 2)
        return torch.softmax(torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True), -1)


TOKENS = torch.arange(12).reshape(2, 6) % 10


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    exported = export(Attending(), (TOKENS,), dynamic_shapes=({1: Dim("length", min=2, max=100)},))
    path = tmp_path_factory.mktemp("packages") / "attending.pt2i"
    return inductile.package(exported, path, targets=["cuda:90", "cpp", "cuda:80"])


def test_a_machine_without_the_gpu_takes_the_program_for_its_processor(made: Path) -> None:
    package = inductile.load_package(made)
    assert package.target == "cpp"
    for tokens in (TOKENS, TOKENS[:, :4]):
        torch.testing.assert_close(package(tokens), Attending()(tokens))
    for target, problem in (("cuda:90", "is for cuda:90, which this machine has not"), ("hip:gfx942", "is not for")):
        with pytest.raises(UserError, match=problem):
            inductile.load_package(made, target=target)
    with pytest.raises(UserError, match="unknown target 'gpu'"):
        inductile.package(export(Attending(), (TOKENS,)), made, targets=["gpu"])


def test_devices_that_are_not_here(made: Path) -> None:
    assert inductile.load_package(made, device="cpu").target == "cpp"
    for device, problem in (
        ("cuda:7", "this machine has no cuda:7: it has 0 devices of the type cuda"),
        ("cuda", "this machine has no cuda"),
        ("gpu", "this torch knows no device 'gpu'"),
        ("meta", "is for cuda:90 or cpp or cuda:80, which meta is not"),
    ):
        with pytest.raises(UserError, match=problem):
            inductile.load_package(made, device=device)


def addresses(archive: Archive, part: dict[str, Any]) -> dict[str, int]:
    """Where the kernels for the processor are."""
    return {name: load._address(archive, member, symbol) for name, (member, symbol) in part["kernels"].items()}


def test_a_program_is_placed_on_another_device(made: Path) -> None:
    archive = Archive(made)
    part = archive.index["programs"][0]
    there, frozen = placed(part, decode_program(part["program"]), torch.device("cuda:1"))
    assert [each["device"] for each in there["inputs"]] == ["cuda:1"]
    assert there["devices"] == {"embedding.weight": "cuda:1"}
    found = program_of(frozen, addresses(archive, part), load._on_gpu(archive, part), private_dir)
    rows = [row for each in found.objects.values() if isinstance(each, Resume) for row in each.table.rows]
    assert rows and {row.kernel.device for row in rows} == {1}
    assert {each for each in found.objects.values() if isinstance(each, torch.device)} == {torch.device("cuda:1")}
    assert found.objects["index0"] == 1 and "current_stream(index0)" in found.source
    several = {**part, "devices": {"embedding.weight": "cuda:2"}}
    with pytest.raises(UserError, match="is for several devices, cuda:0, cuda:2"):
        placed(several, decode_program(part["program"]), torch.device("cuda:1"))


def program(made: Path, number: int) -> tuple[HostProgram, str]:
    """The program of the file with this number, as it is before its kernels are on a GPU, and its text."""
    archive = Archive(made)
    part = archive.index["programs"][number]
    on_gpu = load._on_gpu(archive, part)
    found = program_of(decode_program(part["program"]), addresses(archive, part), on_gpu, private_dir)
    return found, found.source


def test_its_program_is_made_of_what_the_file_holds(made: Path) -> None:
    archive = Archive(made)
    for number, folder in ((0, "cuda-90"), (2, "cuda-80")):
        part = archive.index["programs"][number]
        binaries = [binary for kernel in part["on_gpu"].values() for binary in kernel["binaries"]]
        assert binaries and all(archive.read(member)[:4] == b"\x7fELF" for *_, member, _ in binaries)
        assert b"@triton.jit" in bytes(archive.read(f"sources/{folder}/kernels.py"))
        found, source = program(made, number)
        runs = [each for each in found.objects.values() if isinstance(each, Resume)]
        assert runs and f"{len(runs[0].table.rows)}, stream" in source
        assert len(found.checks) == 1  # of the kernel that looks up tokens
        assert "_assert_tensor_metadata" not in source and "address0" in found.objects
        assert found.objects["address0"] in [run.table.address for run in runs]
    assert part["devices"] == {"embedding.weight": "cuda:0"}
