"""The compile cache, the compiler, and what happens without one."""

from __future__ import annotations

import errno
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from inductile.backends.c_like import cache, library, loaded, toolchain
from inductile.backends.c_like.library import compile_kernels
from inductile.backends.cpp.language import CPP
from inductile.backends.graph_cache import artifact, thaw
from inductile.errors import CompilerNotFoundError, UserError

from ...warm.python import python
from .programs import emit, run_kernel

SCALE = """
kernel.func @scale(%x: !kernel.buffer<f32, n>, %y: !kernel.buffer<f32, n>) symbols (n) {{
  kernel.for i0 in 0 to n map vector {{
    %c = arith.constant {} : f32
    %v = kernel.load %x[i0]
    %r = arith.mulf %v, %c : f32
    kernel.store %r, %y[i0]
    kernel.yield
  }}
  kernel.yield
}}"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache that this process knows nothing of."""
    monkeypatch.setenv("INDUCTILE_CACHE_DIR", str(tmp_path / "cache"))
    loaded.CHECKED.clear()
    yield tmp_path / "cache" / "cpp"


def check(factor: float) -> None:
    x = torch.randn(100)
    assert torch.equal(run_kernel(SCALE.format(factor), x, torch.empty(100), 100), x * factor)


def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> list[Path]:
        raise AssertionError("the compiler was called")

    monkeypatch.setattr(library, "compile_sources", refuse)


def test_second_compile_is_read_from_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(3.0)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert not list(folder.glob("build-*"))
    no_compiler(monkeypatch)
    check(3.0)
    with pytest.raises(AssertionError, match="the compiler was called"):
        check(4.0)


def test_comments_are_not_part_of_the_key(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = emit(SCALE.format(5.0))
    compile_kernels([source])
    no_compiler(monkeypatch)
    moved = library.KernelSource(
        CPP, source.name, "// other_file.py:77\n" + source.text, source.sections, source.parameter_types, source.errors
    )
    (loaded,) = compile_kernels([moved])
    assert loaded.source.text.startswith("// other_file.py:77")


@pytest.mark.parametrize("damage", ["truncated", "flipped", "missing", "entry"])
def test_damage_is_found_and_repaired(folder: Path, damage: str) -> None:
    check(6.0)
    (entry,) = (p for p in folder.glob("*.json") if "scale" in p.read_text())
    lib = folder / json.loads(entry.read_text())["library"]
    data = lib.read_bytes()
    if damage == "missing":
        lib.unlink()
    elif damage == "entry":
        entry.write_text('{"library": "x')
    else:
        # a new file: the old one is mapped into this process
        lib.unlink()
        lib.write_bytes(data[:1000] if damage == "truncated" else data[:5000] + bytes([data[5000] ^ 1]) + data[5001:])
    loaded.CHECKED.clear()
    with pytest.warns(UserWarning, match="is built anew"):
        check(6.0)
    loaded.CHECKED.clear()
    check(6.0)


@pytest.mark.parametrize("damaged", ["*.so", "*.json"])
def test_damage_that_may_not_be_removed_is_built_elsewhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch, damaged: str
) -> None:
    """As on a disk that is only read, where a private folder takes what is compiled."""
    check(26.0)
    for each in folder.glob(damaged):
        each.unlink()  # a new file: the old one is mapped into this process
        each.write_bytes(b"damaged")
    remove, make = Path.unlink, library.compile_sources

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path.parent == folder:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        remove(path, missing_ok)

    def refuse_to_build(compiler: toolchain.Compiler, texts: list[str], where: Path, processes: int) -> list[Path]:
        if where == folder:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return make(compiler, texts, where, processes)

    monkeypatch.setattr(Path, "unlink", refuse)
    monkeypatch.setattr(library, "compile_sources", refuse_to_build)
    loaded.CHECKED.clear()
    cache.forget_refusals()
    with pytest.warns(UserWarning) as told:
        check(26.0)
    texts = [str(each.message) for each in told]
    assert any("is built anew" in each for each in texts)
    assert any("Read-only file system" in each for each in texts)


@pytest.mark.parametrize("kept", [True, False])
def test_a_folder_that_somebody_has_removed_is_made_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    sources = [emit(SCALE.format(27.0 + k)) for k in range(2)]
    compile_kernels(sources[:1], keep=kept)
    folder_of = cache.cache_dir if kept else cache.private_dir
    shutil.rmtree(folder_of("cpp").parent)
    compile_kernels(sources, keep=kept)
    used = folder_of("cpp")
    assert not used.stat().st_mode & 0o022 and list(used.glob("*.so"))


def test_libraries_that_came_along_load_where_the_disk_takes_no_more(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(29.0)
    (entry,) = (p for p in folder.glob("*.json") if "scale" in p.read_text())
    record = json.loads(entry.read_text())
    code = (folder / record["library"]).read_bytes()
    packed = artifact.pack(b"graph", {entry.stem: record["symbol"]})
    entry.unlink()
    write = cache.write_entry

    def refuse(where: Path, *more: Any) -> None:
        if where == folder:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(where, *more)

    for module in (artifact, thaw):
        monkeypatch.setattr(module, "write_entry", refuse)
        cache.forget_refusals()
        with pytest.warns(UserWarning, match="what is compiled is not kept.*No space left"):
            if module is artifact:
                assert artifact.unpack(packed) == b"graph"
                continue
            kernel = SimpleNamespace(key=entry.stem, symbol=record["symbol"], library=record["library"])
            graph: Any = SimpleNamespace(
                kernels={"scale": kernel}, libraries={record["library"]: code}, processor=thaw.processor_digest()
            )
            no_compiler(monkeypatch)
            assert thaw.load_kernels(graph)["scale"]


def test_a_user_without_a_home_has_a_folder_among_the_temporary_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody(path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("INDUCTILE_CACHE_DIR", raising=False)
    monkeypatch.setattr(Path, "expanduser", nobody)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert cache.cache_dir("cpp") == tmp_path / f"inductile-user-{os.geteuid()}" / "cpp"


@pytest.mark.parametrize("damage", ["no library", "no symbol"])
def test_what_does_not_load_is_built_anew(folder: Path, damage: str) -> None:
    check(18.0)
    (entry,) = (p for p in folder.glob("*.json") if "scale" in p.read_text())
    record = json.loads(entry.read_text())
    if damage == "no library":
        data = b"whole, but no library of this machine"
        record["library"] = f"{cache.digest(data)}.so"
        (folder / record["library"]).write_bytes(data)
    else:
        record["symbol"] = "elsewhere__entry"
    entry.write_text(json.dumps(record))
    with pytest.warns(UserWarning, match="does not load" if damage == "no library" else "elsewhere__entry"):
        check(18.0)
    assert json.loads(entry.read_text())["symbol"] == "scale__entry"


def test_an_entry_that_names_another_kernel_is_damage(folder: Path) -> None:
    first, other = emit(SCALE.format(23.0)), emit(SCALE.format(24.0).replace("@scale", "@scald"))
    compile_kernels([first, other], processes=1)  # one library holds both
    (entry,) = (p for p in folder.glob("*.json") if "scale__entry" in p.read_text())
    entry.write_text(entry.read_text().replace("scale__entry", "scald__entry"))
    with pytest.warns(UserWarning, match="names 'scald__entry' instead of 'scale__entry'"):
        check(23.0)


@pytest.mark.parametrize("place", ["compile_sources", "store_library", "write_entry"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EFBIG, errno.EIO], ids=errno.errorcode.get)
def test_a_disk_that_takes_no_more(folder: Path, monkeypatch: pytest.MonkeyPatch, place: str, code: int) -> None:
    real = getattr(library, place)

    def refuse(*args: object) -> object:
        if any(isinstance(each, Path) and folder in (each, *each.parents) for each in args):
            raise OSError(code, os.strerror(code))
        return real(*args)

    monkeypatch.setattr(library, place, refuse)
    cache.forget_refusals()
    with pytest.warns(UserWarning, match=f"what is compiled is not kept.*{os.strerror(code)}") as caught:
        check(19.0)
        check(20.0)
    assert len(caught) == 1
    no_compiler(monkeypatch)
    check(19.0)  # found in the private folder
    assert not list(folder.glob("build-*"))


_LIMITED = """
import resource
import torch
import inductile
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
try:
    torch.compile(torch.sin, backend=inductile.backend())(torch.ones(3))
except Exception as error:
    print(error)
"""


@pytest.mark.parametrize("limit", [100, 6000], ids=["source", "library"])
def test_a_limit_of_file_sizes_is_one_message(tmp_path: Path, limit: int) -> None:
    folders = {"INDUCTILE_CACHE_DIR": str(tmp_path / "cache"), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "torch")}
    environment = {**os.environ, **folders, "PYTHONDONTWRITEBYTECODE": "1"}  # Python would leave torn ones
    command = [sys.executable, "-c", _LIMITED.format(limit=limit)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    told = [line for line in (ran.stdout + ran.stderr).splitlines() if "File too large" in line]
    assert len(told) == 1, ran.stdout + ran.stderr
    assert "what is compiled cannot be written, in" in told[0] and "ulimit -f" in told[0]


def test_a_folder_in_the_place_of_an_entry_is_told(folder: Path) -> None:
    check(21.0)
    (entry,) = (p for p in folder.glob("*.json") if "scale" in p.read_text())
    entry.unlink()
    entry.mkdir()
    cache.forget_refusals()
    with pytest.warns(UserWarning, match=f"what is compiled is not kept.*{os.strerror(errno.EISDIR)}"):
        check(21.0)
    check(21.0)


def test_an_entry_cannot_name_a_library_elsewhere(folder: Path, tmp_path: Path) -> None:
    check(7.0)
    (entry,) = (p for p in folder.glob("*.json") if "scale" in p.read_text())
    evil = tmp_path / "evil.so"
    evil.write_bytes(b"not code")
    entry.write_text(json.dumps({"library": f"../../{evil.name}", "symbol": "scale__entry"}))
    with pytest.warns(UserWarning, match="is built anew"):
        check(7.0)


def test_a_cache_that_others_may_write_is_closed_to_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "shared"
    root.mkdir(mode=0o777)
    root.chmod(0o777)
    monkeypatch.setenv("INDUCTILE_CACHE_DIR", str(root))
    cache.cache_dir("cpp")
    assert root.stat().st_mode & 0o022 == 0


def test_a_cache_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = tmp_path / "theirs"
    monkeypatch.setenv("INDUCTILE_CACHE_DIR", str(theirs))
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: 12345)
        with pytest.warns(UserWarning, match="belongs to another user") as told:
            folders = [cache.cache_dir(part) for part in ("cpp", "graphs", "cpp")]
    assert len(told) == 1 and not any(theirs in folder.parents for folder in folders)


def test_a_cache_on_a_disk_that_is_only_read_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others may write to the folder, and that cannot be changed."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    monkeypatch.setenv("INDUCTILE_CACHE_DIR", str(tmp_path / "shared"))

    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "chmod", refuse)
    with pytest.warns(UserWarning, match="Read-only file system"):
        assert tmp_path not in cache.cache_dir("cpp").parents


def test_a_folder_that_cannot_be_made_is_replaced_by_a_private_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("INDUCTILE_CACHE_DIR", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="no compile cache") as told:
        check(8.0)
        cache.cache_dir("graphs")
    assert len(told) == 1


_PROCESS = """
import sys, torch, warnings
warnings.simplefilter("error")
sys.path.insert(0, sys.argv[1])
from concurrent.futures import ThreadPoolExecutor
from xdsl.parser import Parser
from inductile.dialects.context import new_context
from inductile.backends.cpp.emit import emit_kernel
from inductile.backends.c_like.library import compile_kernels
text = sys.stdin.read()
def one(k):
    (function,) = Parser(new_context(), text.replace("FACTOR", f"{k}.5")).parse_module().ops
    return compile_kernels([emit_kernel(function)])[0].entry
with ThreadPoolExecutor(3) as pool:
    assert all(pool.map(one, [1, 2, 1, 2]))
print("done")
"""


def test_processes_and_threads_share_a_cache(folder: Path, tmp_path: Path) -> None:
    text = SCALE.format("FACTOR")
    environment = {**os.environ, "INDUCTILE_CACHE_DIR": str(folder.parent)}
    processes = [
        subprocess.Popen(
            [python(), "-c", _PROCESS, str(tmp_path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        )
        for _ in range(3)
    ]  # fmt: skip
    for process in processes:
        output, errors = process.communicate(text, timeout=300)
        assert output == "done\n", errors
    check(1.5)


def test_equal_kernels_are_compiled_once(folder: Path) -> None:
    same = [emit(SCALE.format(9.0)) for _ in range(3)]
    other = emit(SCALE.format(10.0))  # the same name, other code
    first, second, third, last = compile_kernels([*same, other])
    assert first.entry == second.entry == third.entry != last.entry


def test_no_compiler_names_the_package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(CompilerNotFoundError, match=r"install the package g\+\+"):
        check(11.0)


def test_cxx_is_honoured(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = toolchain.find_compiler(CPP).command[0]
    wrapper = tmp_path / "my compiler"
    wrapper.write_text(f'#!/bin/sh\ntouch "{tmp_path}/used"\nexec "{compiler}" "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("CXX", f'"{wrapper}" -DWITH_AN_OPTION')
    check(12.0)
    assert (tmp_path / "used").exists()
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(UserError, match="CXX names 'no-such-compiler'"):
        check(13.0)


def test_rejected_code_leaves_what_is_needed_to_repeat_it(folder: Path) -> None:
    broken = library.KernelSource(CPP, "broken", 'extern "C" int broken() { return nonsense; }', (), (), ())
    with pytest.raises(toolchain.KernelCompileError, match="nonsense") as caught:
        compile_kernels([broken])
    assert "nonsense" in Path(caught.value.source).read_text()
    assert caught.value.source in caught.value.command


def test_instruction_sets_are_those_of_torch(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compilers = []
    for capability in ("", "default", "avx2", "nonsense"):
        monkeypatch.setenv("ATEN_CPU_CAPABILITY", capability)
        compilers.append(toolchain.find_compiler(CPP))
    native, default, avx2, other = compilers
    assert native == other
    if platform.machine() in ("x86_64", "AMD64"):
        assert ("-mno-avx" in default.command, "-mno-avx512f" in avx2.command) == (True, True)
        assert len({c.identity for c in compilers}) == 3
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "default")
    check(22.0)


def _compiler(path: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo fake && exit\n{script}\n')
    path.chmod(0o755)
    monkeypatch.setenv("CXX", str(path))


def test_a_compiler_that_hangs_is_stopped(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _compiler(tmp_path / "hangs", "sleep 60; true", monkeypatch)  # a child of the compiler holds the pipe
    monkeypatch.setenv("INDUCTILE_COMPILE_TIMEOUT", "0.5")
    with pytest.raises(UserError, match=r"stopped after 0\.5 s.*INDUCTILE_COMPILE_TIMEOUT"):
        check(16.0)
    monkeypatch.setenv("INDUCTILE_COMPILE_TIMEOUT", "soon")
    with pytest.raises(UserError, match="INDUCTILE_COMPILE_TIMEOUT is 'soon'"):
        check(16.0)


@pytest.mark.parametrize("processes", [1, 2])
def test_an_interrupt_stops_the_compilers_and_leaves_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: int
) -> None:
    _compiler(tmp_path / "slow", f"touch {tmp_path}/started$$; exec sleep 60", monkeypatch)
    sources = [emit(SCALE.format(30.0 + k)) for k in range(3)]

    def interrupt() -> None:
        deadline = time.monotonic() + 60
        while len(list(tmp_path.glob("started*"))) < processes and time.monotonic() < deadline:
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            compile_kernels(sources, processes)
    finally:
        thread.join()
        signal.signal(signal.SIGINT, before)
    started = [int(path.name.removeprefix("started")) for path in tmp_path.glob("started*")]
    assert len(started) == processes
    assert [number for number in started if Path(f"/proc/{number}").exists()] == []
    assert not list(folder.iterdir())
    monkeypatch.delenv("CXX")
    check(30.0)


def test_a_compiler_has_its_files_where_the_library_will_lie(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What g++ writes for the assembler and the linker does not want room on the disk of TMPDIR."""
    program = toolchain.find_compiler(CPP).command[0]
    _compiler(tmp_path / "records", f'echo "$TMPDIR" > {tmp_path}/seen; exec {program} "$@"', monkeypatch)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "full"))
    check(22.0)
    assert Path((tmp_path / "seen").read_text().strip()).parent == folder


def test_what_killed_processes_left_is_removed(folder: Path) -> None:
    old = time.time() - 2 * 24 * 60 * 60
    folder.mkdir(parents=True)
    for name in ("build-old", "build-new"):
        (folder / name).mkdir()
        (folder / name / "kernels0.cpp").touch()
    for name in (".tmp-old", ".tmp-new", "other"):
        (folder / name).touch()
    for name in ("build-old", ".tmp-old", "other"):
        os.utime(folder / name, (old, old))
    check(21.0)
    assert {path.name for path in folder.iterdir() if path.suffix not in (".so", ".json")} == {
        "build-new", ".tmp-new", "other",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("script", "shown"),
    [
        ("printf 'caf\\351'; exit 1", r"caf\\xe9"),
        ("kill -SEGV $$", "ended by signal 11"),
        ("head -c 5000000 /dev/zero; exit 1", "\0"),
    ],
    ids=["no UTF-8", "signal", "megabytes"],
)
def test_a_compiler_that_fails_is_told_of(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, shown: str
) -> None:
    _compiler(tmp_path / "fails", script, monkeypatch)
    with pytest.raises(toolchain.KernelCompileError, match=shown) as caught:
        check(17.0)
    assert len(caught.value.messages) <= 4000


def test_a_fork_leaves_the_private_folder_to_its_parent() -> None:
    script = (
        "import os, sys\nfrom inductile.backends.c_like.cache import private_dir\nown = private_dir('cpp')\n"
        "if os.fork() == 0:\n    assert private_dir('cpp') != own\n    sys.exit()\n"
        "assert os.wait()[1] == 0\nassert own.is_dir()\nprint(own.parent)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not Path(done.stdout.strip()).exists()


def test_a_fork_without_a_cache_has_a_folder_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    script = (
        "import os, sys\nfrom inductile.backends.c_like.cache import cache_dir\nown = cache_dir('cpp')\n"
        "if os.fork() == 0:\n    assert cache_dir('cpp') != own\n    os._exit(0)\nassert os.wait()[1] == 0\n"
    )
    environment = {**os.environ, "INDUCTILE_CACHE_DIR": str(tmp_path / "file")}
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], env=environment, check=True)


def test_without_the_cache_nothing_is_kept(folder: Path) -> None:
    compile_kernels([emit(SCALE.format(14.0))], keep=False)
    assert not folder.exists()


def test_fewer_compilers_than_cores(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[int] = []
    compile_sources = library.compile_sources

    def count(compiler: toolchain.Compiler, sources: list[str], where: Path, processes: int) -> list[Path]:
        compiled.append(len(sources))
        return compile_sources(compiler, sources, where, processes)

    monkeypatch.setattr(library, "compile_sources", count)
    compile_kernels([emit(SCALE.format(15.0 + k).replace("@scale", f"@scale{k}")) for k in range(3)], processes=1)
    assert compiled == [1]


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="of x86")
def test_kernels_fill_the_registers_of_avx512(tmp_path: Path) -> None:
    """Also for Intel's processors, for which compilers use halves of them unless they are told."""
    source, text = tmp_path / "kernel.cpp", tmp_path / "kernel.s"
    source.write_text(library.source_text([emit(SCALE.format(2.0))]))
    compiler = toolchain.find_compiler(CPP)
    command = [word for word in compiler.command if word != "-shared"]
    subprocess.run([*command, "-march=sapphirerapids", "-S", str(source), "-o", str(text)], check=True)
    assert "%zmm" in text.read_text()


@pytest.mark.parametrize(
    ("line", "threads"),
    [
        ("g++ (Debian 12.2.0-14+deb12u1) 12.2.0", True),
        ("g++ (Ubuntu 13.3.0-6ubuntu2~24.04) 13.3.0", False),
        ("g++ (GCC) 14.2.1 20240912 (Red Hat 14.2.1-3)", False),
        ("Debian clang version 14.0.6", True),
    ],
)
def test_newer_gcc_threads_no_jumps(line: str, threads: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "compiler"
    program.write_text(f"#!/bin/sh\necho '{line}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("CXX", str(program))
    assert ("-fno-thread-jumps" not in toolchain.find_compiler(CPP).command) == threads
