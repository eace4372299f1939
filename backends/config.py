"""Options of one compilation. No torch: the command lines read them too."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import UserError
from ..lowering.registry import nearest


def _option(default: Any, doc: str, choices: tuple[Any, ...] = (), limits: tuple[float, float] | None = None) -> Any:
    metadata = {"doc": doc, "choices": choices, "limits": limits}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Config:
    """Options of one `torch.compile(..., backend="inductile", options={...})`. Never process-wide.

    Build with `Config.resolve(mode, options)`, which checks names, types and choices.
    """

    on_error: str = _option(
        "raise",
        "what to do when inductile itself fails: raise an error that names pass and reproducer, or run eager",
        ("raise", "eager"),
    )
    emulate_precision_casts: bool = _option(False, "round f16 and bf16 intermediates where eager rounds them")
    deterministic: bool = _option(
        False,
        "leave to ATen what writes at equal indices in no fixed order, on a GPU; set by itself under "
        "torch.use_deterministic_algorithms",
    )
    fallback_random: bool = _option(False, "draw random numbers with eager's kernels, so that values equal eager's")
    verify_each: str = _option(
        "",
        "verify the IR behind each pass ('ir'), or also run it and compare the results ('numerics')",
        ("", "ir", "numerics"),
    )
    pipeline: str = _option("default", "a named pipeline, or a pipeline string of our passes")
    pre_grad: str = _option(
        "remove-identities,prove-attention-masks",
        "passes on Dynamo's graph, separated by commas; 'fold-batch-norm' is off, since it rounds differently",
    )
    partition: str = _option(
        "inductile",
        "who splits a joint graph into forward and backward: the pass graph-partition, or torch's own partitioner",
        ("inductile", "torch"),
    )
    patterns: str = _option(
        "exact",
        "combinations of ops that become one op: 'exact' for those that change no bit, 'all', 'none', or names, as in "
        "'exact,attention'",
    )
    products: str = _option(
        "auto",
        "who multiplies large float32 matrices on the CPU: torch's BLAS as in eager, oneDNN, or the faster one here",
        ("auto", "blas", "onednn"),
    )
    memory_pool: bool = _option(
        True,
        "on the CPU, keep memory for intermediate values between calls, where that does not raise the peak of a call; "
        "programs share it, and it is given back with the last of them",
    )
    activation_memory_budget: float = _option(
        1.0,
        "memory for values saved for backward: from 1.0, as cheap as can be, to 0.0, as little as can be",
        limits=(0.0, 1.0),
    )
    insert: dict[str, str] = _option({}, 'passes to add, e.g. {"after:loop-fuse": "my-pass{n=2}"}')
    debug_counter: str = _option("", "switch single rewrites off: NAME-skip=N,NAME-count=N")
    cache: bool = _option(True, "keep compiled kernels on disk, under INDUCTILE_CACHE_DIR")
    compile_threads: int = _option(0, "compiler processes at once; 0: one a core")
    watch: str = _option(
        "",
        "flags of inductile-opt that watch passes, e.g. '--print-ir-after-change --timing'; INDUCTILE_WATCH when empty",
    )
    trace: str = _option("", "folder for IR, sources and timings of each graph; INDUCTILE_TRACE when empty")

    @staticmethod
    def resolve(mode: str | None = None, options: Mapping[str, Any] | None = None) -> Config:
        """The configuration for a mode and options as torch.compile hands them over.

        Raises UserError for an unknown mode or option (naming the nearest), a wrong type or a wrong choice.
        """
        values = dict(list_mode_options(mode or "default"))
        fields = {f.name: f for f in dataclasses.fields(Config)}
        for raw, value in (options or {}).items():
            name = raw.replace("-", "_")
            if name not in fields:
                raise UserError(f"unknown option {raw!r}", nearest(name, fields) or f"known: {', '.join(fields)}")
            values[name] = _checked(fields[name], value)
        return Config(**values)

    def key(self) -> str:
        """Text of everything that changes what is generated, for cache keys."""
        shown = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        for name in ("on_error", "verify_each", "cache", "compile_threads", "trace"):
            del shown[name]
        return repr(sorted(shown.items()))


_TYPES = {"str": str, "bool": bool, "int": int, "float": float, "dict[str, str]": dict}


def _checked(option: dataclasses.Field[Any], value: Any) -> Any:
    wanted = _TYPES[str(option.type)]
    if wanted is float and type(value) is int:
        value = float(value)
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise UserError(f"option {option.name!r} is {value!r}", f"it takes a {wanted.__name__}")
    choices = option.metadata["choices"]
    if choices and value not in choices:
        raise UserError(f"option {option.name!r} is {value!r}", f"it takes one of: {', '.join(map(repr, choices))}")
    limits = option.metadata["limits"]
    if limits and not limits[0] <= value <= limits[1]:
        raise UserError(f"option {option.name!r} is {value!r}", f"it takes {limits[0]} to {limits[1]}")
    return value


#: modes of torch.compile -> options they set
MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "reduce-overhead": {},
    "max-autotune": {},
    "max-autotune-no-cudagraphs": {},
}


def list_mode_options(mode: str | None = None) -> dict[str, Any]:
    """Options that a mode sets; for None a dictionary of all modes.

    Modes whose dictionary is empty are accepted and compile as "default" does.
    """
    if mode is None:
        return {name: dict(values) for name, values in MODES.items()}
    if mode not in MODES:
        raise UserError(f"unknown mode {mode!r}", nearest(mode, MODES) or f"known: {', '.join(MODES)}")
    return dict(MODES[mode])


def list_options() -> dict[str, str]:
    """Every option with its default, its choices and what it does."""
    shown: dict[str, str] = {}
    for option in dataclasses.fields(Config):
        default = option.default if option.default is not dataclasses.MISSING else {}
        choices = option.metadata["choices"]
        among = f", one of {', '.join(map(repr, choices))}" if choices else ""
        shown[option.name] = f"{option.metadata['doc']} (default {default!r}{among})"
    return shown
