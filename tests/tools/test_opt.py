"""`inductile-opt`: exit statuses, watchers, reproducers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .commands import ADD, faulty, opt, write

LOWER = "lower-aten-to-loop,loop-inline"
CRASHING = """\
from xdsl.passes import ModulePass


class Crash(ModulePass):
    name = "crash-here"
    level = "aten"

    def apply(self, ctx, op):
        op.nothing()
"""


@pytest.fixture
def add(tmp_path: Path) -> Path:
    return write(tmp_path, "add.mlir", ADD)


def test_wrong_text_exits_1_with_the_place(tmp_path: Path) -> None:
    done = opt(write(tmp_path, "bad.mlir", ADD.replace("aten.relu", "aten.rellu")))
    assert done.status == 1
    assert "bad.mlir:3:18: error:" in done.err
    assert "Traceback" not in done.err


def test_an_empty_file_is_told(tmp_path: Path) -> None:
    done = opt(write(tmp_path, "empty.mlir", "\n"), "--pipeline", "default")
    assert (done.status, done.err.strip().endswith("empty.mlir: error: it is empty")) == (1, True)


@pytest.mark.parametrize("target", ["cpp", "cuda:90"])
def test_a_pipeline_leaves_what_has_been_through_it(tmp_path: Path, add: Path, target: str) -> None:
    first = opt(add, "--pipeline", "default", "--target", target)
    again = opt(write(tmp_path, "kernels.mlir", first.out), "--pipeline", "default", "--verify-each")
    assert (first.status, again.status, again.out) == (0, 0, first.out)


def test_a_violation_names_file_and_line(tmp_path: Path) -> None:
    done = opt(
        write(tmp_path, "bad.mlir", "\n" + ADD.replace("relu(%0) : !aten.tensor<4x3", "relu(%0) : !aten.tensor<4x5")),
        "-p",
        LOWER,
    )
    assert done.status in (0, 1)
    wrong = ADD.replace("%1 = aten.relu(%0)", "%1 = loop.view %0[i0] (i0 in 4, i1 in 3)")
    done = opt(write(tmp_path, "bad.mlir", "\n" + wrong))
    assert done.status == 1
    assert "bad.mlir:4:3: error: 'loop.view' op 1 indices for 2 dimensions" in done.err


def test_source_of_what_is_not_lowered_is_an_error(add: Path) -> None:
    done = opt(add, "-t", "cpp")
    assert done.status == 1
    assert "there is no kernel to emit for 'cpp'" in done.err
    assert "--pipeline default" in done.err
    assert opt(add, "--pipeline", "default", "-t", "cpp").status == 0


@pytest.mark.parametrize("flag", ["--stop-after", "--start-at"])
def test_a_cut_without_a_pipeline_is_an_error(add: Path, flag: str) -> None:
    done = opt(add, flag, "loop-fuse")
    assert (done.status, done.out) == (1, "")
    assert done.err == f"error: {flag} cuts a pipeline, and none is given; add --pipeline default, or -p with passes\n"


def test_wrong_arguments_exit_2(add: Path) -> None:
    with pytest.raises(SystemExit) as left:
        opt(add, "--no-such-flag")
    assert left.value.code == 2


@pytest.mark.parametrize(
    ("name", "status", "message"),
    [
        ("crash", 70, "pass 'crash' failed: KeyError: 'no such thing'"),
        ("complain", 1, "error: the input is odd; make it even"),
        ("use-before-definition", 1, "does not verify behind it: aten.relu: operand 0"),
    ],
)
def test_exit_status_says_whose_fault(tmp_path: Path, add: Path, name: str, status: int, message: str) -> None:
    reproducer = tmp_path / "r.mlir"
    done = opt(add, *faulty(tmp_path), "-p", name, "--crash-reproducer", reproducer)
    assert done.status == status
    assert message in done.err
    assert reproducer.exists() == (name != "complain")


def test_reproducer_starts_in_front_of_the_failing_pass_and_replays(tmp_path: Path, add: Path) -> None:
    reproducer = tmp_path / "r.mlir"
    flags = faulty(tmp_path)
    done = opt(add, *flags, "-p", f"{LOWER},crash", "--crash-reproducer", reproducer)
    assert f"inductile-opt --run-reproducer {reproducer}" in done.err
    text = reproducer.read_text()
    assert "// pipeline: crash\n" in text
    assert "loop.generate" in text
    assert opt(reproducer, *flags, "--run-reproducer").status == 70


def test_numerics_names_pass_op_and_values(tmp_path: Path, add: Path) -> None:
    flags = faulty(tmp_path)
    reproducer = tmp_path / "r.mlir"
    passes = "lower-aten-to-loop,loop-cse,swap-sub,loop-inline"
    done = opt(add, *flags, "-p", passes, "--verify-each=numerics", "--crash-reproducer", reproducer)
    assert done.status == 1
    assert "pass 'swap-sub' failed: it changes the answer: result 0: values at [" in done.err
    assert "result 0 comes from: %4 = loop.generate" in done.err
    assert "- %3 = arith.subf %1, %2 : f32\n" in done.err
    assert "+ %3 = arith.subf %2, %1 : f32\n" in done.err
    replayed = opt(reproducer, *flags, "--run-reproducer")
    assert replayed.status == 1
    assert "pass 'swap-sub' failed: it changes the answer" in replayed.err
    assert opt(add, *flags, "-p", passes, "--verify-each=numerics", "--debug-counter=swap-sub-count=0").status == 0


def test_numerics_want_something_to_run(tmp_path: Path) -> None:
    file = write(tmp_path, "kernel.mlir", "kernel.func @k(%x: !kernel.buffer<f32, 1>) {\n  kernel.yield\n}")
    done = opt(file, "-p", "kernel-cse", "--verify-each=numerics")
    assert done.status == 1
    assert "error: the module has no function to run, so that there are no answers to compare" in done.err
    assert opt(file, "-p", "kernel-cse", "--verify-each=ir").status == 0


def test_numerics_on_given_inputs(tmp_path: Path, add: Path) -> None:
    import numpy

    equal, other = tmp_path / "x.npy", tmp_path / "y.npy"
    numpy.save(equal, numpy.ones((4, 3), numpy.float32))
    numpy.save(other, numpy.full((4, 3), 2, numpy.float32))
    check = (*faulty(tmp_path), "-p", "lower-aten-to-loop,swap-sub", "--verify-each", "numerics")
    assert opt(add, *check, "--input", equal, "--input", equal).status == 0
    done = opt(add, *check, "--input", equal, "--input", other)
    assert done.status == 1
    assert "result 0: values at [0, 0]: 0.0 -> 1.0 (12 of 12 elements) (given inputs)" in done.err
    done = opt(add, *check, "--input", equal)
    assert (done.status, "1 inputs for 2 arguments" in done.err) == (1, True)


def test_timing_tree(add: Path) -> None:
    done = opt(add, "-p", LOWER, "--timing", "json", "--verify-each")
    tree = json.loads(done.err)
    rows = {child["name"]: child for child in tree["children"]}
    assert list(rows) == ["(parse)", "(verify)", "lower-aten-to-loop", "loop-inline", "(output)", "Rest"]
    assert [part["name"] for part in rows["loop-inline"]["children"]] == ["(verify)"]
    assert rows["loop-inline"]["seconds"] >= rows["loop-inline"]["children"][0]["seconds"]
    assert tree["seconds"] == pytest.approx(sum(row["seconds"] for row in rows.values()))
    text = opt("--timing", add, "-p", LOWER).err
    assert "  Total Execution Time: " in text
    assert "%)  loop-inline\n" in text


def test_statistics_count_ops_and_rewrites(add: Path) -> None:
    done = opt(add, "-p", LOWER, "--pass-statistics", "--debug-counter=loop-inline-count=0")
    assert "  (S)      0 num-loop-inline - Rewrites made, 1 refused by its counter\n" in done.err
    assert "  (S)      4 num-ops - Ops behind it (+4)" in done.err


def test_tree_of_files(tmp_path: Path, add: Path) -> None:
    tree = tmp_path / "tree"
    done = opt(add, *faulty(tmp_path), "-p", "lower-aten-to-loop,crash", "--print-ir-tree-dir", tree)
    assert done.status == 70
    names = ["000-input.mlir", "001-lower-aten-to-loop.mlir", "002-crash.failed.mlir"]
    assert sorted(path.name for path in tree.iterdir()) == names
    assert opt(tree / names[1], "-p", "loop-inline").status == 0


def test_dump_behind_a_failure_has_mlirs_banner(tmp_path: Path, add: Path) -> None:
    done = opt(add, *faulty(tmp_path), "-p", "lower-aten-to-loop,crash", "--print-ir-after-failure")
    assert done.err.startswith("// -----// IR Dump After crash Failed (crash) //----- //\nbuiltin.module {\n")
    assert done.out == ""


def test_split_input_treats_every_part(tmp_path: Path) -> None:
    path = write(tmp_path, "parts.mlir", f"{ADD}// -----\nfunc.func @broken\n// -----\n{ADD}")
    done = opt(path, "--split-input-file", "-p", "lower-aten-to-loop")
    assert done.status == 1
    assert done.out.count("loop.generate") == 4
    assert f"{path}:8:" in done.err


def test_remarks_as_yaml(tmp_path: Path, add: Path) -> None:
    yaml = pytest.importorskip("yaml")

    class Loader(yaml.SafeLoader):
        """Keeps the kind of a remark."""

    for kind in ("Passed", "Missed", "Analysis", "Failure"):
        Loader.add_constructor(
            f"!{kind}", lambda loader, node: {"Kind": node.tag} | loader.construct_mapping(node, True)
        )
    output = tmp_path / "remarks.yaml"
    assert opt(add, "-p", LOWER, "--remarks-output", output).status == 0
    documents = list(yaml.load_all(output.read_text(), Loader))
    inlined = [d for d in documents if d["Pass"] == "loop-inline"]
    assert [(d["Kind"], d["Name"], d["Reason"]) for d in inlined] == [("!Passed", "loop.generate", "inlined")]
    assert inlined[0]["DebugLoc"] == {"File": str(add), "Line": 2, "Column": 0}


@pytest.mark.parametrize(
    ("passes", "warned"),
    [
        ("kernel-tile", "'kernel-tile' works on kernel and host IR and finds nothing in aten IR; lower the IR first"),
        ("loop-cse,loop-dce", "'loop-cse' works on loop IR and finds nothing in aten IR; lower the IR first"),
        (f"{LOWER},graph-dce", "'graph-dce' works on aten IR and finds nothing in loop IR; run it before lower-aten"),
        (LOWER, ""),
        ("graph-dce,swap-sub", "'swap-sub' works on loop IR"),
    ],
)
def test_a_pass_for_another_level_warns_once(tmp_path: Path, add: Path, passes: str, warned: str) -> None:
    done = opt(add, "-p", passes, *faulty(tmp_path))
    assert done.status == 0
    assert warned in done.err
    assert done.err.count("warning") == bool(warned)


@pytest.mark.parametrize(
    "text",
    [
        "builtin.module {}",
        ADD.replace("aten.sub.Tensor(%x, %y, alpha = 1)", 'aten.call "aten::sub.Tensor"(%x, %y)').replace(
            "aten.relu(%0)", 'aten.call "aten::relu"(%0)'
        ),
    ],
    ids=["empty module", "ATen calls alone"],
)
def test_a_pass_with_nothing_to_do_does_not_warn(tmp_path: Path, text: str) -> None:
    done = opt(write(tmp_path, "x.mlir", text), "-p", f"{LOWER},loop-fuse,lower-loop-to-kernel,kernel-tile,host-free")
    assert (done.status, done.err) == (0, "")


def test_a_failing_plugin_is_told_by_file_and_line_and_by_what_replays_it(tmp_path: Path) -> None:
    source = write(tmp_path, "add.mlir", ADD)
    plugin = write(tmp_path, "crash.py", CRASHING)
    replay = tmp_path / "r.mlir"
    done = opt(source, "--load-pass-plugin", plugin, "-p", "crash-here", "--crash-reproducer", replay)
    assert f"AttributeError: 'ModuleOp' object has no attribute 'nothing' ({plugin}:9)" in done.err
    command = done.err.partition("replay it with: ")[2].split()
    assert command == ["inductile-opt", "--run-reproducer", str(replay), "--load-pass-plugin", str(plugin)]


def test_a_level_that_is_none_is_told(tmp_path: Path) -> None:
    plugin = write(tmp_path, "lop.py", CRASHING.replace("crash-here", "lop-pass").replace('"aten"', '"lop"'))
    done = opt(write(tmp_path, "add.mlir", ADD), "--load-pass-plugin", plugin, "-p", "lop-pass")
    assert done.status == 1
    assert "error: the level 'lop' of the pass 'lop-pass' is none; write one of aten, loop, kernel, host" in done.err


def test_numerics_are_a_part_of_the_time_of_a_pass(tmp_path: Path) -> None:
    done = opt(write(tmp_path, "add.mlir", ADD), "-p", "graph-dce", "--verify-each=numerics", "--timing=json")
    (row,) = [each for each in json.loads(done.err)["children"] if each["name"] == "graph-dce"]
    assert [part["name"] for part in row["children"]] == ["(numerics)", "(verify)"]


def test_nothing_to_cut_is_told(add: Path) -> None:
    for flag in ("--start-at", "--stop-after"):
        result = opt(add, flag, "loop-fuse")
        assert result.status == 1 and f"{flag} cuts a pipeline" in result.err
