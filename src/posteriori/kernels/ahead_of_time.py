"""Compile all kernels before they are used.

The list of `signatures` is divided among as many processes as there are cores. What has machine code already is loaded,
which takes milliseconds. ``python -m posteriori.kernels.ahead_of_time FOLDER`` fills the folder that comes with a built
package: it is called by the build.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path


def compile_kernels(
    n_processes: int | None = None,
    report: Callable[[int, int], None] = lambda done, of: None,
    lines: Sequence[str] | None = None,
) -> list[Path]:
    """Compile every kernel of the list for its signatures, and keep the machine code.

    Parameters
    ----------
    n_processes : int, optional
        Default: one per core.
    report : callable
        Called with the number of lines that are compiled, and the number of all.
    lines : sequence of str, optional
        Lines of the list. Default: all.

    Returns
    -------
    list of Path
        The files of machine code, of each line one.
    """
    from posteriori.kernels import signatures

    lines = lines or signatures.listed()
    found = {line: _file_of(line) for line in lines}
    files = [file for file in found.values() if file is not None]
    report(len(files), len(lines))
    if len(files) == len(lines):
        return files
    of_kernel: dict[str, list[str]] = {}
    for line in lines:
        if found[line] is None:
            of_kernel.setdefault(line.partition("(")[0], []).append(line)
    # Processes are spawned: a fork would copy the threads of libraries in a state in which they cannot go on.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(n_processes or os.cpu_count(), mp_context=context) as processes:
        tasks = [processes.submit(_compile, lines) for lines in sorted(of_kernel.values(), key=_size, reverse=True)]
        for task in as_completed(tasks):
            files += task.result()
            report(len(files), len(lines))
    return files


def compile_for_package(
    folder: Path, report: Callable[[int, int], None] = lambda done, of: None, lines: Sequence[str] | None = None
) -> None:
    """Fill a folder with machine code for the baseline of this kind of machine (see `code_files`).

    Raises
    ------
    RuntimeError
        No baseline of this kind of machine is known, or Numba was imported before.
    """
    if "numba" in sys.modules:
        raise RuntimeError("Numba is in use already, with the settings of this machine; call this in a new process")
    from posteriori.kernels.machine_code import baseline

    if (known := baseline()) is None:
        raise RuntimeError("no baseline is known of this kind of machine")
    os.environ |= {"NUMBA_CPU_NAME": known[0], "NUMBA_CPU_FEATURES": ""}  # here, and in the processes that are spawned
    for file in compile_kernels(report=report, lines=lines):
        shutil.copy2(file, folder / file.name)
    from posteriori.kernels import code_files

    (folder / code_files.MADE_WITH).write_text(json.dumps(code_files.made_with()), "utf-8")


def _compile(lines: list[str]) -> list[Path]:
    from posteriori.kernels.signatures import read_line

    for line in lines:
        kernel, kinds = read_line(line)
        kernel.compiled.compile(kinds)
    return [file for line in lines if (file := _file_of(line)) is not None]


def _file_of(line: str) -> Path | None:
    """Return the file with the machine code of a line, if there is one."""
    from posteriori.kernels.signatures import read_line

    kernel, kinds = read_line(line)
    file: Path | None = kernel.compiled._cache.file_of(kinds)
    return file


def _size(lines: list[str]) -> int:
    """Return a number that grows with the time to compile a kernel: long ones begin first."""
    from posteriori.kernels.signatures import read_line

    kernel, _ = read_line(lines[0])
    return len(kernel.__wrapped__.__code__.co_code) * len(lines)  # type: ignore[attr-defined]


if __name__ == "__main__":
    is_terminal = sys.stderr.isatty()
    compile_for_package(
        Path(sys.argv[1]),
        lambda done, of: print(f"compiled {done} of {of} kernels", end="\r" if is_terminal else "\n", file=sys.stderr),
    )
