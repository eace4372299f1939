"""Files of the cache: what is damaged or somebody else's costs a warning and a compile; what travels arrives."""

from __future__ import annotations

import errno
import linecache
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._dynamo.utils import counters
from torch._inductor import config as inductor_config
from torch._subclasses import FakeTensorMode
from torch.compiler import config as compiler_config

from inductile.backends import host
from inductile.backends.c_like.cache import forget_refusals
from inductile.backends.config import Config
from inductile.backends.graph_cache import front, frozen, pickling, store, thaw
from inductile.backends.graph_cache.store import Store
from inductile.backends.graph_report import REPORTS
from inductile.backends.host.executable import HostProgram
from inductile.passes.remarks import collecting

from .harness import run

X = torch.arange(12.0).reshape(3, 4) / 7 - 0.5


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("INDUCTILE_GRAPH_CACHE", "1")
    monkeypatch.setattr(front, "own_store", lambda: Store(tmp_path))
    store._warn.cache_clear()
    yield tmp_path
    store._warn.cache_clear()


def double(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) * 2


class Harm:
    """What must not be unpickled."""

    def __reduce__(self) -> tuple[object, ...]:
        return pytest.fail, ("it was unpickled",)


def entries(folder: Path) -> list[Path]:
    return list(folder.glob("inductile-*/*"))


def test_damage_is_one_warning_and_a_compile(folder: Path) -> None:
    assert run(double, X) == "miss"
    (entry,) = entries(folder)
    entry.write_bytes(entry.read_bytes()[:-7])
    with pytest.warns(UserWarning, match="damaged") as told:
        assert run(double, X) == "miss"
    assert len(told) == 1
    (entry,) = entries(folder)
    entry.unlink()
    Store(folder).write(entry.parent.name, pickle.dumps("no entry"))
    with pytest.warns(UserWarning, match="AttributeError"):
        assert run(double, X) == "miss"
    assert run(double, X) == "hit"


def test_a_folder_in_the_place_of_an_entry_is_told(folder: Path) -> None:
    assert run(double, X) == "miss"
    (entry,) = entries(folder)
    entry.unlink()
    entry.mkdir()
    forget_refusals()
    with pytest.warns(UserWarning) as told:
        assert run(double, X) == "miss"
    assert any("it is no file" in str(each.message) for each in told)
    forget_refusals()


def test_what_others_may_write_is_not_read(folder: Path) -> None:
    assert run(double, X) == "miss"
    (entry,) = entries(folder)
    content = pickle.dumps(Harm())
    key = entry.parent.name
    entry.unlink()
    Store(folder).write(key, content)
    (planted,) = entries(folder)
    planted.chmod(0o666)
    with pytest.warns(UserWarning, match="others may write"):
        assert run(double, X) == "miss"
    planted.chmod(0o600)
    planted.parent.chmod(0o777)
    with pytest.warns(UserWarning, match="others may write"):
        assert run(double, X) == "miss"
    planted.parent.chmod(0o700)
    planted.chmod(0o600)
    if os.geteuid() == 0:  # nobody else can give files away
        os.chown(planted, 12345, -1)
        for other in set(entries(folder)) - {planted}:
            other.unlink()
        store._warn.cache_clear()
        with pytest.warns(UserWarning, match="another user"):
            assert run(double, X) == "miss"


def test_switches() -> None:
    assert run(double, X) == ""  # as all other tests run
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INDUCTILE_GRAPH_CACHE", "1")
        assert run(double, X, cache_graphs=False) == ""
        assert run(double, X, cache=False) == ""
        assert run(double, X, verify_each="ir") == "bypass"
        with inductor_config.patch(fx_graph_cache=False):  # pyright: ignore[reportAttributeAccessIssue]
            assert run(double, X) == ""
        with compiler_config.patch(force_disable_caches=True):  # pyright: ignore[reportAttributeAccessIssue]
            assert run(double, X) == ""


def test_who_collects_remarks_gets_them(folder: Path) -> None:
    assert run(double, X) == "miss"
    with collecting() as remarks:
        run(double, X)
    told = [remark.reason for remark in remarks if remark.pass_name == front.PASS]
    assert told == ["the cache has this graph; it is compiled again, for the remarks of passes"]
    assert len(remarks) > 1
    assert run(double, X) == "hit" and REPORTS[-1].is_loaded and "loaded from the cache" in str(REPORTS[-1])
    assert REPORTS[-1].kernels and "kernels.cpp" in REPORTS[-1].sources


def test_what_a_hit_counts_is_what_a_miss_counts(folder: Path) -> None:
    found: list[dict[str, int]] = []
    for expected in ("miss", "hit"):
        assert run(double, X.clone().requires_grad_()) == expected
        found.append({name: times for name, times in counters["inductile"].items() if "cache" not in name})
    assert found[0] == found[1] and found[0]["kernels"]


def test_lines_of_a_loaded_program_are_shown(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its code comes from the entry, and names the file of this process."""
    programs: list[HostProgram] = []
    make = frozen.program_of
    monkeypatch.setattr(thaw, "program_of", lambda *rest: programs.append(make(*rest)) or programs[-1])
    assert (run(double, X), run(double, X)) == ("miss", "hit")
    (program,) = programs
    code = program.run.__code__
    assert code.co_filename == program.code.co_filename
    assert linecache.getlines(code.co_filename)[code.co_firstlineno - 1].startswith("def run(")


def test_what_torch_runs_is_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ValueError("on purpose")

    torch.compiler.reset()
    counters.clear()
    monkeypatch.setattr(host, "build", fail)
    with pytest.warns(UserWarning, match="on purpose"):
        compiled = torch.compile(double, backend="inductile", options={"on_error": "eager"})
        torch.testing.assert_close(compiled(X), double(X))
    assert counters["inductile"]["not cached: torch runs a part of it in eager"] == 1
    assert not entries(folder)


def test_tensors_on_other_devices_are_told_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeTensorMode(allow_non_fake_inputs=True):
        inputs = [torch.empty(3, device="cpu"), torch.empty(3, device="cuda"), torch.empty(3, device="xpu")]
    monkeypatch.setenv("INDUCTILE_GRAPH_CACHE", "1")
    assert front.not_described(inputs[:2]) == ""
    assert front.not_described(inputs) == "inputs are on xpu"
    sessions: list[Any] = []

    def compile_afresh(*rest: Any) -> Any:
        sessions.append(rest[-1])
        return len

    with collecting() as remarks, monkeypatch.context() as patch:
        patch.setattr(front, "why_not", lambda _: "")
        front.through_cache(torch.fx.GraphModule({}, torch.fx.Graph()), inputs, Config(), compile_afresh)
    assert sessions == [None]
    assert [remark.reason for remark in remarks] == ["the graph is not cached: inputs are on xpu"]


@pytest.mark.parametrize("refusal", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_disk_that_takes_nothing_is_one_warning(folder: Path, monkeypatch: pytest.MonkeyPatch, refusal: int) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(refusal, os.strerror(refusal))

    monkeypatch.setattr(store, "write_atomically", refuse)
    forget_refusals()
    with pytest.warns(UserWarning, match="not kept") as told:
        assert run(double, X) == "miss"
        assert run(double, X) == "miss"
    assert len(told) == 1
    forget_refusals()


def test_old_entries_and_those_beyond_the_limit_go(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = Store(folder)
    for age, key in enumerate(("new", "used", "big", "old")):
        own.write(key, key.encode() * 10)
        (path,) = (folder / key).iterdir()
        last_read = time.time() - age * 86400
        os.utime(path, (last_read, last_read))
    store.clean(folder, 1 << 20, time.time() - 2.5 * 86400)
    assert sorted(each.name for each in folder.iterdir() if each.is_dir()) == ["big", "new", "used"]
    assert [content for _, content in own.contents("big")] == [b"big" * 10]  # which makes it the one last read
    store.clean(folder, 100, 0.0)
    assert sorted(each.name for each in folder.iterdir() if each.is_dir()) == ["big", "new"]
    monkeypatch.setenv(store.LIMIT, "1")
    store.clean_daily.cache_clear()
    (folder / ".cleaned").unlink()
    own.write("one", b"more")
    assert not [each for each in folder.iterdir() if each.is_dir()]
    own.write("one", b"more")
    assert [content for _, content in own.contents("one")] == [b"more"]


SCRIPT = """
import sys, warnings, torch
from pathlib import Path
from torch._dynamo.utils import counters
warnings.simplefilter("error")
torch.compiler.load_cache_artifacts(Path(sys.argv[1]).read_bytes())
x = torch.arange(12.0).reshape(3, 4) / 7 - 0.5
def double(x):
    return torch.relu(x) * 2
compiled = torch.compile(double, backend="inductile")
torch.testing.assert_close(compiled(x), double(x))
y = x.clone().requires_grad_()
compiled(y).sum().backward()
torch.testing.assert_close(y.grad, 2.0 * (x > 0))
torch.compiler.reset()
for_sizes = torch.compile(double, backend="inductile", dynamic=True)
for given in (x, torch.cat([x, x])):
    torch.testing.assert_close(for_sizes(given), double(given))
found = counters["inductile"]
assert (found["graphs from the cache"], found["graphs"], found["backward_graphs"]) == (3, 4, 1), found
assert "graphs that the cache does not have" not in found
assert "xdsl" not in sys.modules
if len(sys.argv) > 2:
    with open(sys.argv[2], "rb") as file:
        loaded = torch.compiler.load_compiled_function(file)
    torch.testing.assert_close(loaded(x), double(x))
assert "xdsl" not in sys.modules
"""


def test_artifacts_and_compiled_functions_travel(folder: Path, tmp_path: Path) -> None:
    assert run(double, X) == "miss"
    assert run(double, X.clone().requires_grad_()) == "miss"
    assert run(double, X, dynamic=True) == "miss"
    saved = torch.compiler.save_cache_artifacts()
    assert saved is not None and all(name.startswith("inductile-") for name in saved[1].aot_autograd_artifacts)
    (tmp_path / "artifacts").write_bytes(saved[0])
    torch.compiler.reset()
    compiled: Any = torch.compile(double, backend="inductile", fullgraph=True)
    names = ["script.py", "artifacts"]
    if hasattr(compiled, "aot_compile"):  # since torch 2.12
        ahead = compiled.aot_compile(((X,), {}))
        torch.testing.assert_close(ahead(X), double(X))
        ahead.save_compiled_function(str(tmp_path / "function"))
        names.append("function")
    (tmp_path / "script.py").write_text(SCRIPT)
    elsewhere = {"INDUCTILE_CACHE_DIR": str(tmp_path / "a"), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "b")}
    files = [str(tmp_path / name) for name in names]
    done = subprocess.run([sys.executable, *files], env=os.environ | elsewhere, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_is_kept_names_no_module_of_users() -> None:
    """Pickle looks for a memory format in the modules that are loaded, the first one first."""
    users, loaded = type(sys)("module_of_a_user"), dict(sys.modules)
    vars(users)["torch"] = torch
    formats = [torch.contiguous_format, torch.channels_last, torch.preserve_format]
    try:
        sys.modules.clear()
        sys.modules.update({"module_of_a_user": users} | loaded)
        plain, content = pickle.dumps(formats), pickling.dumps(formats)
    finally:
        del sys.modules["module_of_a_user"]
    assert b"module_of_a_user" in plain
    assert b"module_of_a_user" not in content and pickle.loads(content) == formats
