"""Files that verify and go wrong when they run: one error, whatever they say, and the process goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from inductile.backends import limits
from inductile.tools.run import main

PROGRAM = """
kernel.func @k(%x: !kernel.buffer<f32, s0>, %y: !kernel.buffer<f32, s0>) symbols (s0) target "cpp" {{
  {body}
  kernel.yield
}}
host.func @f(%x: !aten.tensor<(s0)xf32>, %j: !aten.tensor<(s0)xi64>) -> (!aten.tensor<(s0)xf32>)
    symbols [#sym.symbol<s0, arg = 0, dim = 0, hint = 64>] {{
  {host}
}}"""
LAUNCH = """%0 = host.empty : !aten.tensor<(s0)xf32>
  host.launch @k(%x, %0) [s0]
  host.return %0"""
COPY = """kernel.for i0 in 0 to s0 {
    %1 = kernel.load %x[i0]
    kernel.store %1, %y[i0]
    kernel.yield
  }"""

#: what a kernel does -> what the compiled program says
BODIES = {
    COPY.replace("%x[i0]", "%x[i0 + 1000]"): "kernel @k accesses element 1063 of x, which has 64",
    COPY.replace("%y[i0]", "%y[i0 - 1]").replace("s0 {", "s0 map parallel {"): "accesses element -1 of y, which has 64",
    COPY.replace("%y[i0]", "%y[2*i0]").replace("s0 {", "s0 map vector tile 8 {"): "accesses element 126 of y",
    COPY.replace("to s0", "to 1152921504606846976").replace("[i0]", "[i0 floordiv 288230376151711744]"): (
        "kernel @k runs its loops more than 68719476736 times"
    ),
    COPY.replace("kernel.for", "%row = kernel.local heap : !kernel.buffer<f32, s0*s0*s0*s0*s0*s0, local>\n  kernel.for")
    .replace("%x[i0]", "%row[i0]"): "kernel @k has a local buffer that does not fit in memory",
    COPY.replace("%x[i0]", "%x[i0 floordiv (s0 - 64)]"): "an index expression of kernel @k divides by zero",
    COPY.replace("%y[i0]", "%y[3 mod (2*i0)]").replace("s0 {", "s0 map vector tile 8 {"): "divides by zero",
    COPY.replace("to s0", "to i0 mod (s0 - 64)").replace("for i0", "for i0 in 0 to 2 {\n kernel.for i1", 1)
    .replace("kernel.yield\n  }", "kernel.yield\n  }\n kernel.yield\n }"): "divides by zero",
    COPY.replace("%x[i0]", "%x[i0 floordiv (s0 - 63)]"): "result 0: float32[64]",
}  # fmt: skip
#: what the program around the kernel does -> what both backends say of it, and C++ alone
HOSTS = {
    LAUNCH.replace("[s0]", "[s0 + 1]"): ("argument 0", "has 64 elements, the kernel may use 65"),
    LAUNCH.replace("[s0]", "[s0*s0*s0*s0*s0*s0*s0*s0*s0*s0*s0]"): ("argument 0", "has 64 elements"),
    LAUNCH.replace("(%x,", "(%v,").replace("%0 = ", "%v = host.view %x offset 60 : !aten.tensor<(s0)xf32>\n  %0 = "): (
        "", "out of bounds for storage",
    ),
    LAUNCH.replace("(%x,", "(%v,").replace("%0 = ", "%v = host.view %x offset -s0 : !aten.tensor<(s0)xf32>\n  %0 = "): (
        "", "a view begins at element -64 of its source",
    ),
    LAUNCH.replace("%0 = host.empty", "%p = host.empty : !aten.tensor<100xui8>\n  %0 = host.empty in %p at s0"): (
        "", "out of bounds for storage",
    ),
    LAUNCH.replace("%0 = ", "%n = host.empty : !aten.tensor<(s0*s0*s0*s0*s0*s0*s0)xf32>\n  %0 = "): (
        "and the file may take", "a tensor takes 17592186044416 bytes",
    ),
    LAUNCH.replace("(%x,", "(%e,").replace(
        "%0 = ", "%e = aten.call \"aten::exp\"(%x) : !aten.tensor<(2*s0)xf32>\n  %0 = "
    ): (
        "", "aten::exp returns torch.float32[64], and the file says torch.float32[128]",
    ),
}  # fmt: skip


def outcome(text: str, folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    """Exit status and all output of `inductile-run`."""
    file = folder / "file.mlir"
    file.write_text(text)
    status = main([str(file), "--random", "0", *options])
    captured = capsys.readouterr()
    return status, captured.out + captured.err


@pytest.mark.parametrize("body", BODIES)
def test_what_a_kernel_does_is_checked(body: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = PROGRAM.format(body=body, host=LAUNCH)
    status, output = outcome(text, tmp_path, capsys, "--backend", "cpp")
    assert BODIES[body] in output
    assert status == (0 if "result" in BODIES[body] else 1)


@pytest.mark.parametrize("host", HOSTS)
def test_what_a_program_does_is_checked(host: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = PROGRAM.format(body=COPY, host=host)
    for options in ([], ["--backend", "cpp"]):
        status, output = outcome(text, tmp_path, capsys, *options, "--memory-limit", "4")
        assert status == 1, output
        assert output.count("error:") == 1 and "Traceback" not in output
    for expected in HOSTS[host]:
        assert expected in output


def test_a_local_buffer_that_is_too_large_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where the interpreter would make it."""
    body = COPY.replace(
        "kernel.for", "%row = kernel.local heap : !kernel.buffer<f32, 9223372036854775807, local>\n kernel.for"
    )
    status, output = outcome(PROGRAM.format(body=body, host=LAUNCH), tmp_path, capsys, "--memory-limit", "4")
    assert (status, output.count("error:")) == (1, 1), output
    assert "and the file may take" in output


NEGATIVE = """func.func @f(%x: !aten.tensor<(s0)xf32>) -> !aten.tensor<(s0 - 99)xf32>
    attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0>]} {
  %t = loop.generate (i0 in s0 - 99) {
    %v = loop.load %x[i0]
    loop.yield %v
  } : !aten.tensor<(s0 - 99)xf32>
  func.return %t : !aten.tensor<(s0 - 99)xf32>
}"""


@pytest.mark.parametrize("text", [NEGATIVE, NEGATIVE.replace("<(s0)x", "<(s0)x(s0 - 99)x").replace("[i0]", "[i0, i0]")])
@pytest.mark.parametrize("backend", ["reference", "cpp"])
def test_a_size_that_is_negative_is_told(
    text: str, backend: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, output = outcome(text, tmp_path, capsys, "--backend", backend)
    assert status == 1
    assert output.startswith("error: ") and output.count("error:") == 1, output
    assert "size -9" in output or "sizes [-9" in output, output


#: calls whose numbers ask for far more memory than their types say
GROW = (
    'aten.randint.low(low = 0, high = 9, size = [1099511627777], device = "cpu")',
    'aten.call pure "aten::repeat"(%x, [1048576, 1048576])',
    'aten.call pure "aten::constant_pad_nd"(%x, [0, 1099511627777], 0.0)',
)


@pytest.mark.parametrize("call", GROW)
@pytest.mark.parametrize("backend", ["reference", "cpp"])
def test_what_a_call_would_allocate_is_told(
    call: str, backend: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that promises more memory than it has would kill the process."""
    monkeypatch.setattr(limits, "_limit_address_space", lambda memory: None)
    kind = "1xi64" if "randint" in call else "4xf32"
    text = f"func.func @f(%x: !aten.tensor<4xf32>) -> !aten.tensor<{kind}> {{\n"
    text += f"  %y = {call} : !aten.tensor<{kind}>\n  func.return %y : !aten.tensor<{kind}>\n}}"
    status, output = outcome(text, tmp_path, capsys, "--backend", backend, "--memory-limit", "1")
    assert status == 1
    assert output.startswith("error: a tensor takes ") and output.count("error:") == 1, output


LAUNCHED = """kernel.func @k(%x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 8>) {{
  kernel.yield
}}
host.func @f(%x: !aten.tensor<8xf32, device = "cuda:0">, %y: !aten.tensor<8xf32, device = "{device}">)
    -> (!aten.tensor<8xf32, device = "{returned}">) {{
  host.launch @k(%x, %y)
  host.return %y
}}"""


@pytest.mark.parametrize(
    ("device", "returned", "said"),
    [
        ("cuda:1", "cuda:1", "a kernel runs on one device, and its arguments are on cuda:0, cuda:1"),
        ("cuda:0", "cpu", "and the function's results are (!aten.tensor<8xf32>)"),
    ],
)
def test_devices_are_verified(
    device: str, returned: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = LAUNCHED.format(device=device, returned=returned).replace(', device = "cpu"', "")
    status, output = outcome(text, tmp_path, capsys)
    assert status == 1 and said in output, output


DIVIDES = """func.func @f(%v: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> {
  %u = loop.generate (i0 in 4) {
    %a = loop.load %v[3 mod (2*i0)]
    loop.yield %a
  } : !aten.tensor<4xf32>
  func.return %u : !aten.tensor<4xf32>
}"""


def test_an_index_that_divides_by_zero_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, output = outcome(DIVIDES, tmp_path, capsys)
    assert status == 1
    assert output == "error: the index expression 3 mod (2*i0) divides by zero\n"


def test_ops_stand_at_their_level(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for line in ("host.free %x", "%e = aten.exp(%x) : !aten.tensor<4xf32>"):
        status, output = outcome(PROGRAM.format(body=f"{line}\n{COPY}", host=LAUNCH), tmp_path, capsys)
        assert status == 1
        assert "cannot stand in the body of kernel.func" in output


def test_checks_can_be_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = PROGRAM.format(body=COPY, host=LAUNCH)
    results = [outcome(text, tmp_path, capsys, "--backend", "cpp", *options) for options in ([], ["--unchecked"])]
    assert results[0] == results[1] and results[0][0] == 0


def test_inputs_that_do_not_fit_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import numpy

    numpy.save(tmp_path / "x.npy", numpy.zeros(8, numpy.int8))
    numpy.save(tmp_path / "j.npy", numpy.zeros(8, numpy.int64))
    file = tmp_path / "file.mlir"
    file.write_text(PROGRAM.format(body=COPY, host=LAUNCH))
    inputs = ["--input", str(tmp_path / "x.npy"), "--input", str(tmp_path / "j.npy")]
    assert main([str(file), *inputs, "--backend", "cpp"]) == 1
    assert "has dtype torch.int8 instead of torch.float32" in capsys.readouterr().err
