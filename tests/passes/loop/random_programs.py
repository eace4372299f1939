"""Random functions at the loop level: chains of nests, views, scatters and writes of inputs."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

UNARY = ("math.exp", "math.sqrt", "math.absf", "math.tanh")
BINARY = ("arith.addf", "arith.subf", "arith.mulf", "arith.maximumf")


@dataclass
class Value:
    name: str
    shape: tuple[str, ...]

    @property
    def type(self) -> str:
        return f"!aten.tensor<{''.join(f'({n})x' for n in self.shape)}f32>"


class Program:
    """Writes one function, op by op. Every value is a contiguous f32 tensor with sizes of `SIZES`."""

    SIZES = ("s0", "4", "6", "1")

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.lines: list[str] = []
        self.count = 0
        self.arguments = [
            Value("%x", ("s0", "4")), Value("%y", ("4", "6")), Value("%z", ("s0", "4", "6")), Value("%w", ("6",)),
        ]  # fmt: skip
        self.values = list(self.arguments)

    def text(self, length: int) -> str:
        makers = (self.pointwise, self.pointwise, self.pointwise, self.reduce, self.reshape, self.pad, self.scan)
        for _ in range(length):
            self.random.choice((*makers, self.slice_update, self.view, self.write, self.cat))()
        outputs = self.random.sample(self.values[4:] or self.values, min(3, len(self.values[4:]) or 1))
        arguments = ", ".join(f"{v.name}: {v.type}" for v in self.arguments)
        types = ", ".join(v.type for v in outputs)
        return "\n".join(
            (
                f"func.func @f({arguments}) -> ({types}) attributes "
                "{symbols = [#sym.symbol<s0, arg = 0, dim = 0, min = 2>]} {",
                *self.lines,
                f"  func.return {', '.join(v.name for v in outputs)} : {types}",
                "}",
            )
        )

    def new(self, shape: tuple[str, ...]) -> Value:
        self.count += 1
        value = Value(f"%v{self.count}", shape)
        self.values.append(value)
        return value

    def pick(self) -> Value:
        """A value, later ones more often."""
        return self.values[-1 - min(int(self.random.expovariate(0.4)), len(self.values) - 1)]

    def nest(self, shape: tuple[str, ...], prefix: str = "i") -> str:
        return ", ".join(f"{prefix}{k} in {n}" for k, n in enumerate(shape))

    def index(self, source: Value, shape: tuple[str, ...]) -> str | None:
        """An index into `source` from axes of `shape`: an axis of the same size, or 0 where the size is 1."""
        parts: list[str] = []
        free = list(range(len(shape)))
        for size in reversed(source.shape):
            fitting = [k for k in free if shape[k] == size]
            if size == "1":
                parts.append("0")
            elif fitting:
                axis = fitting[-1] if self.random.random() < 0.8 else self.random.choice(fitting)
                free.remove(axis)
                parts.append(f"i{axis}" if self.random.random() < 0.9 else f"({size}) - 1 - i{axis}")
            else:
                return None
        return ", ".join(reversed(parts))

    def body(self, shape: tuple[str, ...], first: Value) -> list[str]:
        """Loads of one to three values that fit, combined; the result is %r."""
        loads = [first, *(self.pick() for _ in range(self.random.randrange(3)))]
        lines: list[str] = []
        names: list[str] = []
        for value in loads:
            index = self.index(value, shape)
            if index is not None:
                names.append(f"%l{len(names)}")
                lines.append(f"    {names[-1]} = loop.load {value.name}[{index}]")
        last = names[0]
        for k, name in enumerate(names[1:]):
            lines.append(f"    %b{k} = {self.random.choice(BINARY)} {last}, {name} : f32")
            last = f"%b{k}"
        lines += [
            f"    %a = math.absf {last} : f32",
            f"    %u = {self.random.choice(UNARY)} %a : f32",
            "    %r = math.tanh %u : f32",
        ]
        return lines

    def emit(self, head: str, lines: list[str], value: Value) -> None:
        self.lines += [f"  {value.name} = {head} {{", *lines, "    loop.yield %r", f"  }} : {value.type}"]

    def pointwise(self) -> None:
        first = self.pick()
        shape = first.shape
        if len(shape) < 3 and self.random.random() < 0.3:
            shape = (self.random.choice(self.SIZES), *shape)
        lines = self.body(shape, first)
        self.emit(f"loop.generate ({self.nest(shape)})", lines, self.new(shape))

    def reduce(self) -> None:
        first = self.pick()
        axis = self.random.randrange(len(first.shape)) if first.shape else None
        if axis is None:
            return
        keep = self.random.random() < 0.5
        shape = tuple(n for k, n in enumerate(first.shape) if k != axis)
        kept = tuple("1" if k == axis else n for k, n in enumerate(first.shape))
        inner = [f"  {line}" for line in self.body(first.shape, first)]
        names = iter(range(len(shape)))
        renamed: dict[str, str] = {}
        for k in range(len(first.shape)):
            renamed[f"i{k}"] = "r0" if k == axis else f"i{k if keep else next(names)}"
        text = "\n".join(inner)
        for old in renamed:
            text = text.replace(old, f"@{old}")
        for old, new in renamed.items():
            text = text.replace(f"@{old}", new)
        out = self.new(kept if keep else shape)
        monoid = self.random.choice(("sum", "max", "min"))
        lines = [
            f"    %s = loop.reduce {monoid} (r0 in {first.shape[axis]}) {{", text, "      loop.yield %r", "    }",
            "    %r = math.tanh %s : f32",
        ]  # fmt: skip
        self.emit(f"loop.generate ({self.nest(out.shape)})", lines, out)

    def reshape(self) -> None:
        """Two dimensions as one."""
        first = self.pick()
        if len(first.shape) < 2:
            return
        outer, inner, *rest = first.shape
        product = str(int(outer) * int(inner)) if (outer + inner).isdigit() else f"({outer})*({inner})"
        shape = (product, *rest)
        value = self.new(shape)
        indices = ", ".join((f"i0 floordiv ({inner}), i0 mod ({inner})", *(f"i{k + 1}" for k in range(len(rest)))))
        self.lines.append(f"  {value.name} = loop.view {first.name}[{indices}] ({self.nest(shape)}) : {value.type}")

    def view(self) -> None:
        """A transposition: a view that is no contiguous tensor, so a copy by its type."""
        first = self.pick()
        value = self.new(tuple(reversed(first.shape)))
        rank = len(first.shape)
        index = ", ".join(f"i{rank - 1 - k}" for k in range(rank))
        self.lines.append(f"  {value.name} = loop.view {first.name}[{index}] ({self.nest(value.shape)}) : {value.type}")

    def pad(self) -> None:
        """The first dimension shifted by one, with a value before the start."""
        first = self.pick()
        if not first.shape:
            return
        rest = "".join(f", i{k}" for k in range(1, len(first.shape)))
        lines = [
            "    %i = loop.index i0 - 1", "    %n = arith.constant 0 : i64", "    %o = arith.constant 0.5 : f32",
            "    %m = arith.cmpi sge, %i, %n : i64", f"    %v = loop.load {first.name}[i0 - 1{rest}] if %m else %o",
            "    %r = math.tanh %v : f32",
        ]  # fmt: skip
        self.emit(f"loop.generate ({self.nest(first.shape)})", lines, self.new(first.shape))

    def scan(self) -> None:
        first = self.pick()
        if not first.shape:
            return
        along = self.random.randrange(len(first.shape))
        lines = self.body(first.shape, first)
        self.emit(f"loop.scan sum ({self.nest(first.shape)}) along i{along}", lines, self.new(first.shape))

    def slice_update(self) -> None:
        """Overwrite the first row of a value."""
        dest = self.pick()
        if not dest.shape:
            return
        shape = ("1", *dest.shape[1:])
        sources = [v for v in self.values if self.index(v, shape) is not None]
        if not sources:
            return
        lines = self.body(shape, self.random.choice(sources))
        if not any("loop.load" in line for line in lines):
            return
        index = ", ".join(f"i{k}" for k in range(len(shape)))
        head = f"loop.scatter set ({self.nest(shape)}) into {dest.name}[{index}] unique"
        self.emit(head, lines, self.new(dest.shape))

    def cat(self) -> None:
        """Two values side by side along their first dimension."""
        first = self.pick()
        if not first.shape:
            return
        rest = first.shape[1:]
        second = self.random.choice([v for v in self.values if v.shape[1:] == rest and v.shape])
        start = first.shape[0]
        both = start, second.shape[0]
        total = str(sum(map(int, both))) if "".join(both).isdigit() else " + ".join(both)
        shape = (total, *rest)
        whole = Value("", shape)
        self.count += 2
        names = [f"%v{self.count - 1}", f"%p{self.count}"]
        self.lines.append(f"  {names[0]} = loop.empty : {whole.type}")
        for source, target, offset in ((first, names[1], ""), (second, self.new(shape).name, f" + {start}")):
            index = ", ".join(f"i{k}" for k in range(len(shape)))
            place = index.replace("i0", f"i0{offset}", 1)
            head = f"loop.scatter set ({self.nest(source.shape)}) into {names[0]}[{place}] unique"
            lines = [f"    %v = loop.load {source.name}[{index}]", "    %r = math.tanh %v : f32"]
            self.emit(head, lines, Value(target, shape))
            names[0] = target

    def write(self) -> None:
        """Write a value to an argument of its shape."""
        for argument in self.random.sample(self.arguments, len(self.arguments)):
            fitting = [v for v in self.values[4:] if v.shape == argument.shape]
            if fitting:
                value = self.random.choice(fitting)
                self.count += 1
                self.lines.append(f"  %c{self.count} = aten.copy_({argument.name}, {value.name}) : {argument.type}")
                return
