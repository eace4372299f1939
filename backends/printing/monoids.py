"""The monoids of reductions, as numbers and by name; how a language combines is its own matter."""

from __future__ import annotations

#: kinds of `kernel.store` that combine -> the monoid that combines the same way
STORE_MONOIDS = {"add": "sum", "mul": "prod", "amax": "max", "amin": "min"}

#: monoid -> the names of the numbers that it starts with
_STARTS: dict[str, tuple[str, ...]] = {
    "sum": ("zero",),
    "prod": ("one",),
    "max": ("lowest",),
    "min": ("highest",),
    "any": ("zero",),
    "all": ("one",),
    "xor": ("zero",),
    # the index loses every tie
    "argmax": ("lowest", "last"),
    "argmin": ("highest", "last"),
    "welford": ("zero", "zero", "zero"),
    "logsumexp": ("lowest", "zero"),
    "softmax_sum": ("lowest", "zero", "zero"),
}
LAST_INDEX = (1 << 63) - 1


def identities(monoid: str, bits: int | None, unsigned: bool = False) -> tuple[float, ...]:
    """The numbers that a monoid starts with, for values of an integer type of so many bits, or floats (None)."""
    numbers: dict[str, float] = {"zero": 0, "one": 1, "last": LAST_INDEX}
    if bits is None:
        numbers |= {"lowest": float("-inf"), "highest": float("inf")}
    elif unsigned or bits == 1:
        numbers |= {"lowest": 0, "highest": (1 << bits) - 1}
    else:
        numbers |= {"lowest": -(1 << (bits - 1)), "highest": (1 << (bits - 1)) - 1}
    return tuple(numbers[name] for name in _STARTS[monoid])
