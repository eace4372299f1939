"""Random changes of IR text: what a slip of the hand, a cut file, or an attacker makes of a dump."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

_TOKEN = re.compile(r'%[\w$.]+|@[\w$.]+|[!#][\w$.]+|"[^"\n]*"|[A-Za-z_][\w$.]*|\d+\.\d*(?:e[+-]?\d+)?|\d+|[^\s\w]')
_NUMBERS = (
    "0", "1", "2", "3", "7", "64", "255", "-1", "-5", "4096", "2147483648", "1152921504606846976",
    "4611686018427387904", "9223372036854775807", "18446744073709551616", "100000000000000000000000000000000",
    "1.5", "-0.0", "1e308",
)  # fmt: skip
_TYPES = ("f32", "f64", "f16", "bf16", "i1", "i8", "i16", "i32", "i64", "ui8", "index", "complex<f32>")
_BRACKETS = "()[]{}<>"


def mutate(text: str, others: Sequence[str], generator: random.Random) -> str:
    """A text with one to three changes; some take pieces of `others`."""
    for _ in range(generator.choice((1, 1, 1, 2, 3))):
        text = generator.choice(_CHANGES)(text, others, generator)
    return text


def _lines(text: str, others: Sequence[str], generator: random.Random) -> str:
    """Delete, repeat, exchange or move lines, or bring one from another file."""
    lines = text.split("\n")
    here, there = generator.randrange(len(lines)), generator.randrange(len(lines))
    kind = generator.randrange(5)
    if kind == 0:
        del lines[here]
    elif kind == 1:
        lines.insert(there, lines[here])
    elif kind == 2:
        lines[here], lines[there] = lines[there], lines[here]
    elif kind == 3:
        lines.insert(there, lines.pop(here))
    else:
        lines.insert(here, generator.choice(generator.choice(others).split("\n")))
    return "\n".join(lines)


def _replaced(text: str, generator: random.Random, wanted: Callable[[str], bool], new: Callable[[str], str]) -> str:
    """The text with one of its tokens replaced."""
    found = [m for m in _TOKEN.finditer(text) if wanted(m[0])]
    if not found:
        return text
    match = generator.choice(found)
    return text[: match.start()] + new(match[0]) + text[match.end() :]


def _number(text: str, others: Sequence[str], generator: random.Random) -> str:
    def new(old: str) -> str:
        near = generator.random() < 0.5 and old.isdigit()
        return str(int(old) + generator.choice((-2, -1, 1, 2, 8))) if near else generator.choice(_NUMBERS)

    return _replaced(text, generator, lambda token: token[0].isdigit(), new)


def _name(text: str, others: Sequence[str], generator: random.Random) -> str:
    """A name becomes another of its kind, of this file or of another one."""
    source = text if generator.random() < 0.8 else generator.choice(others)
    kind = generator.choice(("%", "@", "#", "!", "word", "word", "axis"))

    def wanted(token: str) -> bool:
        if kind == "axis":
            return re.fullmatch(r"[airsud]\d+", token) is not None
        return token[0].isalpha() if kind == "word" else token[0] == kind and len(token) > 1

    names = [m[0] for m in _TOKEN.finditer(source) if wanted(m[0])]
    return _replaced(text, generator, wanted, lambda old: generator.choice(names)) if names else text


def _type(text: str, others: Sequence[str], generator: random.Random) -> str:
    return _replaced(text, generator, lambda token: token in _TYPES, lambda old: generator.choice(_TYPES))


def _all_types(text: str, others: Sequence[str], generator: random.Random) -> str:
    """One element type becomes another everywhere, which mostly verifies."""
    old = generator.choice(_TYPES[:9])
    return re.sub(rf"(?<![\w%@]){old}(?!\w)|(?<=x){old}(?!\w)", generator.choice(_TYPES), text)


def _all_numbers(text: str, others: Sequence[str], generator: random.Random) -> str:
    """One number becomes another everywhere."""
    found = re.findall(r"(?<![\w.])\d+(?![\w.])", text)
    if not found:
        return text
    return re.sub(rf"(?<![\w.]){generator.choice(found)}(?![\d.])", generator.choice(_NUMBERS), text)


def _cut(text: str, others: Sequence[str], generator: random.Random) -> str:
    return text[: generator.randrange(len(text) + 1)]


def _brackets(text: str, others: Sequence[str], generator: random.Random) -> str:
    """A bracket too much, too few, or repeated many times."""
    place = generator.randrange(len(text) + 1)
    if generator.random() < 0.5:
        return _replaced(text, generator, lambda token: token in _BRACKETS, lambda old: "")
    return text[:place] + generator.choice(_BRACKETS) * generator.choice((1, 1, 1, 2, 2000)) + text[place:]


def _characters(text: str, others: Sequence[str], generator: random.Random) -> str:
    place = generator.randrange(len(text) + 1)
    noise = "".join(
        generator.choice('"\\\n\t\0%@#!^:=,*+-/\u00e9\U0001f600ab09_.$') for _ in range(generator.randint(1, 4))
    )
    return text[:place] + noise + text[place + generator.choice((0, 0, 1, 5)) :]


def _operands(text: str, others: Sequence[str], generator: random.Random) -> str:
    """Two tokens of one line change places."""
    lines = text.split("\n")
    number = generator.randrange(len(lines))
    tokens = list(_TOKEN.finditer(lines[number]))
    if len(tokens) < 2:
        return text
    a, b = sorted(generator.sample(tokens, 2), key=lambda m: m.start())
    line = lines[number]
    lines[number] = line[: a.start()] + b[0] + line[a.end() : b.start()] + a[0] + line[b.end() :]
    return "\n".join(lines)


def _index(text: str, others: Sequence[str], generator: random.Random) -> str:
    """Something is done to what stands in brackets."""
    found = list(re.finditer(r"\[([^\[\]\n]+)\]", text))
    if not found:
        return text
    match = generator.choice(found)
    change = generator.choice((
        "{} + 1", "{} - 1", "2*({})", "({}) floordiv 2", "({}) mod 3", "{}*({})", "min({}, 3)", "({}) floordiv 0",
        "-({})", "{} + 100000000", "({}) mod ({})", "{}, {}",
    ))  # fmt: skip
    return text[: match.start(1)] + change.replace("{}", match[1]) + text[match.end(1) :]


def _op_name(text: str, others: Sequence[str], generator: random.Random) -> str:
    """An op becomes another of its dialect, of this file or of another one."""
    pattern = re.compile(r"\b(aten|loop|kernel|host|scalar|arith|math)\.([a-z_][\w.]*)")
    found = list(pattern.finditer(text))
    if not found:
        return text
    match = generator.choice(found)
    source = text if generator.random() < 0.4 else generator.choice(others)
    names = [m[0] for m in pattern.finditer(source) if m[1] == match[1]]
    return text[: match.start()] + generator.choice(names or [match[0]]) + text[match.end() :]


def _string(text: str, others: Sequence[str], generator: random.Random) -> str:
    """What stands in quotes changes, also to what is written as escapes."""
    found = list(re.finditer(r'"([^"\n]*)"', text))
    if not found:
        return text
    match = generator.choice(found)
    noise = (
        "",
        "\u00e9",
        "\U0001f600",
        "\\\\",
        "\\22",
        "\\FF",
        "\\00",
        "a b",
        "%x",
        "x" * 300,
        "RuntimeError: x",
        "cuda:90",
        "cpp",
    )
    place = generator.randrange(len(match[1]) + 1)
    inside = generator.choice((match[1][:place] + generator.choice(noise) + match[1][place:], generator.choice(noise)))
    return text[: match.start(1)] + inside + text[match.end(1) :]


def _region(text: str, others: Sequence[str], generator: random.Random) -> str:
    """A body goes, with or without its braces, or what is in it."""
    opened = [m.start() for m in re.finditer(r"\{\n", text)]
    if not opened:
        return text
    start = end = generator.choice(opened)
    depth = 0
    for end in range(start, len(text)):
        depth += (text[end] == "{") - (text[end] == "}")
        if depth == 0:
            break
    return text[:start] + generator.choice(("", "{}", "{\n}")) + text[end + 1 :]


def _schedule(text: str, others: Sequence[str], generator: random.Random) -> str:
    """How a loop of a kernel is mapped changes."""
    maps = (
        "", " map parallel", " map vector", " map vector tile 8", " map vector tile 1000", " map grid", " map unroll",
        " map serial unroll 4", " map parallel tile 4",
    )  # fmt: skip
    pattern = r"( in \S[^{\n]*? to [^{\n]*?)( map [^{\n]*)?( \{)"
    found = list(re.finditer(pattern, text))
    if not found:
        return text
    match = generator.choice(found)
    return text[: match.start()] + match[1] + generator.choice(maps) + match[3] + text[match.end() :]


_CHANGES = (
    _lines, _lines, _number, _number, _name, _name, _name, _type, _all_types, _all_numbers, _cut, _brackets,
    _characters, _operands, _index, _index, _schedule, _op_name, _op_name, _string, _region,
)  # fmt: skip
