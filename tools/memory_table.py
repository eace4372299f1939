"""The memory of a host program over time, for people: `inductile-cost --memory`."""

from __future__ import annotations

from xdsl.ir import Operation

from ..passes.analysis.memory_profile import MemoryProfile, Moment, type_text

#: lines for the time of a program, each for the fullest moment of an equal share of its ops
LINES = 24
#: tensors that are named of those at the peak
NAMED = 12
WIDTH = 40


def memory_table(profile: MemoryProfile) -> str:
    """Memory over time, the peak, and what is alive there."""
    unit, factor = ("MiB", 1 << 20) if profile.peak >= 1 << 20 else ("KiB", 1 << 10)

    def figure(size: int) -> str:
        return f"{size / factor:.2f}"

    given = f", {figure(profile.given)} given" if profile.given else ""
    lines = [f"{profile.name}: {unit} alive over time{given}"]
    for moment in _fullest(profile.moments):
        bar = "#" * round(WIDTH * moment.alive / max(profile.peak, 1))
        lines.append(f"  {figure(moment.alive):>10s} {bar:{WIDTH}s} {_named(moment.op)}")
    if profile.at_peak is None:
        return "\n".join(lines) + "\n"
    blocks = f"; {figure(profile.peak_blocks)} in blocks of torch's allocator" if profile.peak_blocks else ""
    lines.append(f"at most {figure(profile.peak)}, {figure(profile.results_at_peak)} of them results{blocks}")
    lines.append(f"there, behind {_named(profile.at_peak)}:")
    others = [live for live in profile.alive_at_peak if not live.is_result]
    for live in others[:NAMED]:
        lines.append(f"  {figure(live.bytes):>10s} %{live.value.name_hint or '?'}: {type_text(live.value)}")
    if len(others) > NAMED:
        rest = sum(live.bytes for live in others[NAMED:])
        lines.append(f"  {figure(rest):>10s} in {len(others) - NAMED} others")
    return "\n".join(lines) + "\n"


def memory_as_dict(profile: MemoryProfile) -> dict[str, object]:
    """A profile for JSON; a moment is an op, the bytes alive behind it, and those of their blocks."""
    return {
        "function": profile.name, "given": profile.given, "peak": profile.peak, "peak_blocks": profile.peak_blocks,
        "at_peak": "" if profile.at_peak is None else _named(profile.at_peak),
        "alive_at_peak": [[live.value.name_hint, live.bytes, live.is_result] for live in profile.alive_at_peak],
        "moments": [[_named(moment.op), moment.alive, moment.blocks] for moment in profile.moments],
    }  # fmt: skip


def _fullest(moments: list[Moment]) -> list[Moment]:
    share = max(-(-len(moments) // LINES), 1)
    parts = [moments[start : start + share] for start in range(0, len(moments), share)]
    return [max(part, key=lambda moment: moment.alive) for part in parts]


def _named(op: Operation) -> str:
    """An op with the first tensor that it makes or frees."""
    value = (op.results or op.operands)[0]
    return f"{op.name} %{value.name_hint or '?'}"
