"""The host level: memory, views, launches, lives, and what goes wrong with them."""

from __future__ import annotations

import pytest
import torch
from xdsl.ir import Operation

from inductile.backends.reference import (
    InterpretationError,
    LifetimeError,
    OutOfBoundsError,
    UninitialisedReadError,
    aten,
    precision,
    run_module,
)
from inductile.backends.reference.program import Program

from .helpers import parse, run

DOUBLE = """
kernel.func @double(%x: !kernel.buffer<f32, s0>, %y: !kernel.buffer<f32, s0>) symbols (s0) {
  kernel.for i0 in 0 to s0 map parallel {
    %v = kernel.load %x[i0]
    %w = arith.addf %v, %v : f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}
"""
T = "!aten.tensor<8xf32>"


def host(body: str, results: str = T, arguments: str = f"%x: {T}") -> str:
    return f"{DOUBLE}host.func @f({arguments}) -> ({results}) {{\n{body}\n}}"


X = torch.arange(8.0)


def test_chain_of_launches() -> None:
    body = f"""%a = host.empty : {T}
      host.launch @double(%x, %a) [8]
      %b = host.empty : {T}
      host.launch @double(%a, %b) [8]
      host.free %a
      host.return %b"""
    assert torch.equal(run(host(body), X)[0], 4 * X)


def test_use_after_free() -> None:
    body = f"""%a = host.empty : {T}
      host.launch @double(%x, %a) [8]
      host.free %a
      %b = host.empty : {T}
      host.launch @double(%a, %b) [8]
      host.return %b"""
    with pytest.raises(LifetimeError, match=r"host\.launch @double\(%a, %b\) \[8\]: .*life was ended by host\.free %a"):
        run(host(body), X)
    with pytest.raises(LifetimeError, match=r"host\.free %a: .*ended by host\.free %a"):
        run(host(f"%a = host.empty : {T}\nhost.free %a\nhost.free %a\nhost.return %x"), X)


def test_a_view_keeps_its_memory_alive() -> None:
    body = f"""%a = host.empty : {T}
      host.launch @double(%x, %a) [8]
      %v = host.view %a offset 2 : !aten.tensor<3xf32, strides = [2]>
      host.free %a
      host.return %v"""
    (got,) = run(host(body, "!aten.tensor<3xf32, strides = [2]>"), X)
    assert torch.equal(got, (2 * X)[2:8:2]) and got.stride() == (2,)


@pytest.mark.parametrize("offset,kind", [("6", "3xf32"), ("-1", "2xf32"), ("0", "2x2xf32, strides = [7, 1]")])
def test_view_outside_of_memory(offset: str, kind: str) -> None:
    body = f"%a = host.empty : {T}\n%v = host.view %a offset {offset} : !aten.tensor<{kind}>\nhost.return %v"
    with pytest.raises(OutOfBoundsError, match=r"%v = host\.view %a"):
        run(host(body, f"!aten.tensor<{kind}>"), X)


def test_view_that_reinterprets_bits() -> None:
    body = """%v = host.view %x offset 0 : !aten.tensor<8xi32>
      host.return %v"""
    assert torch.equal(run(host(body, "!aten.tensor<8xi32>"), X)[0], X.view(torch.int32))


@pytest.mark.parametrize("wide", [False, True])
def test_complex_views_of_real_memory(wide: bool) -> None:
    """And real views of complex memory, each part of which a copy writes."""
    numbers, pairs = "!aten.tensor<4xcomplex<f32>>", "!aten.tensor<4x2xf32>"
    body = f"""%a = host.empty : {T}
      host.launch @double(%x, %a) [8]
      %pairs = host.view %a offset 0 : {pairs}
      %c = aten.view_as_complex(%pairs) : {numbers}
      %d = host.empty : {numbers}
      host.copy %c to %d
      %e = aten.view_as_real(%d) : {pairs}
      host.return %e, %c"""
    real, numbers_ = run(host(body, f"{pairs}, {numbers}"), X, wide=wide)
    assert torch.equal(real.float(), 2 * X.view(4, 2))
    assert torch.equal(torch.view_as_real(numbers_).float(), real.float())


@pytest.mark.parametrize("wide", [False, True])
def test_a_complex_number_is_read_with_both_parts(wide: bool) -> None:
    numbers, half = "!aten.tensor<1xcomplex<f32>>", "!aten.tensor<1xf32>"
    body = f"""%a = host.empty : !aten.tensor<2xf32>
      %half = host.view %a offset 0 : {half}
      host.launch @double(%x, %half) [1]
      %pair = host.view %a offset 0 : !aten.tensor<1x2xf32>
      %c = aten.view_as_complex(%pair) : {numbers}
      %d = aten.neg(%c) : {numbers}
      host.return %d"""
    with pytest.raises(UninitialisedReadError, match=r"reads element \[0, "):
        run(host(body, numbers, f"%x: {half}"), X[:1], wide=wide)


def test_places_in_storage_are_counted_from_where_memory_begins() -> None:
    part, apart = "!aten.tensor<3xf32>", "!aten.tensor<3xf32, strides = [2]>"
    body = f"""%a = host.empty : {T}
      host.launch @double(%x, %a) [8]
      %v = host.view %a offset 2 : !aten.tensor<6xf32>
      %b = aten.as_strided(%v, size = [3], stride = [2], storage_offset = 1) : {apart}
      %c = aten.as_strided(%x, size = [3], stride = [1], storage_offset = 4) : {part}
      host.return %b, %c"""
    b, c = run(host(body, f"{apart}, {part}"), X)
    assert b.tolist() == [2, 6, 10] and c.tolist() == [4, 5, 6]


@pytest.mark.parametrize("call", ["uniform(%a, from = 2.0, to = 3.0)", "full_like(%a, fill_value = 2.5)"])
def test_what_gives_a_layout_is_not_read(call: str) -> None:
    body = f"""%a = host.empty : {T}
      %b = aten.{call} : {T}
      host.return %b"""
    (b,) = run(host(body), X)
    assert bool(((b >= 2) & (b < 3)).all())


def test_results_alias_as_the_program_says() -> None:
    body = """%v = host.view %x offset 4 : !aten.tensor<4xf32>
      host.return %v, %x"""
    x = X.clone()
    view, same = run(host(body, f"!aten.tensor<4xf32>, {T}"), x)
    x.zero_()
    assert not view.any() and same is x
    view, same = run(host(body, f"!aten.tensor<4xf32>, {T}"), x, wide=True)
    x.fill_(1)
    assert view.all() and same.data_ptr() == x.data_ptr()


def test_copy_writes_an_input() -> None:
    body = f"""%a = host.empty : {T}
      host.launch @double(%x, %a) [8]
      host.copy %a to %x
      host.return"""
    for wide in (False, True):
        x = X.clone()
        assert run(host(body, ""), x, wide=wide) == []
        assert torch.equal(x, 2 * X)


def test_undefined_memory_is_not_read() -> None:
    launch = f"%a = host.empty : {T}\n%b = host.empty : {T}\nhost.launch @double(%a, %b) [8]\nhost.return %b"
    with pytest.raises(UninitialisedReadError, match=r"kernel\.load %x\[i0\]: reads element 0, never written"):
        run(host(launch), X)
    copy = f"%a = host.empty : {T}\nhost.copy %a to %x\nhost.return %x"
    with pytest.raises(UninitialisedReadError, match=r"element \[0\], never written, of %a = host\.empty"):
        run(host(copy), X)
    call = f"%a = host.empty : {T}\n%b = aten.relu(%a) : {T}\nhost.return %b"
    with pytest.raises(UninitialisedReadError, match=r"element \[0\], never written, of %a = host\.empty"):
        run(host(call), X)


def test_what_was_never_written_may_be_returned_whole_but_not_in_part() -> None:
    (got,) = run(host(f"%a = host.empty : {T}\nhost.return %a"), X)
    assert bool(got.isnan().all())
    with pytest.raises(UninitialisedReadError, match=r"host\.return %a: reads element \[5\]"):
        run(host(f"%a = host.empty : {T}\nhost.launch @double(%x, %a) [5]\nhost.return %a"), X)


COPYING = """kernel.func @copy(%x: !kernel.buffer<f32, n>, %y: !kernel.buffer<f32, n>) symbols (n) {
  kernel.for i0 in 0 to n { %v = kernel.load %x[i0]  kernel.store %v, %y[i0]  kernel.yield }
  kernel.yield
}
"""


@pytest.mark.parametrize("how", ["host.copy %a to %b", "host.launch @copy(%a, %b) [8]"])
def test_a_copy_of_what_was_never_written_is_not_written(how: str) -> None:
    made = f"%a = host.empty : {T}\n%b = host.empty : {T}\n"
    (got,) = run(COPYING + host(f"{made}{how}\nhost.return %b"), X)
    assert bool(got.isnan().all())
    with pytest.raises(UninitialisedReadError, match=r"host\.return %b: reads element \[5\]"):
        run(COPYING + host(f"{made}host.launch @double(%x, %a) [5]\n{how}\nhost.return %b"), X)
    with pytest.raises(UninitialisedReadError, match=r"kernel\.load %x\[i0\]: reads element 0, never written"):
        run(COPYING + host(f"{made}{how}\nhost.launch @double(%b, %a) [8]\nhost.return %a"), X)
    with pytest.raises(UninitialisedReadError, match=r"reads element .*never written"):
        run(COPYING + host(f"{made}{how.replace('%b', '%x')}\nhost.return %x"), X.clone())


POOLED = """%pool = host.empty : !aten.tensor<64xui8>
  %a = host.empty in %pool at 0 : !aten.tensor<8xf32>
  host.launch @double(%x, %a) [8]
  %b = host.empty in %pool at OFFSET : !aten.tensor<8xf32>
  host.launch @double(%a, %b) [8]
  FREE
  %c = host.empty in %pool at 0 : !aten.tensor<8xf32>
  host.launch @double(%b, %c) [8]
  host.return %c"""


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("free", ["", "host.free %a"])
def test_tenants_of_a_pool(free: str, wide: bool) -> None:
    body = POOLED.replace("OFFSET", "32").replace("FREE", free)
    assert torch.equal(run(host(body), X, wide=wide)[0], 8 * X)


def test_live_tenants_do_not_overlap() -> None:
    with pytest.raises(LifetimeError, match=r"%b = host\.empty in %pool at 28 .*overlaps .*%a = host\.empty"):
        run(host(POOLED.replace("OFFSET", "28").replace("FREE", "")), X)
    late = POOLED.replace("OFFSET", "32").replace("FREE", "").replace("host.return", "host.free %a\nhost.return")
    with pytest.raises(LifetimeError, match=r"%c = host\.empty in %pool at 0 .*overlaps"):
        run(host(late), X)


def test_tenants_fit_in_their_pool() -> None:
    with pytest.raises(OutOfBoundsError, match="bytes 36 to 68 of a pool of 64"):
        run(host(POOLED.replace("OFFSET", "36").replace("FREE", "")), X)
    with pytest.raises(InterpretationError, match="offset 30 is no multiple of 4 bytes"):
        run(host(POOLED.replace("OFFSET", "30").replace("FREE", "")), X)


def test_launch_is_checked() -> None:
    small = "%a = host.empty : !aten.tensor<7xf32>\nhost.launch @double(%x, %a) [8]\nhost.return"
    with pytest.raises(OutOfBoundsError, match="argument 1 has 7 elements, the kernel may use 8"):
        run(host(small, ""), X)
    other = "%a = host.empty : !aten.tensor<8xf64>\nhost.launch @double(%x, %a) [8]\nhost.return"
    with pytest.raises(InterpretationError, match=r"argument 1 is !aten\.tensor<8xf64>"):
        run(host(other, ""), X)
    with pytest.raises(InterpretationError, match=r"no kernel\.func @missing"):
        run(host("host.launch @missing(%x)\nhost.return", ""), X)


def test_parameters_that_share_memory() -> None:
    """In place is fine where each iteration keeps to its place in one buffer, but two buffers do not overlap."""
    with pytest.raises(InterpretationError, match="another one"):
        run(host("host.launch @double(%x, %x) [8]\nhost.return", ""), X.clone())
    apart = """%l = host.view %x offset 0 : !aten.tensor<4xf32>
      %h = host.view %x offset 4 : !aten.tensor<4xf32>
      host.launch @double(%l, %h) [4]
      host.return"""
    x = X.clone()
    run(host(apart, ""), x)
    assert x.tolist() == [0, 1, 2, 3, 0, 2, 4, 6]
    with pytest.raises(InterpretationError, match="another one"):
        run(host(apart.replace("offset 4", "offset 3"), ""), X.clone())


def test_guard_zones(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(program: Program, op: Operation, narrow: bool) -> list[torch.Tensor]:
        tensor = program.tensor(op.operands[0])
        tensor.as_strided((9,), (1,)).fill_(0)
        return [tensor.relu()]

    monkeypatch.setattr(aten, "_invoke", broken)
    body = f"%a = host.empty : {T}\nhost.launch @double(%x, %a) [8]\n%b = aten.relu(%a) : {T}\n"
    for end in ("host.return %b", "host.free %a\nhost.return %b"):
        with pytest.raises(OutOfBoundsError, match=r"%a = host\.empty .*wrote outside of this memory"):
            run(host(body + end), X)


def test_aten_calls_and_unbacked_symbols() -> None:
    text = """host.func @f(%x: !aten.tensor<8xf32>) -> (!aten.tensor<(u0)x1xi64>, index) symbols [#sym.symbol<u0>] {
      %i = aten.nonzero(%x) binds [u0] : !aten.tensor<(u0)x1xi64, strides = [1, u0]>
      %n = sym.int 2*u0
      %c = aten.clone(%i, memory_format = torch.contiguous_format) : !aten.tensor<(u0)x1xi64>
      host.return %c, %n
    }"""
    indices, n = run(text, torch.tensor([0.0, 1, 0, 2, 3, 0, 0, 0]))
    assert indices[:, 0].tolist() == [1, 3, 4] and n == 6


def test_strides_of_results_are_exact() -> None:
    body = "%v = host.view %x offset 0 : !aten.tensor<2x4xf32>\nhost.return %v"
    kind = "!aten.tensor<2x4xf32, strides = [1, 2]>"
    module = parse(host(body.replace("host.return %v", f"%w = aten.t(%v) : {kind}\nhost.return %w"), kind))
    with pytest.raises(InterpretationError, match="shape"):
        run_module(module, [X])


def test_a_device_that_is_not_here_is_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    class Cards:
        is_available = True
        module = type("Module", (), {"device_count": staticmethod(lambda: 2)})

    monkeypatch.setattr(precision, "gpu", lambda _: Cards)
    assert [str(precision.actual_device(name)) for name in ("cuda:1", "cuda:2", "cpu")] == ["cuda:1", "cpu", "cpu"]
