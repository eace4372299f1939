"""Random changes of a module as objects: most of what they give is read, so that they reach what comes behind."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from inductile.dialects.context import new_context
from inductile.dialects.reading import Reader
from inductile.dialects.sym import AxesAttr, Expr, MapAttr, SymAttr, as_expr, symbol
from inductile.passes.printing import module_text

_INTEGERS = (-(1 << 63), -(1 << 31), -100, -2, -1, 0, 1, 2, 3, 5, 8, 16, 31, 1 << 20, (1 << 31) - 1, (1 << 63) - 1)
_FLOATS = (0.0, -0.0, 1.0, -1.5, 1e-40, 65520.0, 1e308, float("inf"), float("-inf"), float("nan"))
_STRINGS = (
    "", "sum", "max", "min", "prod", "set", "add", "argmax", "welford", "cpp", "cuda:90", "i0", "i1", "r0", "s0", "é",
    "IndexError: x", "RuntimeError", "trunc", "floor", "tanh", "reflect", "grid", "vector", "parallel", "serial",
)  # fmt: skip


def mutate_module(text: str, generator: random.Random) -> str | None:
    """The text of a module with one to four changes; None for a text that is no module, or one that cannot print."""
    try:
        module = Reader(new_context(), text).parse_module()
        for _ in range(generator.choice((1, 1, 2, 2, 3, 4))):
            generator.choice(_CHANGES)(module, generator)
        return module_text(module)
    except Exception:  # whatever malformed text gives; what the tools make of it is told elsewhere
        return None


def _ops(module: ModuleOp) -> list[Operation]:
    return [op for op in module.walk() if op is not module]


def _blocks(module: ModuleOp) -> list[Block]:
    return [block for op in module.walk() for region in op.regions for block in region.blocks]


def _visible(op: Operation) -> Iterator[SSAValue]:
    """Values that an op may use: of ops before it and of arguments, in its block and around it."""
    here: Operation | None = op
    while here is not None and here.parent is not None:
        block = here.parent
        yield from block.args
        for other in block.ops:
            if other is here:
                break
            yield from other.results
        here = block.parent_op()


def _swap_operands(module: ModuleOp, generator: random.Random) -> None:
    ops = [op for op in _ops(module) if len(op.operands) > 1]
    if ops:
        op = generator.choice(ops)
        operands = list(op.operands)
        a, b = generator.sample(range(len(operands)), 2)
        operands[a], operands[b] = operands[b], operands[a]
        op.operands = operands


def _replace_operand(module: ModuleOp, generator: random.Random) -> None:
    """Another value of the same type; now and then of any."""
    ops = [op for op in _ops(module) if op.operands]
    if ops:
        op = generator.choice(ops)
        place = generator.randrange(len(op.operands))
        same = generator.random() < 0.85
        found = [v for v in _visible(op) if not same or v.type == op.operands[place].type]
        if found:
            op.operands[place] = generator.choice(found)


def _replace_uses(op: Operation, generator: random.Random) -> bool:
    """Let other values of its types stand for an op's results; whether there are such."""
    for result in op.results:
        found = [v for v in _visible(op) if v.type == result.type]
        if result.uses and not found:
            return False
        if result.uses:
            result.replace_all_uses_with(generator.choice(found))
    return True


def _delete(module: ModuleOp, generator: random.Random) -> None:
    ops = _ops(module)
    if ops:
        op = generator.choice(ops)
        if _replace_uses(op, generator) and op.parent is not None:
            op.detach()
            op.erase(safe_erase=False)


def _empty(module: ModuleOp, generator: random.Random) -> None:
    """Delete what is in a body, but for the op that ends it where its operands are still there."""
    blocks = [block for block in _blocks(module) if block.first_op is not None and block.parent_op() is not module]
    if not blocks:
        return
    for op in reversed(list(generator.choice(blocks).ops)):
        if op.has_trait(IsTerminator) or not _replace_uses(op, generator):
            continue
        op.detach()
        op.erase(safe_erase=False)


def _repeat(module: ModuleOp, generator: random.Random) -> None:
    ops = [op for op in _ops(module) if not op.has_trait(IsTerminator)]
    if ops:
        op = generator.choice(ops)
        assert op.parent is not None
        copy = op.clone()
        op.parent.insert_op_after(copy, op)
        for old, new in zip(op.results, copy.results, strict=True):
            for use in list(old.uses):
                if generator.random() < 0.5:
                    use.operation.operands[use.index] = new


def _move(module: ModuleOp, generator: random.Random) -> None:
    """An op moves, mostly within its block."""
    ops = [op for op in _ops(module) if not op.has_trait(IsTerminator)]
    if not ops:
        return
    op = generator.choice(ops)
    block = op.parent if generator.random() < 0.7 else generator.choice(_blocks(module))
    if block is None or any(op.is_ancestor(each) for each in (block,)):
        return
    before = [each for each in block.ops if each is not op]
    if before:
        op.detach()
        block.insert_op_before(op, generator.choice(before))


def _changed(attribute: Attribute, generator: random.Random) -> Attribute:
    """Another attribute of the same kind."""
    if isinstance(attribute, IntegerAttr):
        if isinstance(attribute.type, IntegerType) and attribute.type.width.data == 1:
            return BoolAttr.from_bool(generator.random() < 0.5)
        near = attribute.value.data + generator.choice((-1, 1, 2))
        return IntegerAttr(near if generator.random() < 0.5 else generator.choice(_INTEGERS[6:14]), attribute.type)
    if isinstance(attribute, FloatAttr):
        return FloatAttr(generator.choice(_FLOATS), attribute.type)
    if isinstance(attribute, StringAttr):
        return StringAttr(generator.choice(_STRINGS))
    if isinstance(attribute, SymAttr):
        return SymAttr(_expression(attribute.data, generator))
    if isinstance(attribute, MapAttr) and attribute.data:
        exprs = list(attribute.data)
        place = generator.randrange(len(exprs))
        exprs[place] = _expression(exprs[place], generator)
        if generator.random() < 0.15:
            generator.shuffle(exprs)
        return MapAttr.of(*exprs)
    if isinstance(attribute, AxesAttr) and attribute.data:
        axes = list(attribute.data)
        place = generator.randrange(len(axes))
        axes[place] = (axes[place][0], _expression(axes[place][1], generator))
        return AxesAttr.of(*axes)
    if isinstance(attribute, ArrayAttr) and attribute.data:
        items = list(attribute.data)
        place = generator.randrange(len(items))
        kind = generator.random()
        if kind < 0.2:
            del items[place]
        elif kind < 0.4:
            items.append(items[place])
        else:
            items[place] = _changed(items[place], generator)
        return ArrayAttr(items)
    if isinstance(attribute, DenseArrayBase):
        values = [int(value) for value in attribute.get_values()]
        place = generator.randrange(len(values) or 1)
        values[place : place + 1] = [generator.choice((0, 1, 2, 5))]
        return DenseArrayBase.from_list(attribute.elt_type, values)  # pyright: ignore
    return attribute


def _expression(e: Expr, generator: random.Random) -> Expr:
    other = symbol(generator.choice(("i0", "i1", "r0", "s0", "d0", "u0", "j0")))
    return generator.choice((
        e + 1, e - 1, e * 2, e // 2, e % 3, e * e, -e, as_expr(0), as_expr(1), as_expr(5), as_expr(-3), e + other,
        other, as_expr(1 << 62), e + (1 << 40),
    ))  # fmt: skip


def _property(module: ModuleOp, generator: random.Random) -> None:
    ops = [op for op in _ops(module) if op.properties]
    if ops:
        op = generator.choice(ops)
        name = generator.choice(sorted(op.properties))
        op.properties[name] = _changed(op.properties[name], generator)


def _attribute(module: ModuleOp, generator: random.Random) -> None:
    """A property goes, or one comes that another op of the module has."""
    ops = _ops(module)
    if not ops:
        return
    op = generator.choice(ops)
    if op.properties and generator.random() < 0.4:
        del op.properties[generator.choice(sorted(op.properties))]
        return
    known = {name: value for other in ops if type(other) is type(op) for name, value in other.properties.items()}
    flags: dict[str, Attribute] = dict.fromkeys(
        ("in_place", "unique", "deterministic", "masked", "atomic", "ordered", "streams", "pure"), UnitAttr()
    )  # pyright: ignore[reportAssignmentType]
    name, value = generator.choice(sorted({**known, **flags}.items(), key=lambda item: item[0]))
    if generator.random() < 0.8:
        op.properties[name] = value
    else:
        op.attributes[name] = generator.choice((value, IntegerAttr(3, i64), StringAttr("é")))


def _exchange_ops(module: ModuleOp, generator: random.Random) -> None:
    """An op gets the operands, or the body, of another one."""
    ops = [op for op in _ops(module) if op.operands]
    if len(ops) > 1:
        a, b = generator.sample(ops, 2)
        if len(a.operands) == len(b.operands):
            a.operands, b.operands = list(b.operands), list(a.operands)


_CHANGES: Sequence[Callable[[ModuleOp, random.Random], None]] = (
    _swap_operands, _replace_operand, _replace_operand, _delete, _empty, _repeat, _move, _property, _property,
    _property, _property, _attribute, _exchange_ops,
)  # fmt: skip
