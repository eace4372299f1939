"""Launching kernels of a CPU from Python: a run of launches costs one foreign call.

A kernel's entry takes one array of 64-bit pointers and integers, which Python makes with one `struct.pack`; that is
half the price of a ctypes call with as many arguments. Several launches in a row go through `launch_all`, which picks
each kernel's arguments out of the array.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import TypeAlias

from ...dialects import kernel
from ...errors import UserError
from ..host.constants import Constants
from ..host.launchers import Launch
from .calls import Entry, Failure, kernel_error, launch_table
from .checked import FAULT_STATUS, Report
from .emit import KernelSource
from .language import Language
from .library import LoadedKernel, compile_kernels, source_text

#: gives the source of a kernel, which checks what it does if that is asked for
Emit: TypeAlias = Callable[[kernel.FuncOp, bool], KernelSource]

#: most arguments of a kernel that `launch_all` calls
MAX_ARGUMENTS = 256

_LAUNCH_ALL = """\
// Runs kernels one after the other until one fails. a[0]: the launches; a[1]: how many; then the values that `places`
// of a launch index. Returns 0, or {number of the launch} * 64 + its status.
typedef struct {
  int (*entry)(const int64_t*);
  int64_t count;
  const int64_t* places;
} Launch;
EXPORT int launch_all(const Launch* launches, int64_t count, const int64_t* values) {
  int64_t arguments[MOST];
  for (int64_t k = 0; k < count; ++k) {
    for (int64_t n = 0; n < launches[k].count; ++n) arguments[n] = values[launches[k].places[n]];
    const int status = launches[k].entry(arguments);
    if (status != 0) return (int)k * 64 + status;
  }
  return 0;
}
"""


def _launch_all(language: Language) -> KernelSource:
    text = _LAUNCH_ALL.replace("EXPORT ", language.export).replace("MOST", str(MAX_ARGUMENTS))
    return KernelSource(language, "launch_all", text, (), ("const Launch*", "int64_t"), (), "a + 2")


class CpuLauncher:
    """Compiles the kernels of one program that a language writes, and writes their launches.

    emit: gives the source of a kernel, checked or not
    """

    needs_tensors = False

    def __init__(
        self, language: Language, emit: Emit, processes: int = 0, keep: bool = True, checked: bool = False
    ) -> None:
        self._language, self._emit = language, emit
        self._processes = processes
        self.checked = checked
        self._report = Report() if checked else None
        self._keep = keep
        self._kernels: dict[str, LoadedKernel] = {}
        self._launch_all: LoadedKernel | None = None

    def compile(self, functions: Sequence[kernel.FuncOp]) -> None:
        """Emit, compile and load kernels."""
        sources = [self._emit(function, self.checked) for function in functions]
        every = [*sources, _launch_all(self._language)]
        *loaded, self._launch_all = compile_kernels(every, self._processes, self._keep, self.checked)
        for function, each in zip(functions, loaded, strict=True):
            self._kernels[function.sym_name.data] = each

    @property
    def language(self) -> Language:
        """What kernels are written in."""
        return self._language

    @property
    def kernels(self) -> dict[str, LoadedKernel]:
        """What was compiled, by name: the kernels, and what runs several launches."""
        several = self._launch_all
        return self._kernels if several is None else {**self._kernels, several.source.name: several}

    @property
    def sources(self) -> dict[str, str]:
        """All kernels as one file."""
        return {f"kernels.{self._language.name}": source_text([each.source for each in self._kernels.values()])}

    def write(self, launches: Sequence[Launch], constants: Constants) -> list[str]:
        """Lines that run the launches."""
        if len(launches) > 1 and any(_count(launch) > MAX_ARGUMENTS for launch in launches):
            return [line for launch in launches for line in self.write([launch], constants)]
        kernels = [self._kernels[launch.function.sym_name.data] for launch in launches]
        names = ", ".join(each.source.name for each in kernels)
        if len(launches) == 1:
            arguments = self._arguments(launches[0], constants)
            call = constants.bind("launch", Entry(kernels[0].entry).call)
        else:
            arguments, call = self._run(launches, kernels, constants)
        packed = struct.Struct(f"{len(arguments)}q").pack
        pack = constants.bind("pack", packing(packed) if self.checked else packed)
        line = f"{call}({pack}({', '.join(arguments)}))"
        comment = f"  # {names}" if len(names) < 80 else f"  # {len(kernels)} kernels"
        if not self.checked and not any(each.source.errors for each in kernels):
            return [line + comment]
        fail = constants.bind("fail", _failure(kernels, self._report))
        return [f"if status := {line}:{comment}", f"    {fail}(status)"]

    def _arguments(self, launch: Launch, constants: Constants) -> list[str]:
        """The arguments of a kernel; behind those that its parameters are, what a checked one checks with."""
        arguments = [*launch.pointers, *map(launch.share, launch.integers)]
        if self._report is not None:
            arguments += [*launch.extents, constants.bind("report", self._report.address)]
        return arguments

    def _run(
        self, launches: Sequence[Launch], kernels: Sequence[LoadedKernel], constants: Constants
    ) -> tuple[list[str], str]:
        """Arguments and name of the call that runs several launches; each distinct value is passed once."""
        values: dict[str, int] = {}
        places = [
            [values.setdefault(text, len(values)) for text in self._arguments(launch, constants)] for launch in launches
        ]
        assert self._launch_all is not None
        table = constants.bind("table", launch_table([each.entry for each in kernels], places))
        call = constants.bind("launch_all", Entry(self._launch_all.entry).call)
        address = constants.bind("address", ctypes.addressof(constants.namespace[table][0]))
        return [address, str(len(launches)), *values], call


def _count(launch: Launch) -> int:
    return len(launch.pointers) + len(launch.integers) + len(launch.extents) + 1


def packing(pack: Callable[..., bytes]) -> Callable[..., bytes]:
    """`struct.pack` of 64-bit integers for numbers that may be larger."""

    def checked(*numbers: int) -> bytes:
        try:
            return pack(*numbers)
        except struct.error as error:
            raise UserError("a symbol of a launch takes more than 64 bits", "use smaller sizes") from error

    return checked


def _failure(kernels: Sequence[LoadedKernel], report: Report | None = None) -> Callable[[int], None]:
    errors = [each.source.errors for each in kernels]
    if report is None:
        return Failure(errors)

    def fail(status: int) -> None:
        if status % 64 == FAULT_STATUS:
            source = kernels[status // 64].source
            raise report.error(source.name, source.buffers)
        raise kernel_error(errors[status // 64][status % 64 - 1])

    return fail
