"""Host programs: the Python around the kernels."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from xdsl.parser import Parser

from inductile.backends.host import HostProgram, build
from inductile.dialects.context import new_context
from inductile.errors import UnsupportedError, UserError
from inductile.lowering.registry import parse_passes
from inductile.passes.manager import PassManager

KERNELS = """
kernel.func @double(%x: !kernel.buffer<f32, n>, %y: !kernel.buffer<f32, n>) symbols (n) {
  kernel.for i0 in 0 to n map vector {
    %v = kernel.load %x[i0]
    %w = arith.addf %v, %v : f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @check(%x: !kernel.buffer<f32, n>, %y: !kernel.buffer<f32, n>) symbols (n)
    errors ["ZeroDivisionError: division by zero"] {
  %zero = arith.constant 0.0 : f32
  kernel.for i0 in 0 to n {
    %v = kernel.load %x[i0]
    %ok = arith.cmpf une, %v, %zero : f32
    kernel.assert %ok, 1
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}
"""


def program(text: str) -> HostProgram:
    module = Parser(new_context(), KERNELS + text).parse_module()
    module.verify()
    return build(module)


def test_symbols_come_from_sizes_strides_and_integers() -> None:
    run = program("""
host.func @f(%x: !aten.tensor<(s0)x(s1)xf32, strides = [s2, 1]>, %k: index)
    -> (!aten.tensor<(s0*s1 + s3)xf32>, index, index)
    symbols [#sym.symbol<s0, arg = 0, dim = 0>, #sym.symbol<s1, arg = 0, dim = 1>,
             #sym.symbol<s2, arg = 0, stride = 0>, #sym.symbol<s3, arg = 1>] {
  %y = host.empty : !aten.tensor<(s0*s1 + s3)xf32>
  %a = sym.int s2*(s0 floordiv 2) - s3 + max(s0, s1) mod 5
  host.return %y, %a, %k
}""")
    x = torch.empty(7, 20)[:, :9]
    y, a, k = run([x, 4])
    assert y.shape == (7 * 9 + 4,)
    assert a == 20 * 3 - 4 + 9 % 5
    assert k == 4


def test_arguments_are_cleared_and_freed_when_the_program_says_so() -> None:
    run = program("""
host.func @f(%x: !aten.tensor<8xf32>) -> (!aten.tensor<8xf32>) {
  %y = host.empty : !aten.tensor<8xf32>
  host.launch @double(%x, %y) [8]
  host.free %x
  %z = aten.relu(%y) : !aten.tensor<8xf32>
  host.free %y
  host.return %z
}""")
    x = torch.randn(8)
    args, alive, want = [x], weakref.ref(x), (2 * x).relu()
    del x
    (z,) = run(args)
    assert args == []
    gc.collect()
    assert alive() is None
    assert torch.equal(z, want)
    assert "del a0" in run.source


THREE = """
host.func @f(%x: !aten.tensor<(s0)xf32>) -> (!aten.tensor<(s0)xf32>) symbols [#sym.symbol<s0, arg = 0, dim = 0>] {
  %a = host.empty : !aten.tensor<(s0)xf32>
  host.launch @double(%x, %a) [s0]
  %b = host.empty : !aten.tensor<(s0)xf32>
  host.launch @double(%a, %b) [s0]
  host.free %a
  %c = host.empty : !aten.tensor<(s0)xf32>
  host.launch @check(%b, %c) [s0]
  host.free %b
  host.return %c
}"""


def test_launches_in_a_row_are_one_call() -> None:
    run = program(THREE)
    x = torch.randn(1000)
    assert torch.equal(run([x])[0], 4 * x)
    # memory that is freed between launches can serve the next allocation
    lines = [line.strip() for line in run.source.splitlines()]
    assert sum("launch" in line for line in lines) == 2
    assert lines.index(next(line for line in lines if line.startswith("del"))) < lines.index(
        next(line for line in lines if line.startswith("t3 = empty"))
    )
    together = program(THREE.replace("host.free %a\n", ""))
    assert together.source.count("launch") == 1
    assert torch.equal(together([x])[0], 4 * x)


@pytest.mark.parametrize("text", [THREE, THREE.replace("host.free %a\n", "")])
def test_a_kernel_of_a_run_raises_what_eager_would(text: str) -> None:
    run = program(text)
    x = torch.randn(1000)
    x[500] = 0.0
    with pytest.raises(ZeroDivisionError, match=r"^division by zero$"):
        run([x])


def test_tensors_in_a_pool_are_addresses_unless_something_needs_a_tensor() -> None:
    run = program("""
host.func @f(%x: !aten.tensor<6xf32>) -> (!aten.tensor<6xf32>, !aten.tensor<2x3xf32>) {
  %pool = host.empty : !aten.tensor<192xui8>
  %a = host.empty in %pool at 64 : !aten.tensor<6xf32>
  host.launch @double(%x, %a) [6]
  %b = host.empty in %pool at 128 : !aten.tensor<6xf32>
  host.launch @double(%a, %b) [6]
  %c = aten.relu(%b) : !aten.tensor<6xf32>
  %d = host.empty in %pool at 0 : !aten.tensor<2x3xf32>
  host.launch @double(%a, %d) [6]
  host.return %c, %d
}""")
    x = torch.randn(6)
    c, d = run([x])
    assert torch.equal(c, (4 * x).relu())
    assert torch.equal(d, (4 * x).view(2, 3))
    assert run.source.count("in_pool(") == 2


def test_a_view_of_memory_in_a_pool_is_made_in_the_pool() -> None:
    """No tensor is made of what launches write and others look at through views; its own place is an address."""
    run = program("""
host.func @f(%x: !aten.tensor<6xf32>) -> (!aten.tensor<2x3xf32>, !aten.tensor<3xf32>) {
  %pool = host.empty : !aten.tensor<192xui8>
  %a = host.empty in %pool at 64 : !aten.tensor<6xf32>
  host.launch @double(%x, %a) [6]
  %m = host.view %a offset 0 : !aten.tensor<2x3xf32>
  %c = aten.relu(%m) : !aten.tensor<2x3xf32>
  %l = host.view %a offset 3 : !aten.tensor<3xf32>
  host.free %m
  %d = aten.neg(%l) : !aten.tensor<3xf32>
  host.free %a, %l, %pool
  host.return %c, %d
}""")
    x = torch.randn(6)
    c, d = run([x])
    assert torch.equal(c, (2 * x).relu().view(2, 3))
    assert torch.equal(d, -2 * x[3:])
    assert run.source.count("in_pool(") == 2 and "strided(" not in run.source
    assert "76" in run.source  # bytes: the place, and three numbers


PLACES = """
host.func @f(%x: !aten.tensor<6xf32>) -> (!aten.tensor<6xf32>, !aten.tensor<6xf32>) {
  %pool = host.empty : !aten.tensor<192xui8>
  %a = host.empty in %pool at 64 : !aten.tensor<6xf32>
  host.launch @double(%x, %a) [6]
  %c = aten.relu(%a) : !aten.tensor<6xf32>
  %b = host.empty in %pool at 64 : !aten.tensor<6xf32>
  host.launch @double(%c, %b) [6]
  %d = aten.neg(%b) : !aten.tensor<6xf32>
  host.return %c, %d
}"""


@pytest.mark.parametrize(("passes", "count"), [("host-free", 2), ("host-share-places,host-free", 1)])
def test_one_tensor_a_place_of_a_pool(passes: str, count: int) -> None:
    """Memory of a place that was used is the tensor that is there; it ends with the pool."""
    module = Parser(new_context(), KERNELS + PLACES).parse_module()
    PassManager(parse_passes(passes)).run(new_context(), module)
    run = build(module)
    x = torch.randn(6)
    for _ in range(2):
        c, d = run([x])
        assert torch.equal(c, (2 * x).relu())
        assert torch.equal(d, -2 * c)
    assert run.source.count("in_pool(") == count


def test_views() -> None:
    run = program("""
host.func @f(%x: !aten.tensor<(s0)x8xf32>) -> (!aten.tensor<4x(s0)xf32, strides = [1, 8]>, !aten.tensor<8xf32>)
    symbols [#sym.symbol<s0, arg = 0, dim = 0>] {
  %v = host.view %x offset 4 : !aten.tensor<4x(s0)xf32, strides = [1, 8]>
  %row = host.view %x offset 8*s0 - 8 : !aten.tensor<8xf32>
  %inner = host.view %row offset 2 : !aten.tensor<2xf32>
  %y = host.empty : !aten.tensor<8xf32>
  host.launch @double(%row, %y) [8]
  host.launch @double(%inner, %y) [2]
  host.return %v, %y
}""")
    base = torch.randn(6, 8)
    x = base[1:]  # a view itself: offsets count from its first element
    v, y = run([x])
    assert torch.equal(v, x[:, 4:].t())
    assert v.data_ptr() == x[0, 4:].data_ptr()
    want = 2 * x[-1]
    want[:2] = 2 * x[-1, 2:4]
    assert torch.equal(y, want)


def test_a_view_of_another_type() -> None:
    """Dead memory is taken over by bytes: what ATen is given is of the type that the IR says."""
    run = program("""
host.func @f(%x: !aten.tensor<2x3xf64>) -> (!aten.tensor<2x2xf32>) {
  %y = host.view %x offset 2 : !aten.tensor<5x2xf32>
  %w = host.view %y offset 4 : !aten.tensor<2x3xf32, strides = [1, 2]>
  %z = host.view %x offset 0 : !aten.tensor<3x2xf32, strides = [2, 1]>
  %product = aten.mm(%w, %z) : !aten.tensor<2x2xf32>
  host.return %product
}""")
    x = torch.randn(12).view(torch.float64).view(2, 3)
    flat = x.view(-1).view(torch.float32)
    want = flat[6:12].view(3, 2).t() @ flat[:6].view(3, 2)
    torch.testing.assert_close(run([x])[0], want)


def test_a_view_keeps_memory_alive_after_its_source_is_freed() -> None:
    run = program("""
host.func @f(%x: !aten.tensor<(s0)xf32>) -> (!aten.tensor<4xf32>) symbols [#sym.symbol<s0, arg = 0, dim = 0>] {
  %a = host.empty : !aten.tensor<(s0)xf32>
  host.launch @double(%x, %a) [s0]
  %v = host.view %a offset s0 - 4 : !aten.tensor<4xf32>
  %w = host.view %v offset 0 : !aten.tensor<4xf32>
  host.free %a, %x
  %b = host.empty : !aten.tensor<(s0)xf32>
  %c = aten.fill.Scalar(%b, value = 0.0) : !aten.tensor<(s0)xf32>
  %y = host.empty : !aten.tensor<4xf32>
  host.launch @double(%w, %y) [4]
  host.return %y
}""")
    x = torch.randn(100_000)
    want = 4 * x[-4:]
    assert "strided(" in run.source
    assert torch.equal(run([x])[0], want)


def test_aten_calls_of_all_kinds() -> None:
    run = program("""
host.func @f(%x: !aten.tensor<4x6xf32>, %i: !aten.tensor<2xi64>)
    -> (!aten.tensor<4x3xf32>, !aten.tensor<4xf32>, !aten.tensor<4xi64>, !aten.tensor<2x6xf32>, !aten.tensor<4x6xf64>,
        !aten.tensor<2x6xf16>) {
  %a, %b = aten.split.Tensor(%x, split_size = 3, dim = 1)
    : !aten.tensor<4x3xf32, strides = [6, 1]>, !aten.tensor<4x3xf32, strides = [6, 1]>
  %s = aten.add.Tensor(%a, %b, alpha = 3) : !aten.tensor<4x3xf32>
  %m, %k = aten.max.dim(%x, dim = 1) : !aten.tensor<4xf32>, !aten.tensor<4xi64>
  %g = aten.index.Tensor(%x, [%i]) : !aten.tensor<2x6xf32>
  %d = aten._to_copy(%x, dtype = torch.float64) : !aten.tensor<4x6xf64>
  %z = aten.full(size = [2, 6], fill_value = inf, dtype = torch.float16, device = "cpu")
    : !aten.tensor<2x6xf16>
  host.return %s, %m, %k, %g, %d, %z
}""")
    x, i = torch.randn(4, 6), torch.tensor([3, 1])
    s, m, k, g, d, z = run([x, i])
    torch.testing.assert_close(s, x[:, :3] + 3 * x[:, 3:])
    assert torch.equal(m, x.amax(1)) and torch.equal(k, x.argmax(1))
    assert torch.equal(g, x[i]) and torch.equal(d, x.double())
    assert torch.equal(z, torch.full((2, 6), float("inf"), dtype=torch.float16))


def test_unbacked_symbols_are_bound_by_the_op_that_makes_them() -> None:
    run = program("""
host.func @f(%x: !aten.tensor<9xf32>, %n: !aten.tensor<1xi64>)
    -> (!aten.tensor<(u0)x1xi64>, !aten.tensor<(u0 + u1)xf32>)
    symbols [#sym.symbol<u0, min = 0>, #sym.symbol<u1, min = 0>] {
  %i = aten.nonzero(%x) binds [u0] : !aten.tensor<(u0)x1xi64>
  %k = aten._local_scalar_dense(%n) binds [u1] : index
  %y = host.empty : !aten.tensor<(u0 + u1)xf32>
  host.return %i, %y
}""")
    x = torch.tensor([0.0, 1, 0, 1, 1, 0, 0, 1, 0])
    i, y = run([x, torch.tensor([5])])
    assert i.flatten().tolist() == [1, 3, 4, 7]
    assert y.shape == (9,)


def test_results_of_aten_in_another_layout_are_copied_before_a_kernel_reads_them() -> None:
    run = program("""
host.func @f(%x: !aten.tensor<3x4xf32>) -> (!aten.tensor<3x4xf32>) {
  %t = aten.clone(%x) : !aten.tensor<3x4xf32>
  %y = host.empty : !aten.tensor<3x4xf32>
  host.launch @double(%t, %y) [12]
  host.return %y
}""")
    x = torch.randn(4, 3).t()  # clone keeps these strides, the type says row-major
    assert torch.equal(run([x])[0], 2 * x)


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64", "i64"])
def test_products_lie_in_rows_whatever_they_are_given(dtype: str) -> None:
    """Nothing looks at the strides of what they give before kernels read it."""
    element = {"f32": torch.float32, "bf16": torch.bfloat16, "f64": torch.float64, "i64": torch.int64}[dtype]
    text = f"""
host.func @f(%a: !aten.tensor<3x4x{dtype}>, %b: !aten.tensor<4x5x{dtype}>, %c: !aten.tensor<5x{dtype}>)
    -> (!aten.tensor<15x{dtype}>, !aten.tensor<15x{dtype}>) {{
  %m = aten.mm(%a, %b) : !aten.tensor<3x5x{dtype}>
  %n = aten.addmm(%c, %a, %b) : !aten.tensor<3x5x{dtype}>
  %p = host.view %m offset 0 : !aten.tensor<15x{dtype}>
  %q = host.view %n offset 0 : !aten.tensor<15x{dtype}>
  host.return %p, %q
}}"""
    run = program(text)
    assert "fit(" not in run.source
    a, b, c = (torch.randint(0, 9, size).to(element) for size in ((4, 3), (5, 4), (10,)))
    c = c[::2]
    p, q = run([a.t(), b.t(), c])
    assert torch.equal(p.view(3, 5), a.t() @ b.t()) and torch.equal(q.view(3, 5), a.t() @ b.t() + c)


@pytest.mark.parametrize("name", ["mm", "addmm", "bmm", "baddbmm"])
@pytest.mark.parametrize("flips", range(4))
def test_the_products_of_this_torch_lie_in_rows(name: str, flips: int) -> None:
    batch = (2,) if name in ("bmm", "baddbmm") else ()
    left = torch.randn(*batch, 8, 3).mT if flips & 1 else torch.randn(*batch, 3, 8)
    right = torch.randn(*batch, 5, 8).mT if flips & 2 else torch.randn(*batch, 8, 5)
    added = [torch.randn(*batch, 5, 3).mT] if name in ("addmm", "baddbmm") else []
    for device in ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]:
        given = [each.to(device) for each in (*added, left, right)]
        for dtype in (torch.float32, torch.bfloat16):
            assert getattr(torch.ops.aten, name)(*(each.to(dtype) for each in given)).is_contiguous()


def test_writes_to_inputs() -> None:
    run = program("""
host.func @f(%x: !aten.tensor<8xf32>, %y: !aten.tensor<8xf64>) -> () {
  %t = host.empty : !aten.tensor<8xf32>
  host.launch @double(%x, %t) [8]
  host.copy %t to %y
  %r = aten.copy_(%x, %t) : !aten.tensor<8xf32>
  host.return
}""")
    x, y = torch.randn(8), torch.zeros(8, dtype=torch.float64)
    want = 2 * x
    assert run([x, y]) == []
    assert torch.equal(x, want) and torch.equal(y, want.double())


def test_no_text_of_the_ir_becomes_code() -> None:
    run = program("""
host.func @evil(%import: !aten.tensor<2x2xf32>) -> (!aten.tensor<2x2xf32>) {
  %lambda = aten.call pure "aten::einsum"("ij,jk->ik", [%import, %import]) : !aten.tensor<2x2xf32>
  %text = aten.call pure "aten::einsum"("'); import os; ('", [%import]) : !aten.tensor<2x2xf32>
  host.return %lambda
}""")
    for word in ("import", "lambda", "ij", "evil", "os"):
        assert word not in run.source
    with pytest.raises(RuntimeError, match="einsum"):
        run([torch.randn(2, 2)])


def test_kernels_with_hundreds_of_arguments() -> None:
    names = [f"x{k}" for k in range(300)]
    loads = "\n".join(f"%v{k} = kernel.load %{name}[0]" for k, name in enumerate(names))
    sums = "\n".join(f"%s{k + 1} = arith.addf %s{k}, %v{k} : f32" for k in range(300))
    kernel = f"""
kernel.func @many({", ".join(f"%{name}: !kernel.buffer<f32, 1>" for name in names)}, %y: !kernel.buffer<f32, 1>) {{
  %s0 = arith.constant 0.0 : f32
  {loads}
  {sums}
  kernel.store %s300, %y[0]
  kernel.yield
}}"""
    run = program(f"""{kernel}
host.func @f({", ".join(f"%{name}: !aten.tensor<1xf32>" for name in names)}) -> (!aten.tensor<1xf32>) {{
  %a = host.empty : !aten.tensor<1xf32>
  %b = host.empty : !aten.tensor<1xf32>
  host.launch @many({", ".join(f"%{name}" for name in names)}, %a)
  host.launch @double(%a, %b) [1]
  host.return %b
}}""")
    assert run([torch.tensor([float(k)]) for k in range(300)])[0].item() == 300 * 299


def test_errors() -> None:
    with pytest.raises(UserError, match="0 host functions"):
        program("")
    with pytest.raises(UnsupportedError, match="no kernel @missing"):
        program("host.func @f(%x: !aten.tensor<2xf32>) -> () { host.launch @missing(%x) [2] host.return }")
    with pytest.raises(UnsupportedError, match="wrong number of arguments"):
        program("host.func @f(%x: !aten.tensor<2xf32>) -> () { host.launch @double(%x) [2] host.return }")
    with pytest.raises(UnsupportedError, match="no operator aten::no_such_op"):
        program("""host.func @f(%x: !aten.tensor<2xf32>) -> () {
          %y = aten.call "aten::no_such_op"(%x) : !aten.tensor<2xf32>
          host.return }""")


def test_a_traceback_shows_the_generated_line() -> None:
    import traceback

    run = program("""
host.func @f(%x: !aten.tensor<2xf32>) -> (!aten.tensor<3xf32>) {
  %y = aten.view(%x, size = [3]) : !aten.tensor<3xf32>
  host.return %y
}""")
    with pytest.raises(RuntimeError) as caught:
        run([torch.randn(2)])
    assert "t1 = call0(a0, [3])" in "".join(traceback.format_exception(caught.value))


def test_composed_views_see_the_same_memory() -> None:
    """Views of views of an argument that is one itself, with a symbol in the offset, and one that is its source."""
    text = """
host.func @f(%x: !aten.tensor<(s0)x8xf32>) -> (!aten.tensor<4xf32>, !aten.tensor<2x4xf32>, !aten.tensor<2x4xf32>)
    symbols [#sym.symbol<s0, arg = 0, dim = 0>] {
  %rows = host.view %x offset 8*s0 - 16 : !aten.tensor<2x8xf32>
  %columns = host.view %rows offset 1 : !aten.tensor<4x2xf32, strides = [2, 8]>
  %last = host.view %columns offset 6 : !aten.tensor<2x4xf32, strides = [1, 2]>
  %y = aten.relu(%last) : !aten.tensor<2x4xf32>
  %same = host.view %y offset 0 : !aten.tensor<2x4xf32>
  %z = aten.neg(%same) : !aten.tensor<2x4xf32>
  %part = host.view %z offset 4 : !aten.tensor<4xf32>
  host.return %part, %same, %y
}"""
    x = torch.randn(6, 8)[1:]
    made: list[list[torch.Tensor]] = []
    for passes in ("host-free", "host-compose-views,host-free"):
        module = Parser(new_context(), text).parse_module()
        PassManager(parse_passes(passes)).run(new_context(), module)
        run = build(module)
        made.append(run([x]))
        assert run.source.count("strided(") == (5 if passes == "host-free" else 3)
    for one, other in zip(*made, strict=True):
        assert torch.equal(one, other) and one.stride() == other.stride()
    part, same, y = made[1]
    assert same is not y and same.data_ptr() == y.data_ptr()
    want = x.reshape(-1)[8 * 5 - 16 + 7 :].as_strided((2, 4), (1, 2)).relu()
    assert torch.equal(y, want) and torch.equal(part, -want[1])
