"""Samples of the kernel level against torch, and kernels that are wrong: each is reported with op and index."""

from __future__ import annotations

import pytest
import torch

from inductile.backends.reference import (
    InterpretationError,
    OutOfBoundsError,
    RaceError,
    UninitialisedReadError,
    differences,
)

from .helpers import ELEMENTS, run, tensor_type


def launch(
    kernel: str, *inputs: torch.Tensor, out: torch.Tensor, symbols: str = "", schedule: str = "", **options: bool
) -> torch.Tensor:
    """Run @k on inputs and one output like `out`; its parameters %x0, %x1, ... and %y are made from them.

    `kernel` is the body; `symbols` values for s0, s1, ...; `schedule` says what it is scheduled for.
    """
    names = [f"%x{k}" for k in range(len(inputs))]
    kinds = [f"!kernel.buffer<{ELEMENTS[t.dtype]}, {t.numel()}>" for t in (*inputs, out)]
    parameters = ", ".join(f"{n}: {k}" for n, k in zip([*names, "%y"], kinds, strict=True))
    values = [s.strip() for s in symbols.split(",")] if symbols else []
    declared = f"symbols ({', '.join(f's{k}' for k in range(len(values)))})" if values else ""
    arguments = ", ".join(f"{n}: {tensor_type(t)}" for n, t in zip(names, inputs, strict=True))
    (found,) = run(
        f"""kernel.func @k({parameters}) {declared} errors ["IndexError: index out of range"] {schedule} {{
          {kernel}
          kernel.yield
        }}
        host.func @f({arguments}) -> ({tensor_type(out)}) {{
          %y = host.empty : {tensor_type(out)}
          host.launch @k({", ".join([*names, "%y"])}) [{symbols}]
          host.return %y
        }}""",
        *inputs,
        **options,
    )
    return found


SOFTMAX = """
kernel.for i0 in 0 to s0 OUTER {
  %row = kernel.local : !kernel.buffer<f32, s1, local>
  %m = kernel.reduce max r0 in 0 to s1 INNER {
    %v = kernel.load %x0[s1*i0 + r0]
    kernel.yield %v
  }
  %s = kernel.reduce sum r0 in 0 to s1 INNER {
    %v = kernel.load %x0[s1*i0 + r0]
    %d = arith.subf %v, %m : f32
    %e = math.exp %d : f32
    kernel.store %e, %row[r0]
    kernel.yield %e
  }
  kernel.for r0 in 0 to s1 INNER {
    %e = kernel.load %row[r0]
    %q = arith.divf %e, %s : f32
    kernel.store %q, %y[s1*i0 + r0]
    kernel.yield
  }
  kernel.yield
}"""
MAPPINGS = [
    ("", ""),
    ("map parallel", "map vector tile 16"),
    ("map grid tile 2", "map vector tile 4096"),
    ("map serial tile 3", "map unroll"),
]


@pytest.mark.parametrize("outer,inner", MAPPINGS)
@pytest.mark.parametrize("shape", [(5, 37), (1, 16), (0, 4), (3, 0)])
@pytest.mark.parametrize("wide", [False, True])
def test_softmax(shape: tuple[int, int], outer: str, inner: str, wide: bool) -> None:
    x = torch.randn(shape)
    body = SOFTMAX.replace("OUTER", outer).replace("INNER", inner)
    got = launch(body, x, out=x, symbols=f"{shape[0]}, {shape[1]}", wide=wide)
    assert not differences(x.softmax(1), got)


def test_large_softmax_is_fast_enough_to_be_run() -> None:
    x = torch.randn(64, 4096)
    body = SOFTMAX.replace("OUTER", "map parallel").replace("INNER", "map vector tile 16")
    assert not differences(x.softmax(1), launch(body, x, out=x, symbols="64, 4096"))


@pytest.mark.parametrize("mapping", ["map parallel", "map serial", "map vector tile 8"])
def test_pieces_share_what_is_known_of_races(mapping: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from inductile.backends.reference import kernel

    monkeypatch.setattr(kernel, "LANES", 4)
    x = torch.randn(5, 37)
    body = SOFTMAX.replace("OUTER", "map parallel").replace("INNER", mapping)
    assert not differences(x.softmax(1), launch(body, x, out=x, symbols="5, 37"))
    with pytest.raises(RaceError, match=r"kernel\.store %v, %y\[i0 mod 20\].*another one writes"):
        launch(COPY.replace("%y[i0]", "%y[i0 mod 20]").replace("MAPPING", "map parallel"), x, out=x)


COPY = """
kernel.for i0 in 0 to 185 MAPPING {
  %v = kernel.load %x0[i0]
  kernel.store %v, %y[i0]
  kernel.yield
}"""


def test_layer_norm_with_welford() -> None:
    x = torch.randn(4, 50) + 3
    got = launch(
        """kernel.for i0 in 0 to 4 map parallel {
          %zero = arith.constant 0.0 : f32
          %one = arith.constant 1.0 : f32
          %m, %q, %n = kernel.reduce welford r0 in 0 to 50 map vector tile 8 {
            %v = kernel.load %x0[50*i0 + r0]
            kernel.yield %v, %zero, %one
          }
          kernel.for r0 in 0 to 50 map vector tile 8 {
            %v = kernel.load %x0[50*i0 + r0]
            %d = arith.subf %v, %m : f32
            %var = arith.divf %q, %n : f32
            %eps = arith.constant 1.0e-5 : f32
            %e = arith.addf %var, %eps : f32
            %r = math.rsqrt %e : f32
            %o = arith.mulf %d, %r : f32
            kernel.store %o, %y[50*i0 + r0]
            kernel.yield
          }
          kernel.yield
        }""",
        x,
        out=x,
    )
    assert not differences(torch.nn.functional.layer_norm(x, (50,)), got)


def test_argmax() -> None:
    x = torch.tensor([[1.0, 5.0, 5.0], [float("nan"), 2.0, float("nan")], [-3.0, -2.0, -1.0]])
    got = launch(
        """kernel.for i0 in 0 to 3 map parallel {
          %v, %i = kernel.reduce argmax r0 in 0 to 3 map vector {
            %v = kernel.load %x0[3*i0 + r0]
            %r = kernel.index r0
            kernel.yield %v, %r
          }
          kernel.store %i, %y[i0]
          kernel.yield
        }""",
        x,
        out=torch.zeros(3, dtype=torch.int64),
    )
    assert torch.equal(got, x.argmax(1))


GATHER = """
kernel.for i0 in 0 to 5 map parallel {
  %j = kernel.load %x1[i0]
  %n = kernel.index 10
  %ok = arith.cmpi ult, %j, %n : i64
  kernel.assert %ok, 1
  kernel.for i1 in 0 to 4 map vector {
    %zero = arith.constant 0.0 : f32
    %v = kernel.load %x0[4*d0 + i1] (d0 = %j) MASK
    kernel.store %v, %y[4*i0 + i1]
    kernel.yield
  }
  kernel.yield
}"""


def test_gather_and_assert() -> None:
    x, i = torch.randn(10, 4), torch.tensor([3, 9, 0, 3, 3])
    out = torch.zeros(5, 4)
    assert torch.equal(launch(GATHER.replace("MASK", ""), x, i, out=out), x[i])
    i[2] = 10
    with pytest.raises(IndexError, match=r"^index out of range$"):
        launch(GATHER.replace("MASK", "if %ok else %zero"), x, i, out=out)
    # an assert does not stop a kernel: what follows must not touch memory
    with pytest.raises(OutOfBoundsError, match=r"index 40 .*size 40.* at i0 = 2, i1 = 0"):
        launch(GATHER.replace("MASK", ""), x, i, out=out)


@pytest.mark.parametrize("mapping", ["map serial", "map vector tile 4"])
def test_scan(mapping: str) -> None:
    x = torch.randn(3, 11)
    got = launch(
        f"""kernel.for i0 in 0 to 3 map parallel {{
          kernel.scan sum r0 in 0 to 11 {mapping} {{
            %v = kernel.load %x0[11*i0 + r0]
            kernel.yield %v
          }} then {{
          ^bb0(%c: f32):
            kernel.store %c, %y[11*i0 + r0]
            kernel.yield
          }}
          kernel.yield
        }}""",
        x,
        out=x,
    )
    assert not differences(x.cumsum(1), got)


HISTOGRAM = """
kernel.for i0 in 0 to 4 {
  %zero = arith.constant 0.0 : f32
  kernel.store %zero, %y[i0]
  kernel.yield
}
kernel.for i0 in 0 to 100 map parallel {
  %j = kernel.load %x0[i0]
  %one = arith.constant 1.0 : f32
  kernel.store add ATOMIC %one, %y[d0] (d0 = %j)
  kernel.yield
}"""


def test_atomic_add() -> None:
    i = torch.randint(0, 4, (100,))
    got = launch(HISTOGRAM.replace("ATOMIC", "atomic"), i, out=torch.zeros(4))
    assert torch.equal(got, torch.bincount(i, minlength=4).float())
    with pytest.raises(RaceError, match=r"kernel\.store add %one.*in kernel\.for i0 in 0 to 100 map parallel"):
        launch(HISTOGRAM.replace("ATOMIC", ""), i, out=torch.zeros(4))


def test_serial_loops_may_depend_on_what_came_before() -> None:
    """Fibonacci: the first attempt, side by side, reads what is not written yet."""
    got = launch(
        """%one = arith.constant 1 : i64
        kernel.store %one, %y[0]
        kernel.store %one, %y[1]
        kernel.for i0 in 2 to 20 {
          %a = kernel.load %y[i0 - 1]
          %b = kernel.load %y[i0 - 2]
          %c = arith.addi %a, %b : i64
          kernel.store %c, %y[i0]
          kernel.yield
        }""",
        out=torch.zeros(20, dtype=torch.int64),
    )
    expected = [1, 1]
    while len(expected) < 20:
        expected.append(expected[-1] + expected[-2])
    assert got.tolist() == expected


def test_serial_loop_over_defined_memory_runs_in_order() -> None:
    """Shifting in place: side by side every iteration would read the old neighbour."""
    body = """kernel.for i0 in 0 to 6 {
      %v = kernel.load %x0[i0]
      kernel.store %v, %y[i0]
      kernel.yield
    }
    kernel.for i1 in 1 to 6 MAPPING {
      %v = kernel.load %y[i1 - 1]
      kernel.store %v, %y[i1]
      kernel.yield
    }"""
    x = torch.arange(6.0)
    assert launch(body.replace("MAPPING", ""), x, out=x).tolist() == [0.0] * 6
    with pytest.raises(RaceError, match=r"kernel\.store %v_?\d*, %y\[i1\].*which another one reads"):
        launch(body.replace("MAPPING", "map parallel"), x, out=x)
    # lanes of one tile run at once too
    with pytest.raises(RaceError, match="another one reads"):
        launch(body.replace("MAPPING", "map serial tile 4"), x, out=x)


def test_race_between_two_stores() -> None:
    body = """kernel.for i0 in 0 to 4 map parallel {
      kernel.for i1 in 0 to 4 map vector {
        %v = kernel.load %x0[4*i0 + i1]
        kernel.store %v, %y[3*i0 + i1]
        kernel.yield
      }
      kernel.yield
    }"""
    x = torch.randn(4, 4)
    with pytest.raises(RaceError, match=r"writes place 3, .*in kernel\.for i0 in 0 to 4 map parallel"):
        launch(body, x, out=x)
    launch(body.replace("map parallel", "map serial"), x, out=torch.zeros(13))


def test_race_of_a_store_that_does_not_move_with_an_inner_loop() -> None:
    body = """kernel.for i0 in 0 to 4 map parallel {
      kernel.for i1 in 0 to 4 map vector {
        %v = kernel.load %x0[4*i0 + i1]
        kernel.store %v, %y[i0]
        kernel.yield
      }
      kernel.yield
    }"""
    x = torch.randn(4, 4)
    with pytest.raises(RaceError, match=r"in kernel\.for i1 in 0 to 4 map vector"):
        launch(body, x, out=torch.zeros(4))
    assert torch.equal(launch(body.replace("map vector", "map serial"), x, out=torch.zeros(4)), x[:, 3])


def test_each_iteration_has_its_own_local() -> None:
    body = """kernel.for i0 in 0 to 3 map parallel {
      %t = kernel.local : !kernel.buffer<f32, 2, local>
      %v = kernel.load %x0[i0]
      kernel.store %v, %t[1]
      %w = kernel.load %t[INDEX]
      kernel.store %w, %y[i0]
      kernel.yield
    }"""
    x = torch.randn(3)
    assert torch.equal(launch(body.replace("INDEX", "1"), x, out=x), x)
    with pytest.raises(UninitialisedReadError, match=r"kernel\.load %t\[0\].* at .*i0 = 0"):
        launch(body.replace("INDEX", "0"), x, out=x)
    with pytest.raises(OutOfBoundsError, match=r"index 2 .*size 2 at .*i0 = 0"):
        launch(body.replace("INDEX", "2"), x, out=x)
    assert bool(launch(body.replace("INDEX", "0"), x, out=x, strict=False).isnan().all())


@pytest.mark.parametrize("mapping", ["map parallel", "map vector tile 16", "map serial"])
def test_out_of_bounds_store(mapping: str) -> None:
    x = torch.randn(185)
    body = COPY.replace("MAPPING", mapping).replace("0 to 185", "0 to 186").replace("%x0[i0]", "%x0[0]")
    with pytest.raises(OutOfBoundsError, match=r"kernel\.store %v, %y\[i0\]: index 185 .*size 185 at i0 = 185"):
        launch(body, x, out=x)


def test_wrong_tail_leaves_elements_undefined() -> None:
    x = torch.randn(185)
    body = COPY.replace("MAPPING", "map vector tile 16")
    tail = body.replace("i0 in 0 to 185", "i1 in 177 to 185").replace("[i0]", "[i1]")
    whole = body.replace("0 to 185", "0 to 16*(185 floordiv 16)")
    with pytest.raises(UninitialisedReadError, match=r"host\.return %y: reads element \[176\]"):
        launch(whole + tail, x, out=x)
    assert torch.equal(launch(whole + tail.replace("177", "176"), x, out=x), x)


def test_ragged_loops() -> None:
    x = torch.randn(4, 4)
    got = launch(
        """kernel.for i0 in 0 to 4 map parallel {
          %s = kernel.reduce sum r0 in 0 to i0 + 1 map vector tile 4 {
            %v = kernel.load %x0[4*i0 + r0]
            kernel.yield %v
          }
          kernel.store %s, %y[i0]
          kernel.yield
        }""",
        x,
        out=torch.zeros(4),
    )
    assert not differences(x.tril().sum(1), got)


def test_masked_store_and_unsigned_elements() -> None:
    x = torch.tensor([200, 3, 255, 0, 7, 90], dtype=torch.uint8)
    got = launch(
        """kernel.for i0 in 0 to 6 map vector tile 4 {
          %v = kernel.load %x0[i0]
          kernel.store %v, %y[i0]
          %limit = arith.constant 100 : i8
          %large = arith.cmpi ugt, %v, %limit : i8
          kernel.store %limit, %y[i0] if %large
          kernel.yield
        }""",
        x,
        out=x,
    )
    assert torch.equal(got, x.clamp(max=100))


def test_custom_reduce() -> None:
    x = torch.arange(1.0, 8)
    got = launch(
        """%one = arith.constant 1.0 : f32
        %p = kernel.reduce custom init(%one) r0 in 0 to 7 map vector tile 4 {
          %v = kernel.load %x0[r0]
          kernel.yield %v
        } combine {
        ^bb0(%a: f32, %b: f32):
          %c = arith.mulf %a, %b : f32
          kernel.yield %c
        }
        kernel.store %p, %y[0]""",
        x,
        out=torch.zeros(1),
    )
    assert got.item() == 5040.0


def test_division_by_zero() -> None:
    x = torch.tensor([1, 0], dtype=torch.int64)
    body = """kernel.for i0 in 0 to 2 map parallel {
      %v = kernel.load %x0[i0]
      CHECK
      %q = arith.divsi %v, %v : i64
      kernel.store %q, %y[i0]
      kernel.yield
    }"""
    with pytest.raises(InterpretationError, match=r"arith\.divsi .*: division by zero at i0 = 1"):
        launch(body.replace("CHECK", ""), x, out=x)
    check = "%z = arith.constant 0 : i64\n%ok = arith.cmpi ne, %v, %z : i64\nkernel.assert %ok, 1"
    with pytest.raises(IndexError):
        launch(body.replace("CHECK", check), x, out=x)


STEPS = """
kernel.for r0 in 0 to 40 map vector tile 16 {
  %v = kernel.load %x0[r0]
  kernel.store %v, %x1[39 - r0]
  kernel.yield
}
BARRIER
kernel.for r1 in 0 to 40 map vector tile 16 {
  %v = kernel.load %x1[r1]
  kernel.store %v, %y[r1]
  kernel.yield
}"""


@pytest.mark.parametrize("schedule", ['target "cuda:90" num_warps 4', 'target "cuda:90"', 'target "cpp"'])
def test_threads_of_a_program_see_what_others_stored_behind_a_barrier(schedule: str) -> None:
    """Until there are warps a program is one thread."""
    x = torch.randn(40)
    arguments = x, torch.zeros(40)
    behind = launch(STEPS.replace("BARRIER", "kernel.barrier"), *arguments, out=x, schedule=schedule)
    assert torch.equal(behind, x.flip(0))
    if "num_warps" in schedule:
        with pytest.raises(RaceError, match=r"load %x1\[r1\]: reads place \d+, which another thread may have stored"):
            launch(STEPS.replace("BARRIER", ""), *arguments, out=x, schedule=schedule)
    else:
        assert torch.equal(launch(STEPS.replace("BARRIER", ""), *arguments, out=x, schedule=schedule), x.flip(0))


@pytest.mark.parametrize("barrier", ["", "kernel.barrier"])
def test_each_step_may_read_what_an_earlier_one_stored(barrier: str) -> None:
    body = """kernel.for i0 in 0 to 4 map vector tile 4 {
      %v = kernel.load %x0[i0]
      kernel.store %v, %y[i0]
      kernel.yield
    }
    kernel.for r0 in 1 to 5 {
      BARRIER
      kernel.for i0 in 0 to 4 map vector tile 4 {
        %w = kernel.load %y[4*r0 - 1 - i0]
        kernel.store %w, %y[4*r0 + i0]
        kernel.yield
      }
      kernel.yield
    }""".replace("BARRIER", barrier)
    x, y, schedule = torch.arange(4.0), torch.zeros(20), 'target "cuda:90" num_warps 1'
    if not barrier:
        with pytest.raises(RaceError, match="another thread may have stored"):
            launch(body, x, out=y, schedule=schedule)
        return
    assert launch(body, x, out=y, schedule=schedule).tolist() == 2 * [0, 1, 2, 3, 3, 2, 1, 0] + [0, 1, 2, 3]


def test_a_thread_sees_what_it_stored_itself() -> None:
    body = """kernel.for i0 in 0 to 4 map grid tile 4 {
      %z = arith.constant 0.0 : f32
      kernel.store %z, %y[i0]
      kernel.for r0 in 0 to 3 {
        %w = kernel.load %x0[i0 + 4*r0]
        %a = kernel.load %y[i0]
        %b = arith.addf %a, %w : f32
        kernel.store %b, %y[i0]
        kernel.yield
      }
      kernel.yield
    }"""
    x = torch.arange(12.0)
    got = launch(body, x, out=torch.zeros(4), schedule='target "cuda:90" num_warps 1')
    assert got.tolist() == x.view(3, 4).sum(0).tolist()


def test_what_was_loaded_stays_when_its_place_is_written() -> None:
    (x, y) = run(
        """kernel.func @k(%x: !kernel.buffer<f64, 1>, %y: !kernel.buffer<f64, 1>) {
          %0 = kernel.load %x[0]
          %n = arith.negf %0 : f64
          kernel.store %n, %x[0]
          kernel.store %0, %y[0]
          kernel.yield
        }
        host.func @f(%x: !aten.tensor<f64>, %y: !aten.tensor<f64>) -> (!aten.tensor<f64>, !aten.tensor<f64>) {
          host.launch @k(%x, %y)
          host.return %x, %y
        }""",
        torch.tensor(2.0, dtype=torch.float64),
        torch.tensor(0.0, dtype=torch.float64),
    )
    assert (float(x), float(y)) == (-2.0, 2.0)
