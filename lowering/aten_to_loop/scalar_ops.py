"""Which op computes what for which kind of element type."""

from __future__ import annotations

from functools import lru_cache

from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import AnyFloat, BoolAttr, FloatAttr, IntegerAttr, IntegerType, i64
from xdsl.ir import Attribute, Operation

from ...dialects.aten.types import scalar_type
from .dtypes import kind

#: (operation, kind of the element type) -> op; both operands and the result have one type
BINARY: dict[tuple[str, str], type[Operation]] = {
    ("add", "float"): arith.AddfOp, ("add", "signed"): arith.AddiOp, ("add", "unsigned"): arith.AddiOp,
    ("add", "bool"): arith.OrIOp,
    ("sub", "float"): arith.SubfOp, ("sub", "signed"): arith.SubiOp, ("sub", "unsigned"): arith.SubiOp,
    ("sub", "bool"): arith.XOrIOp,
    ("mul", "float"): arith.MulfOp, ("mul", "signed"): arith.MuliOp, ("mul", "unsigned"): arith.MuliOp,
    ("mul", "bool"): arith.AndIOp,
    ("div", "float"): arith.DivfOp,
    ("max", "float"): arith.MaximumfOp, ("max", "signed"): arith.MaxSIOp, ("max", "unsigned"): arith.MaxUIOp,
    ("max", "bool"): arith.OrIOp,
    ("min", "float"): arith.MinimumfOp, ("min", "signed"): arith.MinSIOp, ("min", "unsigned"): arith.MinUIOp,
    ("min", "bool"): arith.AndIOp,
    ("fmax", "float"): arith.MaxnumfOp, ("fmin", "float"): arith.MinnumfOp,
    **{
        (name, of): op
        for name, op in (("and", arith.AndIOp), ("or", arith.OrIOp), ("xor", arith.XOrIOp))
        for of in ("bool", "signed", "unsigned")
    },
    ("shl", "signed"): arith.ShLIOp, ("shl", "unsigned"): arith.ShLIOp,
    ("shr", "signed"): arith.ShRSIOp, ("shr", "unsigned"): arith.ShRUIOp,
    ("quotient", "signed"): arith.DivSIOp, ("quotient", "unsigned"): arith.DivUIOp,
    ("rest", "signed"): arith.RemSIOp, ("rest", "unsigned"): arith.RemUIOp,
    ("power", "signed"): math_dialect.IPowIOp, ("power", "unsigned"): math_dialect.IPowIOp,
    ("power", "float"): math_dialect.PowFOp,
    ("atan2", "float"): math_dialect.Atan2Op, ("copysign", "float"): math_dialect.CopySignOp,
}  # fmt: skip

_FLOAT_PREDICATE = {"eq": 1, "gt": 2, "ge": 3, "lt": 4, "le": 5, "ne": 13}
_SIGNED_PREDICATE = {"eq": 0, "ne": 1, "lt": 2, "le": 3, "gt": 4, "ge": 5}
_UNSIGNED_PREDICATE = {"eq": 0, "ne": 1, "lt": 6, "le": 7, "gt": 8, "ge": 9}
#: (comparison, kind of the element type) -> op and its predicate
COMPARE: dict[tuple[str, str], tuple[type[Operation], dict[str, Attribute]]] = {
    (name, of): (op, {"predicate": IntegerAttr(number, i64)})
    for of, op, predicates in (
        ("float", arith.CmpfOp, _FLOAT_PREDICATE),
        ("signed", arith.CmpiOp, _SIGNED_PREDICATE),
        ("unsigned", arith.CmpiOp, _UNSIGNED_PREDICATE),
        ("bool", arith.CmpiOp, _UNSIGNED_PREDICATE),
    )
    for name, number in predicates.items()
}


@lru_cache(maxsize=4096)
def constant_properties(text: str, element: Attribute) -> dict[str, Attribute]:
    """The `value` property of a constant; the text tells -0.0 from 0.0 and equal NaNs as equal."""
    of = kind(element)
    if of == "bool":
        return {"value": BoolAttr.from_bool(text == "True")}
    if of == "float" or of is None:
        type_ = scalar_type(element)
        assert isinstance(type_, AnyFloat)
        return {"value": FloatAttr(float(text), type_)}
    type_ = scalar_type(element)
    assert isinstance(type_, IntegerType)
    width = type_.width.data
    wrapped = (int(text) + (1 << (width - 1))) % (1 << width) - (1 << (width - 1))
    return {"value": IntegerAttr(wrapped, type_)}
