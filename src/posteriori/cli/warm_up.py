"""The command warm-up: machine code for all kernels."""

from __future__ import annotations

import sys


def warm_up() -> None:
    """Compile all kernels before they are used.

    Kernels are the loops that Numba compiles on first use. What has machine code on this machine already is not
    compiled again. A package that was built with machine code needs this only with another version of Numba or Python,
    or on a processor without the features that the package was built for.

    Example:

        posteriori warm-up
    """
    from posteriori.kernels.machine.ahead_of_time import compile_kernels
    from posteriori.kernels.machine.compiling import use_numba

    use_numba()
    if not sys.stderr.isatty():
        n_lines = len(compile_kernels())
    else:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        from posteriori.cli.terminal import unwrapped

        columns = (TextColumn("kernels"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, console=Console(file=unwrapped(sys.stderr), stderr=True), transient=True) as bar:
            task = bar.add_task("", total=None)
            n_lines = len(compile_kernels(report=lambda done, of: bar.update(task, completed=done, total=of)))
    print(f"{n_lines} kernels have machine code")
