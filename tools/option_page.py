"""`python -m inductile.tools.option_page docs/options.md` writes the page of options, from the tables."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..backends.config import MODES, Config, describe_option
from ..backends.option_names import REFUSED, SAME, TRANSLATED, WITHOUT_EFFECT, OptionName, option_names
from ..lowering.registry import available_passes, module_of_pass, pass_class

_HEAD = """# Options

<!-- made by `python -m inductile.tools.option_page docs/options.md` -->

<!-- not run: the tests of options run its like -->
```python
import torch
import inductile

model = torch.nn.Linear(8, 8)
torch.compile(model, backend="inductile", options={"emulate_precision_casts": True})
torch.compile(model, backend=inductile.backend(mode="max-autotune", emulate_precision_casts=True))
```

`inductile.backend(...)` checks its arguments at once. With the string torch keeps mode and options to itself until the
first call, which then fails before any work, with the same message.

What `torch._inductor.config` is set to, by assignment, by `patch` or by torch's environment variables, holds for the
names that mean the same here or are translated. Options go before a mode, a mode before these settings. torch.compile
itself takes a mode or options, not both; `inductile.backend(mode=..., **options)` takes both: an option that is given
counts more than what the mode sets.

## Did it take effect?

- A name or value that cannot be is an error that says what can be; what has no effect is one warning that says why.
- `TORCH_LOGS=inductile` ends the line of each graph with the options that are not at their default, wherever they come
  from: `compiled inference: 1 launch of 1 kernel; ATen calls: none; 0.612 s; max_autotune=True`. The overview of
  [the report](report.md) lists them too.
- What an option changed: `inductile.explain(f, options={...})(x)` says what runs with it and which pass did what, and
  `inductile-report before after` compares [two traces](report.md#compare), one with it and one without.
- An option that a graph cannot follow is a remark in `TORCH_LOGS=perf_hints`, as `freezing` is for a graph that wants
  gradients. With CUDA graphs, `TORCH_LOGS=cudagraphs` says why one was not recorded.
"""


def page() -> str:
    """The text of docs/options.md."""
    names = list(option_names().values())
    counts = {verdict: sum(each.verdict == verdict for each in names) for verdict in _TITLES}
    lines = [_HEAD, *_modes(), "", "## Options of inductile", "", *_ours(), "", *_needed(), ""]
    lines += [
        "## Names of TorchInductor",
        "",
        f"Every name of `torch._inductor.config` in torch 2.11 to 2.14, {len(names)} of them: {counts[SAME]} mean the "
        f"same here, {counts[TRANSLATED]} are translated, {counts[REFUSED]} are refused because they would change "
        f"results, and {counts[WITHOUT_EFFECT]} are accepted without effect, of which one warning tells.",
        "",
    ]
    for verdict, title in _TITLES.items():
        lines += [f"### {title}", "", *_foreign([each for each in names if each.verdict == verdict]), ""]
    return "\n".join(lines).rstrip() + "\n"


_TITLES = {SAME: "The same here", TRANSLATED: "Translated", REFUSED: "Refused", WITHOUT_EFFECT: "Without effect"}


def _modes() -> Iterator[str]:
    yield from ("## Modes", "", "| mode | options |", "|---|---|")
    for mode, options in MODES.items():
        yield f"| `{mode}` | {', '.join(f'`{name}={value}`' for name, value in options.items()) or 'none'} |"


def _ours() -> Iterator[str]:
    yield from ("| name | what it does |", "|---|---|")
    for option in dataclasses.fields(Config):
        yield f"| `{option.metadata['group']}{option.name}` | {_cell(describe_option(option))} |"


def _needed() -> Iterator[str]:
    """What `disabled_passes` refuses."""
    own = sorted(name for name in available_passes() if module_of_pass(name))
    names = [f"`{name}`" for name in own if not getattr(pass_class(name), "optional", False)]
    yield "`disabled_passes` refuses, in the first call, a pass without which programs cannot be compiled:"
    yield f"{', '.join(names)}. Any other pass of `inductile-opt --list-passes` may be left out."


def _foreign(names: Sequence[OptionName]) -> Iterator[str]:
    """Names with the same text are one row."""
    if names and names[0].verdict == SAME:
        yield ", ".join(f"`{each.name}`" for each in names) + "."
        return
    yield from ("| name | what becomes of it |", "|---|---|")
    for text in dict.fromkeys(str(each) for each in names):
        yield f"| {', '.join(f'`{each.name}`' for each in names if str(each) == text)} | {_cell(text)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page to the file that is named, or print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", help="the page; without it, it is printed")
    file = parser.parse_args(argv).file
    if file:
        Path(file).write_text(page())
    else:
        sys.stdout.write(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
