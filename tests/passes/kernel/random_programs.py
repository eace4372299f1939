"""Random fusions as text: members over shared axes that read inputs in any layout and each other where they may."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

SIZES = ("1", "2", "3", "8", "17", "s0")
FUNCTIONS = ("math.tanh", "math.absf", "arith.negf")
PAIRS = ("arith.addf", "arith.mulf", "arith.subf", "arith.maximumf")
COMBINERS = ("sum", "max", "min")


@dataclass
class Member:
    """A value of the fusion: the fusion axes of its dimensions."""

    name: str
    axes: tuple[str, ...]


@dataclass
class Program:
    """A function with one fusion, written while it is made up."""

    choose: random.Random
    sizes: dict[str, str] = field(default_factory=dict)
    parallel: tuple[str, ...] = ()
    inner: tuple[str, ...] = ()
    inputs: list[str] = field(default_factory=list)
    members: list[Member] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    values: int = 0

    def text(self) -> str:
        """The whole program."""
        pick = self.choose
        self.parallel = tuple(f"a{k}" for k in range(pick.randint(0, 2)))
        self.inner = tuple(f"b{k}" for k in range(pick.randint(0 if self.parallel else 1, 2)))
        self.sizes = {axis: pick.choice(SIZES) for axis in (*self.parallel, *self.inner)}
        for _ in range(pick.randint(1, 5)):
            self.member()
        results = pick.sample(self.members, pick.randint(1, len(self.members)))
        if self.members[-1] not in results:
            results.append(self.members[-1])
        types = ", ".join(self.type_of(r.axes) for r in results)
        names = ", ".join(f"%y{k}" for k in range(len(results)))
        axes = ", ".join(f"{a} in {self.sizes[a]}" for a in self.parallel)
        inner = ", ".join(f"{a} in {self.sizes[a]}" for a in self.inner)
        arguments = ", ".join(["%n: !aten.tensor<(s0)xf32>", *self.inputs])
        return "\n".join([
            f"func.func @random({arguments}) -> ({types})",
            "attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0>]} {",
            f"{names} = loop.fusion ({axes}{' | ' + inner if inner else ''}) {{",
            *self.lines,
            f"loop.yield {', '.join('%' + r.name for r in results)}",
            f"}} : {types}",
            f"func.return {names} : {types}",
            "}",
        ])  # fmt: skip

    def type_of(self, axes: tuple[str, ...], strides: str = "") -> str:
        """A tensor type over fusion axes."""
        shape = "".join(f"{s}x" if s.isdigit() else f"({s})x" for s in (self.sizes[a] for a in axes))
        return f"!aten.tensor<{shape}f32{strides}>"

    def member(self) -> None:
        """Add a generate, with a reduction inside or without."""
        kept = tuple(a for a in self.inner if self.choose.random() < 0.6)
        axes = [*self.parallel, *kept]
        self.choose.shuffle(axes)
        free = [a for a in self.inner if a not in kept]
        reduced = tuple(a for a in free if self.choose.random() < 0.8)
        name = f"m{len(self.members)}"
        nest = ", ".join(f"i_{a} in {self.sizes[a]}" for a in axes)
        self.lines.append(f"%{name} = loop.generate ({nest}) on ({', '.join(axes)}) {{")
        value = self.reduction(reduced, tuple(axes)) if reduced else self.body(tuple(axes))
        self.lines.append(f"loop.yield {value}")
        member = Member(name, tuple(axes))
        self.lines.append(f"}} : {self.type_of(member.axes)}")
        self.members.append(member)

    def reduction(self, reduced: tuple[str, ...], axes: tuple[str, ...]) -> str:
        """A reduction over some inner axes, and a function of it."""
        order = list(reduced)
        self.choose.shuffle(order)
        nest = ", ".join(f"i_{a} in {self.sizes[a]}" for a in order)
        result = self.fresh()
        self.lines.append(f"{result} = loop.reduce {self.choose.choice(COMBINERS)} ({nest}) on ({', '.join(order)}) {{")
        self.lines.append(f"loop.yield {self.body((*axes, *order))}")
        self.lines.append("}")
        return self.apply(self.choose.choice(FUNCTIONS), result)

    def body(self, axes: tuple[str, ...]) -> str:
        """A pointwise expression at a point of the given axes."""
        value = self.operand(axes)
        for _ in range(self.choose.randint(0, 2)):
            value = self.apply(self.choose.choice(PAIRS), value, self.operand(axes))
        return self.apply(self.choose.choice(FUNCTIONS), value)

    def operand(self, axes: tuple[str, ...]) -> str:
        """A value of another member that is known here, or an element of an input."""
        known = [m for m in self.members if set(m.axes) <= set(axes)]
        result = self.fresh()
        if known and self.choose.random() < 0.6:
            member = self.choose.choice(known)
            self.lines.append(f"{result} = loop.load %{member.name}[{', '.join(f'i_{a}' for a in member.axes)}]")
            return result
        used = [a for a in axes if self.choose.random() < 0.8]
        self.choose.shuffle(used)
        name = f"%x{len(self.inputs)}"
        self.inputs.append(f"{name}: {self.type_of(tuple(used))}")
        self.lines.append(f"{result} = loop.load {name}[{', '.join(f'i_{a}' for a in used)}]")
        return result

    def apply(self, op: str, *operands: str) -> str:
        """A scalar op."""
        result = self.fresh()
        self.lines.append(f"{result} = {op} {', '.join(operands)} : f32")
        return result

    def fresh(self) -> str:
        """A new value's name."""
        self.values += 1
        return f"%v{self.values}"


def random_program(seed: int) -> str:
    """The program of a seed."""
    return Program(random.Random(seed)).text()
