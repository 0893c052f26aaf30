"""Files of machine code: one per kernel and types of its arguments, named by a hash of all that the code depends on.

A file is read from the first of these folders that has it: the one that comes with a built package, and the one that
kernels are compiled into on this machine (see `machine_code`), which is chosen once it is needed. What comes with the
package is for a *baseline*: a processor of the last ten years. Every machine with its features runs this code about as
fast as its own. A file does not depend on where the package lies, and a file that is not exactly what is asked for is
not found.

A file begins with a hash of the rest of it. A damaged one is compiled again, never loaded. A file that
another user may have written is not read: a hash does not show who wrote it (see `private_files`).
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import pickle
import re
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.registry import cpu_target
from numba.core.serialize import dumps

from posteriori.kernels.machine.machine_code import baseline
from posteriori.kernels.machine.private_files import (
    read_beside,
    read_private,
    why_not_private,
    why_not_trusted,
    write_private,
)

_dumps: Any = dumps  # Numba does not annotate these
_CompileResult: Any = CompileResult

SHIPPED = Path(__file__).with_name("compiled")
_LOOPS = Path(__file__).parents[1] / "loops"
MADE_WITH = "made_with.json"  # beside shipped code
FAILED = "failed"  # its entry if the build could not compile: why (`hatch_build.py` writes it)
_SUFFIX = ".code"
_DIGEST = hashlib.sha256().digest_size
_OLD = 30 * 24 * 3600.0  # seconds; files of a kernel that has changed since are then removed


class CodeFiles(_Cache):
    """The machine code of one kernel, as Numba asks for it.

    Parameters
    ----------
    loop : callable
        The loop of the kernel.
    options : str
        What else the code depends on: what the compiler may assume.
    find_folder : callable
        Returns where code that is compiled here is kept; without a folder it is compiled in every process.
    """

    def __init__(self, loop: Callable[..., Any], options: str, find_folder: Callable[[], Path | None]) -> None:
        self._find_folder = find_folder
        name = f"{loop.__module__.rpartition('.')[2]}.{loop.__qualname__}"
        self._name = re.sub(r"[^\w.]", "", name)
        code, cells = loop.__code__, [cell.cell_contents for cell in loop.__closure__ or ()]
        loop_is = (name, code.co_firstlineno, code.co_code, _dumps(cells) if cells else b"", options)
        self._source = _hash(stamp(Path(inspect.getfile(loop))), loop_is)
        self._enabled = True

    @property
    def cache_path(self) -> str | None:
        """The folder that code is kept in."""
        return None if (folder := self._find_folder()) is None else str(folder)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled kernel for the types of arguments, or None: then it has to be compiled."""
        target_context.refresh()
        if self._enabled and (found := self._found(sig, target_context.codegen().magic_tuple())):
            return _CompileResult._rebuild(target_context, *pickle.loads(found[1]))
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the compiled kernel, if there is a folder to keep it in."""
        if not self._enabled or data.lifted or data.library.has_dynamic_globals:
            return
        if (folder := self._find_folder()) is None:
            return
        content = _dumps(data._reduce())
        with contextlib.suppress(OSError):  # a full disk, or a folder that is gone: compiled again next time
            name = self._file_name(sig, data.codegen.magic_tuple())
            write_private(folder, name, _with_hash(content))
            self._remove_old()

    def content_of(self, sig: Any) -> tuple[str, bytes] | None:
        """Return the name and the content of the file that has the code for some types of arguments, or None."""
        found = self._found(sig, _this_machine())
        return None if found is None else (found[0], _with_hash(found[1]))

    def enable(self) -> None:
        """Load and keep code again."""
        self._enabled = True

    def disable(self) -> None:
        """Stop loading and keeping code."""
        self._enabled = False

    def flush(self) -> None:
        """Remove what is kept of this kernel."""
        for path in self._kept():
            path.unlink(missing_ok=True)

    def _found(self, sig: Any, machine: tuple[str, ...]) -> tuple[str, bytes] | None:
        """Return the name and the code of the first file for some types and a machine: system, processor, features."""
        names = [self._file_name(sig, machine)]
        if runs_baseline(machine[2]) and (known := baseline()):
            names.append(self._file_name(sig, (machine[0], known[0], "")))
        for name in names:
            if (code := _code_in(read_beside(SHIPPED.parent, SHIPPED.name, name))) is not None:
                return name, code
        if (folder := self._find_folder()) is None:
            return None
        read = ((name, _code_in(read_private(folder, name))) for name in names)
        return next(((name, code) for name, code in read if code is not None), None)

    def _file_name(self, sig: Any, machine: tuple[str, ...]) -> str:
        key = _hash(str(sig), machine, numba.__version__, _python())
        return f"{self._name}-{self._source}-{key}{_SUFFIX}"

    def _kept(self) -> list[Path]:
        folder = self._find_folder()
        return [] if folder is None or why_not_private(folder) else list(folder.glob(f"{self._name}-*{_SUFFIX}"))

    def _remove_old(self) -> None:
        """Remove files of former sources of this kernel."""
        for path in self._kept():
            if f"-{self._source}-" not in path.name and time.time() - path.stat().st_mtime > _OLD:
                path.unlink(missing_ok=True)


def made_with() -> dict[str, str]:
    """Return the versions and settings that machine code depends on, beside its sources and the processor."""
    return {"numba": numba.__version__, "python": _python(), "system": _this_machine()[0]}


def why_shipped_code_is_unused() -> str:
    """Return why the code that comes with the package cannot be used here; empty if it can, or if there is none."""
    if reason := why_not_trusted(SHIPPED.parent, SHIPPED.name):
        return f"the machine code that comes with posteriori is not run, because {reason}"
    try:
        shipped = json.loads(read_beside(SHIPPED.parent, SHIPPED.name, MADE_WITH) or b"")
    except ValueError:
        return ""
    if not isinstance(shipped, dict):
        return ""
    if FAILED in shipped:
        return f"posteriori was installed without machine code, because compiling it failed: {shipped[FAILED]}"
    if shipped == made_with():
        if runs_baseline(_this_machine()[2]):
            return ""
        needed = " ".join(sorted(known[1])) if (known := baseline()) else "other features"
        return f"the machine code that comes with posteriori needs a processor with {needed}"
    here = made_with()
    named = ", ".join(
        f"{name} {shipped.get(name)}, not {here[name]}" for name in here if shipped.get(name) != here[name]
    )
    return f"the machine code that comes with posteriori is for {named}"


def _python() -> str:
    return f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"


def _this_machine() -> tuple[str, str, str]:
    """Return the system, the processor and its features, as Numba names them."""
    machine: tuple[str, str, str] = cpu_target.target_context.codegen().magic_tuple()
    return machine


def runs_baseline(features: str) -> bool:
    """Return whether a processor, by its features in LLVM's notation (``+avx2,-sse4a``), runs code of the baseline."""
    known = baseline()
    return known is not None and known[1] <= {name[1:] for name in features.split(",") if name[:1] == "+"}


@cache
def stamp(source: Path) -> str:
    """Return a hash of a file of loops and of those that it imports, whose loops its machine code holds too."""
    text = source.read_text("utf-8")
    used = sorted({*re.findall(r"^ *from posteriori\.kernels\.loops\.(\w+) import", text, re.MULTILINE)})
    return _hash(text, *(stamp(_LOOPS / f"{name}.py") for name in used))


def _hash(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:20]


def _with_hash(code: bytes) -> bytes:
    return hashlib.sha256(code).digest() + code


def _code_in(content: bytes | None) -> bytes | None:
    """Return the code in what was read of a file; None if there is no such file, or if it is damaged."""
    return None if content is None or _with_hash(content[_DIGEST:]) != content else content[_DIGEST:]
