"""The names of options that people bring from TorchInductor: what each becomes here. No torch.

The table is data, `option_names.toml`; `inductile.list_options()` and docs/options.md show it.
"""

from __future__ import annotations

import sys
import tomllib
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..lowering.registry import nearest
from ..records import dataclass

SAME, TRANSLATED, REFUSED, WITHOUT_EFFECT = "same", "translated", "refused", "without effect"
_LISTS = ("disabled_passes",)
"""Options of ours that are lists of names: what several translations say of them adds up."""


@dataclass(frozen=True)
class OptionName:
    """A name of `torch._inductor.config`.

    verdict: one of the four above
    when:    value, as the table writes it -> options of ours that it sets
    values:  those that are refused; None for all but None and empty ones
    """

    name: str
    verdict: str
    reason: str = ""
    remedy: str = ""
    when: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    values: tuple[Any, ...] | None = None

    def __str__(self) -> str:
        """What becomes of it, in a line."""
        if self.verdict == SAME:
            return "the option of the same name here"
        if self.verdict == TRANSLATED:
            said = [f"{_spelled(value)} sets {_options_text(given)}" for value, given in self.when.items()]
            return f"{self.reason}: {', '.join(said)}"
        return f"{self.reason}; {self.remedy}" if self.remedy else self.reason

    def translate(self, value: Any) -> dict[str, Any] | None:
        """Options of ours for a value; None where the table says nothing of this value."""
        found = self.when.get(_written(value), self.when.get("*"))
        return None if found is None else {name: value if given == "*" else given for name, given in found.items()}

    def is_refused(self, value: Any) -> bool:
        """Whether a value would change results."""
        if self.verdict != REFUSED:
            return False
        return bool(value) if self.values is None else value in self.values


def _spelled(value: str) -> str:
    return {"true": "True", "false": "False", "*": "a value"}.get(value, repr(value))


def _options_text(given: Mapping[str, Any]) -> str:
    return " and ".join(name if value == "*" else f"{name}={value!r}" for name, value in given.items())


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@cache
def option_names() -> dict[str, OptionName]:
    """Every name of the table."""
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
    found = [OptionName(name, SAME) for each in table[SAME] for name in each["names"].split()]
    found += [OptionName(e["name"], TRANSLATED, e["reason"], when=e["when"]) for e in table[TRANSLATED]]
    for each in table[REFUSED]:
        values = tuple(each["values"]) if "values" in each else None
        names = each["names"].split()
        found += [OptionName(name, REFUSED, each["reason"], each["remedy"], values=values) for name in names]
    for each in table["without-effect"]:
        found += [OptionName(name, WITHOUT_EFFECT, each["reason"]) for name in each["names"].split()]
    return {each.name: each for each in found}


@dataclass
class Translation:
    """What options that are not ours become.

    options:        of ours
    written:        option of ours -> the name that was given
    without_effect: name -> why
    """

    options: dict[str, Any] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    without_effect: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, value: Any) -> bool:
        """Add an option of TorchInductor; False where the table has nothing to say of the name, or leaves it to ours.

        Raises UserError for one that is refused.
        """
        known = option_names().get(name)
        if known is None or known.verdict == SAME:
            return False
        if known.is_refused(value):
            raise UserError(f"option {name!r} would change results: {known.reason}", known.remedy)
        if known.verdict == TRANSLATED:
            found = known.translate(value)
            self.options = joined(self.options, found or {})
            self.written |= dict.fromkeys(found or {}, name)
            return found is not None or not _is_ours_too(name)
        if known.verdict == WITHOUT_EFFECT and not is_default(name, value):
            self.without_effect[name] = known.reason
        return True


def joined(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Options of both; of the lists of names all, of others the latter."""
    both = {name: f"{one[name]},{other[name]}" for name in _LISTS if one.get(name) and other.get(name)}
    return {**one, **other, **both}


def _is_ours_too(name: str) -> bool:
    return name == "memory_pool"


def is_default(name: str, value: Any) -> bool:
    """Whether a value asks for nothing: None, or torch's default where torch's options are loaded."""
    config = sys.modules.get("torch._inductor.config")
    entry = getattr(config, "_config", {}).get(name)
    return value is None or (entry is not None and entry.default == value)


def unknown_option(name: str, ours: Iterable[str]) -> UserError:
    """The error of a name that neither list has, with the nearest of both."""
    ours = list(ours)
    hints = [nearest(name.lower(), names).removesuffix("?") for names in (ours, option_names())]
    own, foreign = (hint.removeprefix("did you mean ") for hint in hints)
    if own and foreign and own != foreign:
        return UserError(f"unknown option {name!r}", f"did you mean {own}, or TorchInductor's {foreign}?")
    close = own or foreign
    return UserError(f"unknown option {name!r}", f"did you mean {close}?" if close else f"known: {', '.join(ours)}")


_told: set[str] = set()


def tell_without_effect(found: Mapping[str, str]) -> None:
    """Warn of options that do nothing here: each once in a process, all of a call in one message."""
    fresh = {name: reason for name, reason in found.items() if name not in _told}
    if not fresh:
        return
    _told.update(fresh)
    reasons = dict.fromkeys(fresh.values())
    told = "; ".join(f"{', '.join(n for n, why in fresh.items() if why == reason)} ({reason})" for reason in reasons)
    warnings.warn(f"inductile: options without effect: {told}", stacklevel=_level_of_user())


def _level_of_user() -> int:
    """How far up the stack of the function that asks the code of others begins, for `warnings.warn`."""
    package = __name__.partition(".")[0]
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        frame, level = frame.f_back, level + 1
    return level
