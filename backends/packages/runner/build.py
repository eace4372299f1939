"""Building a runner: one call of the C++ compiler that makes kernels, with the headers and libraries of torch."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from pathlib import Path

import torch

from ....errors import UnsupportedError, UserError
from ....machines import in_host_memory, target_named
from ...c_like.toolchain import KernelCompileError, find_compiler
from ...cpp.language import CPP
from ..archive import Archive
from ..needs import check_needs
from .model import model_text

HERE = Path(__file__).parent
_FLAGS = ("-O2", "-std=c++20", "-fPIC", "-Wall", "-Wno-sign-compare")
_LIBRARIES = ("torch_cpu", "c10")


def folder_of(target: str) -> str:
    """Where the texts of a target lie in a package, below those of a processor."""
    return "" if in_host_memory(target_named(target).device) else f"{target.replace(':', '-')}/"


def runner_member(target: str) -> str:
    """The member of a package that has its program for a target as C++."""
    return f"sources/{folder_of(target)}runner.cpp"


def runner_source(path: Path, target: str | None = None) -> str:
    """The C++ text of a package's runner, for one of its targets or else the first that has one.

    Raises UserError for a package that has none, with the reason.
    """
    archive = Archive(path)
    check_needs(archive.index["needs"], path)
    parts = [each for each in archive.index["programs"] if target in (None, each["target"])]
    if not parts:
        known = ", ".join(each["target"] for each in archive.index["programs"])
        raise UserError(f"the package {path} is not for {target}", f"it is for {known}")
    part = next((each for each in parts if not each["runner"]), None)
    try:
        if part is None:
            raise UnsupportedError(parts[0]["runner"])
        return model_text(archive.index, part, bytes(archive.read(runner_member(part["target"]))).decode())
    except UnsupportedError as error:
        raise UserError(f"the package {path} cannot have a runner: {error}", "load it in Python") from error


def build_runner(path: Path, output: Path, library: bool = False, target: str | None = None) -> Path:
    """Compile a program that runs a package, or a library with the class `inductile::Model`; its path.

    Raises UserError for a package that has no runner, CompilerNotFoundError, and KernelCompileError where the compiler
    rejects it.
    """
    return compile_text(runner_source(path, target), output, library)


def compile_text(text: str, output: Path, library: bool = False) -> Path:
    """Compile C++ over libtorch that includes headers from here, to a program or a shared library; its path."""
    root = Path(torch.__file__).parent
    command = [find_compiler(CPP).command[0], *_FLAGS, f"-I{HERE}", f"-isystem{root / 'include'}"]
    command += [f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"]
    command += ["-shared", "-DINDUCTILE_LIBRARY"] if library else []
    libraries = [f"-L{root / 'lib'}", f"-Wl,-rpath,{root / 'lib'}", "-Wl,--no-as-needed"]
    libraries += [*(f"-l{name}" for name in _LIBRARIES), "-ldl"]
    with tempfile.TemporaryDirectory(prefix="inductile-") as folder:
        source = Path(folder) / "runner.cpp"
        source.write_text(text)
        words = [*command, str(source), "-o", str(output), *libraries]
        done = subprocess.run(words, capture_output=True, text=True, errors="backslashreplace")
    if done.returncode:
        raise KernelCompileError(str(source), shlex.join(words), done.stderr[:4000])
    return output
