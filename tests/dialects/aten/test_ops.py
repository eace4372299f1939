"""Building, reading and refusing ATen ops."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import Float64Type, IndexType, f16, f32, f64, i64
from xdsl.dialects.test import TestOp
from xdsl.ir import Attribute, SSAValue
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from inductile.dialects.aten import Aten, AtenOp, CallOp, Device, Reference, TensorType, Tuple
from inductile.dialects.aten.binding import Binding, bindings
from inductile.dialects.context import new_context
from inductile.dialects.effects import has_side_effect, is_pure
from inductile.dialects.sym import const, symbol

S0, U0, U1, D0 = symbol("s0"), symbol("u0"), symbol("u1"), symbol("d0")
T = TensorType.get((S0, const(8)), f32)


def values(*types: Attribute) -> tuple[SSAValue, ...]:
    return tuple(TestOp.create(result_types=types).results)


X, Y, INDICES, F = values(T, T, TensorType.get((const(4),), i64), f64)


def read(op: AtenOp) -> AtenOp:
    """The op as its text reads back."""
    names = {value: f"v{k}" for k, value in enumerate(dict.fromkeys(op.operands))}
    for value, name in names.items():
        value.name_hint = name
    arguments = ", ".join(f"%{name}: {value.type}" for value, name in names.items())
    text = f"func.func @f({arguments}) {{\n {op!s}\n func.return }}"
    module = Parser(new_context(), text).parse_module()
    function = module.body.block.first_op
    assert function is not None
    found = function.regions[0].block.first_op
    assert isinstance(found, AtenOp)
    found.verify()
    return found


ARGUMENTS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("aten.add.Tensor", {"self": X, "other": Y}, {"self": X, "other": Y, "alpha": 1}),
    ("aten.slice.Tensor", {"self": X, "end": S0 + 1}, {"dim": 0, "start": None, "end": S0 + 1, "step": 1}),
    ("aten.view", {"self": X, "size": (S0, 2, 4)}, {"size": (S0, 2, 4)}),
    ("aten.avg_pool2d", {"self": X, "kernel_size": 3}, {"kernel_size": (3, 3), "stride": (), "ceil_mode": False}),
    ("aten.sum.dim_IntList", {"self": X, "dim": None}, {"dim": None, "keepdim": False, "dtype": None}),
    ("aten.sum.dim_IntList", {"self": X, "dim": []}, {"dim": ()}),
    ("aten._to_copy", {"self": X, "dtype": "float16"}, {"dtype": f16, "device": None}),
    ("aten._to_copy", {"self": X, "dtype": f64, "device": "cuda:1"}, {"dtype": f64, "device": Device("cuda:1")}),
    ("aten.clamp.Tensor", {"self": X, "max": Y}, {"min": None, "max": Y}),
    ("aten.clamp", {"self": X, "min": None, "max": 2.5}, {"min": None, "max": 2.5}),
    ("aten.index.Tensor", {"self": X, "indices": [None, INDICES]}, {"indices": (None, INDICES)}),
    (
        "aten.index_put",
        {"self": X, "indices": [INDICES], "values": Y},
        {"indices": (INDICES,), "values": Y, "accumulate": False},
    ),
    ("aten.cat", {"tensors": [X, Y, X], "dim": -1}, {"tensors": (X, Y, X), "dim": -1}),
    ("aten.cat", {"tensors": []}, {"tensors": ()}),
    ("aten.mul.Scalar", {"self": X, "other": F}, {"other": F}),
    ("aten.mul.Scalar", {"self": X, "other": True}, {"other": True}),
    ("aten.mul.Scalar", {"self": X, "other": 1 - 2j}, {"other": 1 - 2j}),
    ("aten.dropout", {"input": X, "p": 1, "train": True}, {"p": 1.0, "train": True}),
    ("aten.gelu", {"self": X, "approximate": 'ta"nh\n'}, {"approximate": 'ta"nh\n'}),
    (
        "aten.randint.low_generator",
        {"low": 0, "high": S0, "size": [2], "generator": Reference("g")},
        {"generator": "g"},
    ),
    ("aten.bucketize.Scalar", {"self": 1.5, "boundaries": X}, {"self": 1.5, "right": False}),
]


@pytest.mark.parametrize(("name", "given", "expected"), ARGUMENTS, ids=lambda v: v if isinstance(v, str) else "")
def test_arguments_read_back(name: str, given: dict[str, Any], expected: dict[str, Any]) -> None:
    op = AtenOp.of(name, given, (T,))
    op.verify()
    assert {key: op.arg(key) for key in expected} == expected
    assert [type(op.arg(key)) for key in expected] == [type(value) for value in expected.values()] or any(
        isinstance(value, str) for value in expected.values()
    )
    again = read(op)
    assert again.properties == op.properties
    assert len(again.operands) == len(op.operands)
    assert list(op.args()) == [argument.name for argument in op.schema.arguments]


def test_defaults_are_not_spelled() -> None:
    spelled = AtenOp.of("aten.slice.Tensor", {"self": X, "dim": 0, "start": None, "end": None, "step": 1}, (T,))
    assert spelled.properties == {}
    wrapped = AtenOp.of(
        "aten.upsample_nearest2d.vec", {"input": X, "output_size": None, "scale_factors": [2, 2.5]}, (T,)
    )
    assert wrapped.arg("scale_factors") == (2.0, 2.5)
    assert wrapped.properties.keys() == {"scale_factors"}


@given(st.floats() | st.sampled_from([0.0, -0.0, math.inf, -math.inf, 1e-12, 5e-324, 1.7976931348623157e308]))
def test_floats_keep_their_bits(value: float) -> None:
    op = AtenOp.of("aten.mul.Scalar", {"self": X, "other": value}, (T,))
    found = read(op).arg("other")
    assert type(found) is float
    same = struct.pack("d", found) == struct.pack("d", value)
    assert same or (math.isnan(found) and math.isnan(value))


@given(st.integers(-(2**63), 2**63 - 1) | st.booleans())
def test_integers_and_bools_keep_their_kind(value: int) -> None:
    found = read(AtenOp.of("aten.mul.Scalar", {"self": X, "other": value}, (T,))).arg("other")
    assert found == value and type(found) is type(value)


def test_kinds_of_scalars_are_different_ops() -> None:
    properties = [
        AtenOp.of("aten.mul.Scalar", {"self": X, "other": v}, (T,)).properties for v in (1, 1.0, True, -0.0, 0.0)
    ]
    assert all(a != b for k, a in enumerate(properties) for b in properties[:k])


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("aten.add.Tensor", {"self": X}, "needs argument 'other'"),
    ("aten.add.Tensor", {"self": X, "other": Y, "dim": 1}, "no argument dim"),
    ("aten.add.Tensor", {"self": X, "other": 2}, "'other' must be a tensor value"),
    ("aten.add.Tensor", {"self": X, "other": None}, "must be a tensor, not None"),
    ("aten.softmax.int", {"self": X, "dim": "one"}, "'dim' takes constant int, not 'one'"),
    ("aten.softmax.int", {"self": X, "dim": 1.5}, "'dim' takes constant int, not 1.5"),
    ("aten.softmax.int", {"self": X, "dim": symbol("s0") + 1}, "'dim' takes constant int"),
    ("aten.permute", {"self": X, "dims": [symbol("s0"), 0]}, "'dims' takes list of constant int"),
    ("aten.view", {"self": X, "size": [1, 2.5]}, "takes list of int"),
    ("aten.mul.Scalar", {"self": X, "other": object()}, "cannot hold a object"),
    ("aten.cat", {"tensors": [X, 1]}, "list of tensor values"),
]


@pytest.mark.parametrize(("name", "given", "message"), REFUSED)
def test_wrong_arguments_are_refused(name: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        AtenOp.of(name, given, (T,))


def test_unknown_op() -> None:
    with pytest.raises(KeyError, match=r"aten\.nope"):
        AtenOp.of("aten.nope", {}, ())


WRONG_TEXT = [
    ("%0 = aten.add.Tensor(%x) : T", "aten.add.Tensor needs tensor 'other'"),
    ("%0 = aten.add.Tensor(%x, %x, dim = 1) : T", "aten.add.Tensor takes by name: alpha; not dim"),
    ("%0 = aten.add.Tensor(%x, %x, alpha = 3, alpha = 2) : T", "argument alpha is given twice"),
    ("%0 = aten.add.Tensor(%x, %x, %x) : T", "takes 2 tensors by position"),
    ('%0 = aten.softmax.int(%x, dim = "one") : T', "argument dim of aten.softmax.int takes constant int"),
    ("%0 = aten.softmax.int(%x, dim = s0 + 1) : T", "argument dim of aten.softmax.int takes constant int, not"),
    ("%0 = aten.exp(%y) : T", "value %y is used before it is defined"),
    ("%0 = aten.mul.Scalar(%x, other = " + "[" * 80 + "]" * 80 + ") : T", "nested more than 64 deep"),
    ("%0 = aten.nothing(%x) : T", "aten.nothing"),
]


@pytest.mark.parametrize(("line", "message"), WRONG_TEXT, ids=lambda v: v[:40])
def test_wrong_text_is_refused(line: str, message: str) -> None:
    text = f"func.func @f(%x: {T}) {{ {line.replace(': T', f': {T}')} func.return }}"
    with pytest.raises(ParseError, match=message.replace(".", r"\.")):
        Parser(new_context(), text).parse_module()


INVALID: list[tuple[Callable[[], AtenOp | CallOp], str]] = [
    (lambda: AtenOp.of("aten.exp", {"self": X}, (T, T)), "has 2 results, the schema says 1"),
    (lambda: AtenOp.of("aten.exp", {"self": X}, (f64,)), "result of type f64 where the schema has a tensor"),
    (lambda: AtenOp.of("aten.exp", {"self": F}, (T,)), "expects tensors, got a value of type f64"),
    (lambda: AtenOp.of("aten.mul.Scalar", {"self": X, "other": Y}, (T,)), "expects a number"),
    (lambda: AtenOp.of("aten.item", {"self": X}, (T,)), "where the schema has a scalar"),
    (lambda: CallOp.of("a::b", (X,), {}, (f16,)), "a call cannot return f16"),
]


@pytest.mark.parametrize(("build", "message"), INVALID)
def test_invalid_ops_do_not_verify(build: Callable[[], AtenOp | CallOp], message: str) -> None:
    with pytest.raises(VerifyException, match=message):
        build().verify()


def test_missing_properties_do_not_verify() -> None:
    op = AtenOp.of("aten.softmax.int", {"self": X, "dim": 0}, (T,))
    del op.properties["dim"]
    with pytest.raises(VerifyException, match="'dim' is missing"):
        op.verify()


def test_result_groups() -> None:
    names = ("self", "grads", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs", "state_steps")
    numbers = {"lr": 0.1, "beta1": 0.9, "beta2": 0.9, "weight_decay": 0, "eps": 0, "amsgrad": False, "maximize": False}
    op_args: dict[str, Any] = {key: [X, Y] for key in names} | numbers
    cls = next(c for c in Aten.operations if c.name == "aten._fused_adam")
    assert issubclass(cls, AtenOp)
    op = cls.build(op_args, (T,) * 8, result_sizes=(2, 2, 2, 2, 0))
    op.verify()
    assert op.result_sizes == (2, 2, 2, 2, 0)
    assert read(op).result_sizes == (2, 2, 2, 2, 0)


def test_calls_hold_any_nesting() -> None:
    op = CallOp.of(
        "a::b",
        (X, [1, None, [Y, 2.5]], {"k": (S0, F)}, Tuple((1, Tuple((Y,))))),
        {"m": Reference("g")},
        (T,),
        pure=True,
    )
    op.verify()
    assert op.args() == (X, (1, None, (Y, 2.5)), {"k": (S0, F)}, (1, (Y,)))
    assert [type(argument) for argument in op.args()[1:]] == [tuple, dict, Tuple]
    assert op.kwargs() == {"m": "g"} and type(op.kwargs()["m"]) is Reference


def test_effects() -> None:
    pure = AtenOp.of("aten.exp", {"self": X}, (T,))
    random = AtenOp.of("aten.rand_like", {"self": X}, (T,))
    write = AtenOp.of("aten.copy_", {"self": X, "src": Y}, (T,))
    binder = AtenOp.of("aten.item", {"self": INDICES}, (IndexType(),), binds=("u0",))
    check = AtenOp.of("aten._assert_async.msg", {"self": X, "assert_msg": "no"}, ())
    assert [is_pure(op) for op in (pure, random, write, binder, check)] == [True, False, False, False, False]
    assert [has_side_effect(op) for op in (pure, random, write, binder, check)] == [False, True, True, True, True]
    assert is_pure(CallOp.of("a::b", (X,), {}, (T,), pure=True))
    assert not is_pure(CallOp.of("a::b", (X,), {}, (T,)))


def test_bindings_follow_from_results() -> None:
    item = AtenOp.of("aten.item", {"self": INDICES}, (IndexType(),), binds=("u0",))
    assert bindings(item) == [Binding("u0", 0, None, D0)]
    rows = AtenOp.of("aten.nonzero", {"self": X}, (TensorType.get((U0, const(2)), i64),), binds=("u0",))
    assert bindings(rows) == [Binding("u0", 0, 0, D0)]
    twice = CallOp.of("a::b", (X,), {}, (TensorType.get((2 * U0 + 1, U1), f32),), binds=("u1", "u0"))
    assert bindings(twice) == [Binding("u0", 0, 0, (D0 - 1) // 2), Binding("u1", 0, 1, D0)]
    apart = CallOp.of("a::b", (X,), {}, (TensorType.get((const(3), const(2)), f32, (U0, const(1))),), binds=("u0",))
    assert bindings(apart) == [Binding("u0", 0, None, D0, stride=0)]
    with pytest.raises(ValueError, match=r"no result of aten\.call gives u0"):
        bindings(CallOp.of("a::b", (X,), {}, (Float64Type(),), binds=("u0",)))
