"""Options of one compilation. No torch: the command lines read them too."""

from __future__ import annotations

import dataclasses
import math
import uuid
from collections.abc import Mapping
from dataclasses import field
from functools import cache
from typing import Any

from ..errors import UserError
from ..lowering.pre_grad import PRE_GRAD, pre_grad_names
from ..lowering.registry import available_passes, nearest
from ..records import dataclass
from .option_names import TRANSLATED, Translation, joined, option_names, tell_without_effect, unknown_option

_TRITON = "triton."
"""In front of the names of options that have it in TorchInductor; both spellings are taken."""


def _option(
    default: Any,
    doc: str,
    choices: tuple[Any, ...] = (),
    limits: tuple[float, float] | None = None,
    group: str = "",
    synonyms: Mapping[bool, Any] | None = None,
) -> Any:
    metadata = {"doc": doc, "choices": choices, "limits": limits, "group": group, "synonyms": synonyms or {}}
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
        "settle-numbers,remove-identities,write-out-flex-attention,recognise-attention,prove-attention-masks,"
        "group-attention-heads",
        "passes on Dynamo's graph, separated by commas",
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
    integer_products: str = _option(
        "auto",
        "who multiplies matrices of 8-bit integers on the CPU: ATen, exact products of float32 in blocks, or ATen "
        "where the processor has instructions for integers (VNNI)",
        ("auto", "library", "floats"),
    )
    dequantised_copies: str = _option(
        "auto",
        "on a GPU, when a product of many rows dequantises its weight into memory, for the library: 'auto' where a "
        "kernel that dequantises in registers takes more than 1.3 times as long by estimates, as with scales of "
        "groups, 'faster' where it takes longer at all, or 'never', not with scales of groups either, but for numbers "
        "of 4 bits in pairs",
        ("auto", "faster", "never"),
    )
    packed_weights: str = _option(
        "auto",
        "with `freezing` on the CPU, keep weights as oneDNN or MKL arranges them, as they do in each call otherwise; "
        "takes their memory once more: 'auto' for those elements that it can arrange here, or 'never'",
        ("auto", "never"),
    )
    pad_products: bool = _option(
        True,
        "on a GPU, let products whose rows begin at unaligned addresses read and write aligned ones, where measured "
        "rates of the GPU say that it pays",
    )
    allow_tf32: bool = _option(
        False,
        "on a GPU, take float32 products for ones in TF32, whose rows are padded where that pays; set by itself where "
        "torch.set_float32_matmul_precision or torch.backends.cuda.matmul asks for TF32",
    )
    row_products: bool = _option(
        True,
        "compute products of a matrix and few vectors by kernels that fuse with what is around them, where that was "
        "measured to be faster than the library, on a CPU of one vector of bfloat16",
    )
    overlap_launches: str = _option(
        "auto",
        "on NVIDIA GPUs from Hopper on, let a kernel begin before the one in front of it ends, load weights, and wait "
        "for the rest by itself: 'auto' where all products of a graph have one row, as those of a decoding step, "
        "'always' (True), or 'never' (False)",
        ("auto", "always", "never"),
        synonyms={True: "always", False: "never"},
    )
    loop_products: str = _option(
        "auto",
        "compute matrix products, and attention written op by op, by kernels of ours, which fuse with what is around "
        "them: 'auto' where they were measured to be faster, 'always' (True), or 'never' (False); on a GPU they run at "
        "0.92 of the library's pace, 1.10 with an epilogue, on a CPU at an eighth to a half of it",
        ("auto", "always", "never"),
        synonyms={True: "always", False: "never"},
    )
    freezing: bool = _option(
        False,
        "in inference, compute what parameters and buffers alone decide once, and keep it until one of them changes; "
        "writes through `.data` are not seen",
    )
    freezing_discard_parameters: bool = _option(
        False,
        "with `freezing`, release weights that a program has only what it keeps of, once that is there; who uses their "
        "module otherwise gets an error, changes of its weights are not seen, and a new size is not compiled for",
    )
    memory_pool: bool = _option(
        True,
        "on the CPU, keep memory for intermediate values between calls, where that does not raise the peak of a call; "
        "programs share it, and it is given back with the last of them; on a GPU, allocate small ones of constant "
        "sizes at once",
    )
    activation_memory_budget: float = _option(
        1.0,
        "memory for values saved for backward: from 1.0, as cheap as can be, to 0.0, as little as can be",
        limits=(0.0, 1.0),
    )
    disabled_passes: str = _option(
        "", "names of passes to leave out, separated by commas; programs must not need them: see --list-passes"
    )
    insert: dict[str, str] = _option({}, 'passes to add, e.g. {"after:loop-fuse": "my-pass{n=2}"}')
    debug_counter: str = _option("", "switch single rewrites off: NAME-skip=N,NAME-count=N")
    cache: bool = _option(True, "keep compiled kernels on disk, under INDUCTILE_CACHE_DIR")
    cache_graphs: bool = _option(
        True, "keep whole compiled graphs there too, for later processes; INDUCTILE_GRAPH_CACHE=0 switches it off"
    )
    compile_threads: int = _option(0, "compiler processes at once; 0: one a core", limits=(0, math.inf))
    watch: str = _option(
        "",
        "flags of inductile-opt that watch passes, e.g. '--print-ir-after-change --timing'; INDUCTILE_WATCH when empty",
    )
    max_autotune: bool = _option(
        False,
        "choose who computes products, and attention written op by op, by timing candidates when a graph compiles; "
        "what was measured is kept under INDUCTILE_CACHE_DIR",
    )
    coordinate_descent_tuning: bool = _option(False, "tune sizes of tiles by timing them, where there is a choice")
    fallback_by_default: bool = _option(False, "call ATen for every op instead of generating kernels")
    cudagraphs: bool = _option(
        False, "on a CUDA device, record what a graph launches and replay it in later calls", group=_TRITON
    )
    graph_partition: bool = _option(
        True, "where only a part of a graph can be recorded, record the parts that can; else none of it is"
    )
    cudagraph_trees: bool = _option(True, "let recorded graphs share one pool of memory", group=_TRITON)
    cudagraph_skip_dynamic_graphs: bool = _option(False, "do not record graphs with dynamic sizes", group=_TRITON)
    cudagraph_capture_sizes: tuple[Any, ...] | None = _option(
        None, "record for these values of the dynamic sizes alone", group=_TRITON
    )
    cudagraph_dynamic_shape_warn_limit: int | None = _option(
        8, "warn when a graph is recorded for more sizes than this; None: never", group=_TRITON
    )
    cudagraph_dynamic_shape_limit: int | None = _option(
        64, "record a graph for so many sizes, and launch kernel by kernel for others; None: no limit", group=_TRITON
    )
    cudagraph_unexpected_rerecord_limit: int = _option(
        128, "record again so often because an address changed that was taken as fixed", group=_TRITON
    )
    cudagraph_support_input_mutation: bool = _option(
        True,
        "record graphs that write to their inputs, where these are fixed or made by recorded graphs",
        group=_TRITON,
    )
    cudagraph_or_error: bool = _option(False, "raise an error where a graph cannot be recorded", group=_TRITON)
    force_cudagraph_sync: bool = _option(False, "wait for the device after each replay", group=_TRITON)
    force_cudagraphs_warmup: bool = _option(False, "never record, only prepare for it", group=_TRITON)
    skip_cudagraph_warmup: bool = _option(False, "record in the first call", group=_TRITON)
    slow_path_cudagraph_asserts: bool = _option(True, "check memory while recording", group=_TRITON)
    fast_path_cudagraph_asserts: bool = _option(False, "check memory in each replay", group=_TRITON)
    cudagraph_trees_generation_cloning: str | None = _option(
        None,
        "copy results of recorded graphs that are alive when a new step would overwrite them, 'user_visible', as torch "
        "2.14 can; None: reading one is an error",
        ("user_visible",),
        group=_TRITON,
    )
    cudagraph_trees_history_recording: bool = _option(
        False, "have torch's allocator keep a history while it records", group=_TRITON
    )
    cudagraph_trees_objgraph: bool = _option(False, "dump what holds memory of recordings that leaks", group=_TRITON)
    nvtx: bool = _option(False, "mark the call of each graph, and its launches, as ranges of NVTX")
    trace: str = _option("", "folder for IR, sources and timings of each graph; INDUCTILE_TRACE when empty")
    trace_enabled: bool = _option(
        False, "a trace in torch's debug folder, with TorchInductor's file names; TORCH_COMPILE_DEBUG=1 sets it"
    )
    trace_debug_dir: str | None = _option(None, "where `trace_enabled` writes instead of torch's debug folder")
    trace_save_real_tensors: bool = _option(
        False, "save the inputs of the first call with a trace; INDUCTILE_TRACE_INPUTS=1 does too"
    )
    trace_graph_diagram: bool = _option(False, "a picture of the final program, its kernels and buffers, in the trace")
    decompositions: Any = _option(
        None, "more decompositions: a dictionary from an overload, or an op with all of its overloads, to a function"
    )
    pre_grad_custom_pass: Any = _option(None, "called with Dynamo's graph, a torch.fx.Graph, behind our passes on it")
    joint_custom_pre_pass: Any = _option(
        None, "called with the graph of forward and backward together, or of inference, before our passes"
    )
    joint_custom_post_pass: Any = _option(None, "the same, behind `joint_custom_pre_pass`")
    post_grad_custom_pre_pass: Any = _option(
        None, "called with each forward, backward or inference graph before import"
    )
    post_grad_custom_post_pass: Any = _option(None, "the same, behind `post_grad_custom_pre_pass`")
    custom_partitioner_fn: Any = _option(None, "splits joint graphs instead of the pass graph-partition")

    @staticmethod
    def resolve(
        mode: str | None = None, options: Mapping[str, Any] | None = None, settings: Mapping[str, Any] | None = None
    ) -> Config:
        """The configuration for a mode and options as torch.compile hands them over.

        settings: options that hold where neither mode nor options say something: what torch is configured with

        Names of TorchInductor are taken, as option_names.toml says; of those without effect a warning tells, once.
        Raises UserError for an unknown mode or option (naming the nearest), a wrong type or a wrong choice, and for an
        option that would change results.
        """
        values: dict[str, Any] = {}
        without_effect: dict[str, str] = {}
        written: dict[str, str] = {}
        for given in (settings or {}, list_mode_options(mode or "default"), options or {}):
            taken = Translation()
            names = {raw: _own_name(raw, value, taken) for raw, value in given.items()}
            own = {name: given[raw] for raw, name in names.items() if name is not None}
            written |= taken.written | {name: raw for raw, name in names.items() if name is not None}
            values |= joined(taken.options, own)
            without_effect |= taken.without_effect
        fields = _fields()
        without_effect |= _foreign_passes(values.get("disabled_passes", ""))
        checked = {name: _checked(fields[name], value, written[name]) for name, value in values.items()}
        tell_without_effect(without_effect)
        return Config(**checked)

    def changed(self) -> dict[str, Any]:
        """The options that are not at their default, but for those of the trace."""
        shown = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if not f.name.startswith("trace")}
        default = Config()
        return {name: value for name, value in shown.items() if value != getattr(default, name)}

    def key(self) -> str:
        """Text of everything that changes what is generated, for cache keys."""
        shown = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        for name in ("on_error", "verify_each", "cache", "cache_graphs", "compile_threads"):
            del shown[name]
        shown = {name: value for name, value in shown.items() if not name.startswith("trace")}
        shown |= {name: identity_of(shown[name]) or uuid.uuid4().hex for name in _CALLED if shown[name] is not None}
        return repr(sorted(shown.items()))

    def unnamed_functions(self) -> list[str]:
        """Options that hold a function of which nothing says what it does."""
        values = {name: getattr(self, name) for name in _CALLED}
        return [name for name, value in values.items() if value is not None and identity_of(value) is None]


def names_of(text: str) -> set[str]:
    """The names of a list with commas."""
    return {name.strip() for name in text.split(",") if name.strip()}


def _foreign_passes(names: object) -> dict[str, str]:
    """Names of passes to leave out that are none of ours, as names of options with the reason."""
    known = {*available_passes(), *PRE_GRAD} if names else set()
    others = names_of(names) - known if isinstance(names, str) else ()
    return {
        f"disabled_passes={name}": f"no pass here has this name{f', {hint}' if (hint := nearest(name, known)) else ''}"
        for name in sorted(others)
    }


def identity_of(value: Any) -> str | None:
    """What stands for a function, or for several, in keys; None where nothing does.

    Torch's `CustomGraphPass`, `CustomGraphModulePass` and `CustomPartitionerFn` say it by their method `uuid`.
    """
    if isinstance(value, list | tuple):
        each = [identity_of(one) for one in value]
        return None if None in each else repr(each)
    named = getattr(value, "uuid", None)
    found = named() if callable(named) and callable(value) else None
    return None if found is None else f"{type(value).__module__}.{type(value).__qualname__} {found!r}"


_CALLED = {f.name for f in dataclasses.fields(Config) if f.type == "Any"}
"""Options that are functions. What a function does has no text, so that no key with one is that of another."""


@cache
def _fields() -> dict[str, dataclasses.Field[Any]]:
    return {f.name: f for f in dataclasses.fields(Config)}


def _own_name(raw: str, value: Any, taken: Translation) -> str | None:
    """The field for an option; None for one of TorchInductor's, which `taken` gets. UserError for an unknown one."""
    if not isinstance(raw, str):
        raise UserError(f"an option is named {raw!r}", "names are text, as in {'max_autotune': True}")
    spelled = raw.replace("-", "_")
    name = field_name(spelled)
    known = option_names().get(spelled)
    is_ours = name in _fields() and (known is None or known.verdict != TRANSLATED)
    if not is_ours and taken.add(spelled, value):
        return None
    if name not in _fields():
        raise unknown_option(raw, (f.metadata["group"] + f.name for f in _fields().values()))
    return name


def field_name(option: str) -> str:
    """The field of Config for the name of an option; those of TorchInductor's group `triton` have no prefix here."""
    name = option.replace("-", "_")
    bare = name.removeprefix(_TRITON)
    return bare if bare in _fields() and _fields()[bare].metadata["group"] == _TRITON else name


_TYPES = {"str": str, "bool": bool, "int": int, "float": float, "dict[str, str]": dict, "tuple[Any, ...]": tuple}
_OR_NONE = " | None"


def _checked(option: dataclasses.Field[Any], value: Any, written: str) -> Any:
    """The value of an option. UserError, under the name that was written, for one that does not fit."""
    kind = str(option.type)
    if kind == "Any":
        return value if option.name == "decompositions" else _function(value, written)
    value = option.metadata["synonyms"].get(value, value) if isinstance(value, bool) else value
    if value is None and kind.endswith(_OR_NONE):
        return value
    wanted = _TYPES[kind.removesuffix(_OR_NONE)]
    if wanted is tuple and isinstance(value, list):
        value = tuple(value)
    if wanted is float and type(value) is int:
        value = float(value)
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        words = ", ".join(map(repr, option_names()[written].when)) if written in option_names() else ""
        also = f", or one of TorchInductor's {words}" if words and "*" not in words else ""
        raise UserError(f"option {written!r} is {value!r}", f"it takes {_article(wanted.__name__)}{also}")
    choices = option.metadata["choices"]
    if choices and value not in choices:
        raise UserError(f"option {written!r} is {value!r}", f"it takes one of: {', '.join(map(repr, choices))}")
    limits = option.metadata["limits"]
    if limits and not limits[0] <= value <= limits[1]:
        raise UserError(f"option {written!r} is {value!r}", f"it takes {_described(*limits)}")
    return value


def _article(name: str) -> str:
    """A noun behind its article."""
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _described(least: float, most: float) -> str:
    """The numbers between two limits, in words."""
    return f"{least} or more" if most == math.inf else f"{least} to {most}"


def _function(value: Any, written: str) -> Any:
    """A function of a graph, several, or none."""
    for each in value if isinstance(value, list | tuple) else (value,):
        if each is not None and not callable(each):
            takes = "it takes a function of a torch.fx.Graph, or a list of them"
            raise UserError(f"option {written!r} holds {each!r}", takes)
    return value


#: modes of torch.compile -> options they set, under TorchInductor's names
MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "lite": {"fallback_by_default": True},
    "reduce-overhead": {"triton.cudagraphs": True},
    "max-autotune-no-cudagraphs": {"max_autotune": True, "coordinate_descent_tuning": True},
    "max-autotune": {"max_autotune": True, "triton.cudagraphs": True, "coordinate_descent_tuning": True},
}


def list_mode_options(mode: str | None = None) -> dict[str, Any]:
    """Options that a mode sets; for None a dictionary of all modes. UserError for an unknown mode."""
    if mode is None:
        return {name: dict(values) for name, values in MODES.items()}
    if mode not in MODES:
        raise UserError(f"unknown mode {mode!r}", nearest(mode, MODES) or f"known: {', '.join(MODES)}")
    return dict(MODES[mode])


class Options(dict[str, str]):
    """Options with what each does. Printed, a line for each that does something; the others are too many to read."""

    _WITHOUT = "[without effect]"

    def __str__(self) -> str:
        shown = {name: text for name, text in self.items() if not text.startswith(self._WITHOUT)}
        width = max(map(len, shown), default=0)
        lines = [f"{name:{width}}  {_shortened(text)}" for name, text in shown.items()]
        if left := len(self) - len(shown):
            lines.append(f"and {left} names of TorchInductor without effect, each with the reason in this dictionary")
        return "\n".join(lines)


def _shortened(text: str) -> str:
    """A description without the list of what a choice switches on or off."""
    return text.partition("; on, and what changes: ")[0].partition("; off, and why: ")[0]


def list_options() -> Options:
    """Every name that `options` takes with what it does: ours with default and choices, then those of TorchInductor.

    A text begins with `[inductile]` for an option of ours alone, with `[both]` for one that TorchInductor has too, and
    for its other names with what becomes of them: `[translated]`, `[refused]` or `[without effect]`.
    """
    shown: dict[str, str] = {}
    foreign = option_names()
    for option in dataclasses.fields(Config):
        name = option.metadata["group"] + option.name
        mark = "both" if name in foreign else "inductile"
        shown[name] = f"[{mark}] {describe_option(option)}"
    shown |= {each.name: f"[{each.verdict}] {each}" for each in foreign.values() if each.name not in shown}
    return Options(shown)


def describe_option(option: dataclasses.Field[Any]) -> str:
    """What an option of ours does, its default and choices."""
    default = option.default if option.default is not dataclasses.MISSING else {}
    choices = option.metadata["choices"]
    among = f", one of {', '.join(map(repr, choices))}" if choices else ""
    on = f"; on, and what changes: {changes}" if (changes := _what_is_on(option.name)) else ""
    off = f"; off, and why: {reasons}" if (reasons := _what_is_off(option.name)) else ""
    return f"{option.metadata['doc']} (default {default!r}{among}){on}{off}"


def _what_is_on(option: str) -> str:
    """What the passes of an option with a list of names do by default."""
    if option != "pre_grad":
        return ""
    return "; ".join(f"{name}: {PRE_GRAD[name].purpose}" for name in pre_grad_names(Config.pre_grad))


def _what_is_off(option: str) -> str:
    """What an option with a list of names leaves out by default, with the reason."""
    if option == "patterns":
        from ..passes.graph.patterns import PATTERNS  # needs the dialects

        return "; ".join(f"{each.name}: {each.differs}" for each in PATTERNS if not each.is_exact)
    if option == "pre_grad":
        on = pre_grad_names(Config.pre_grad)
        return "; ".join(f"{each.name}: {each.purpose}" for each in PRE_GRAD.values() if each.name not in on)
    return ""
