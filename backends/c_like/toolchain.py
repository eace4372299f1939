"""The compiler of a language: finding it, its flags, and running several of it at once."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from ...errors import CompilerNotFoundError, InductileError, UserError
from ...machines.lookup import cpu_with
from ...records import dataclass
from .cache import BUILD, digest
from .language import Language
from .processor import processor

#: for kernels of files: less time, and no undefined overflow
CHECKED_FLAGS = ("-O1", "-fwrapv")
#: Torch's own kernels use what this variable names; ours follow, so that both can be tried without a unit. A
#: description of a target says what disables one, and with it all that build on it.
_CAPABILITY_VARIABLE = "ATEN_CPU_CAPABILITY"
#: characters of the compiler's messages in an error
_SHOWN = 4000
#: seconds that one run of the compiler may take, unless this variable says otherwise
_LIMIT, _LIMIT_VARIABLE = 600.0, "INDUCTILE_COMPILE_TIMEOUT"


class KernelCompileError(InductileError):
    """The compiler rejected generated code: a bug of ours. Names the source file and the command."""

    def __init__(self, source: str, command: str, messages: str, title: str = "C++") -> None:
        super().__init__(source, command, messages, title)
        self.source, self.command, self.messages, self.title = source, command, messages, title

    def __str__(self) -> str:
        return f"the {self.title} compiler failed on {self.source}; repeat it with: {self.command}\n{self.messages}"


@dataclass(frozen=True)
class Compiler:
    """A compiler: the command with its flags, and text that identifies what it generates."""

    language: Language
    command: tuple[str, ...]
    libraries: tuple[str, ...]
    identity: str

    def arguments(self, source: Path, output: Path) -> list[str]:
        """The command line that makes a shared library."""
        return [*self.command, str(source), "-o", str(output), *self.libraries]


#: for Intel's processors compilers halve the registers of AVX-512, with which torch's own kernels fill a core
_WHOLE_REGISTERS = "-mprefer-vector-width=512"
#: from this version on jump threading of GCC makes branches of choices, of padding and of NaN, so that it does not
#: vectorise maxima of windows: one of 64 channels of 112x112 in bfloat16 took 7.9 ms, without it 0.16. Version 12 took
#: 0.17, and 2.5 without
_THREADS_JUMPS = 13


def _flags_of(version: str) -> tuple[str, ...]:
    """Flags for a compiler by the first line that it tells of itself."""
    found = None if "clang" in version else re.search(r"\) (\d+)\.", version)
    return ("-fno-thread-jumps",) if found and int(found[1]) >= _THREADS_JUMPS else ()


def find_compiler(language: Language, flags: tuple[str, ...] = ()) -> Compiler:
    """The compiler that the language's variable names, else the first of those it knows.

    CompilerNotFoundError when there is none.

    flags: given behind those of every compile
    """
    names = (language.variable, "PATH", _CAPABILITY_VARIABLE)
    wanted, path, capability = (os.environ.get(name, "") for name in names)
    return _find_compiler(language, wanted, path, (*_capability(capability), *flags))


def _capability(name: str) -> tuple[str, ...]:
    target = cpu_with(name) if platform.machine() in ("x86_64", "AMD64") else None
    return () if target is None else target.flags


@cache
def _find_compiler(language: Language, wanted: str, path: str, more: tuple[str, ...] = ()) -> Compiler:
    variable, package = language.variable, language.package
    try:
        words = shlex.split(wanted)
    except ValueError as error:
        raise UserError(
            f"{variable} is {wanted!r}, which is no command line ({error})", "write it as for a shell"
        ) from error
    if words:
        program = shutil.which(words[0], path=path)
        if program is None:
            problem = f"{variable} names {words[0]!r}, which is not there"
            raise UserError(problem, f"install {package}, or unset {variable}")
        return _describe(language, (program, *words[1:]), more)
    for candidate in language.compilers:
        program = shutil.which(candidate, path=path)
        if program is not None:
            return _describe(language, (program,), more)
    raise CompilerNotFoundError(f"{language.title} compiler", package)


def _describe(language: Language, command: tuple[str, ...], more: tuple[str, ...]) -> Compiler:
    try:
        result = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        what = f"working {language.title} compiler ({command[0]} --version: {error})"
        raise CompilerNotFoundError(what, language.package) from error
    version = result.stdout.partition("\n")[0]
    flags, libraries = [*language.flags], [*language.libraries]
    is_x86 = platform.machine() in ("x86_64", "AMD64")
    flags += ("-march=native", _WHOLE_REGISTERS) if is_x86 else ("-mcpu=native",)
    flags += (*_flags_of(version), *more)
    if language.vector_math and platform.machine() == "x86_64" and platform.libc_ver()[0] == "glibc":
        libraries.insert(0, "-lmvec")
        if "clang" in version:
            flags.append("-fveclib=libmvec")
    identity = "\n".join((version, *command, *flags, *libraries, processor()))
    return Compiler(language, (*command, *flags), tuple(libraries), digest(identity.encode()))


def compile_sources(compiler: Compiler, sources: Sequence[str], folder: Path, processes: int = 0) -> list[Path]:
    """Compile each text to a library in a fresh folder inside `folder`, `processes` at a time (0: all); the libraries.

    On failure the source stays there for the KernelCompileError. An interrupt stops the compilers and leaves nothing.
    """
    limit = _time_limit()
    workplace = Path(tempfile.mkdtemp(prefix=BUILD, dir=folder))
    running = _Running(compiler.language, limit, workplace)

    def build(number: int, text: str) -> Path:
        ending = compiler.language.ending or compiler.language.name
        source, output = workplace / f"kernels{number}.{ending}", workplace / f"kernels{number}.so"
        source.write_text(text)
        arguments = compiler.arguments(source, output)
        status, messages = running.run(arguments)
        if status or not output.is_file():
            raise KernelCompileError(str(source), shlex.join(arguments), messages[:_SHOWN], compiler.language.title)
        return output

    # threads that wait for processes
    with ThreadPoolExecutor(min(processes or len(sources), len(sources))) as pool:
        try:
            return list(pool.map(build, range(len(sources)), sources))
        except BaseException as error:
            running.stop()
            pool.shutdown(cancel_futures=True)
            if not isinstance(error, InductileError):
                shutil.rmtree(workplace, ignore_errors=True)
            raise


def _time_limit() -> float:
    text = os.environ.get(_LIMIT_VARIABLE, "")
    try:
        limit = float(text) if text else _LIMIT
    except ValueError:
        limit = 0.0
    if not 0 < limit < float("inf"):
        raise UserError(f"{_LIMIT_VARIABLE} is {text!r}", "it takes a number of seconds above 0")
    return limit


class _Running:
    """The compilers that run for one call; `stop` ends them, and starts no more.

    Each runs in a session of its own: it is stopped with the processes that it started, which would keep the pipe open.
    """

    def __init__(self, language: Language, limit: float, workplace: Path) -> None:
        self._language = language
        self._limit = limit
        # what a compiler writes for its linker lies beside what it makes, not on a disk that may be full
        self._environment = {**os.environ, "TMPDIR": str(workplace)}
        self._lock = threading.Lock()
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def run(self, arguments: Sequence[str]) -> tuple[int, str]:
        """Exit status and messages of a compiler, in which bytes that are not UTF-8 are escaped.

        UserError when it takes longer than the limit; it is then stopped.
        """
        with self._lock:
            if self._stopped:
                return -signal.SIGKILL, "not started\n"
            process = subprocess.Popen(
                arguments,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=self._environment,
            )
            self._processes.add(process)
        try:
            output, _ = process.communicate(timeout=self._limit)
        except BaseException as error:
            self._kill(process)
            process.communicate()
            if isinstance(error, subprocess.TimeoutExpired):
                problem = (
                    f"the {self._language.title} compiler was stopped after {self._limit:g} s: {shlex.join(arguments)}"
                )
                variable = self._language.variable
                remedy = f"set {_LIMIT_VARIABLE} to more seconds, or {variable} to another compiler"
                raise UserError(problem, remedy) from None
            raise
        finally:
            with self._lock:
                self._processes.discard(process)
        ended = f"ended by signal {-process.returncode}\n" if process.returncode < 0 else ""
        return process.returncode, ended + output.decode(errors="backslashreplace")

    def stop(self) -> None:
        """End all of them."""
        with self._lock:
            self._stopped = True
            for process in self._processes:
                self._kill(process)

    @staticmethod
    def _kill(process: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.killpg(process.pid, signal.SIGKILL)
