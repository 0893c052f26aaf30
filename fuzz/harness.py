"""Run inputs in child processes, so that a crash or an endless loop is noticed, and name the seed of every finding."""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fuzz.target import ANSWER, MODEL, Target, outcome, watch

CPU_SECONDS, SECONDS = 60, 300  # for one input; far more than any takes, with kernels to compile
_MEMORY = 6 << 30  # bytes of a process
_ROOT = Path(__file__).parents[1]
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS", "NUMBA_NUM_THREADS"), "1")


@dataclass
class Report:
    """What became of some inputs of a target.

    Attributes
    ----------
    outcomes : Counter
        How many inputs came how far: `DOOR`, `MODEL` or `ANSWER`.
    cpu_seconds : float
        Of the processes that tried them, from their start.
    findings : list of tuple
        The seed of an input, and what was unexpected about it.
    right, habits : Counter
        How many inputs of a writer with a habit were answered, and how many there were.
    """

    target: str
    outcomes: Counter[str] = field(default_factory=Counter)
    cpu_seconds: float = 0.0
    findings: list[tuple[int, str]] = field(default_factory=list)
    right: Counter[str] = field(default_factory=Counter)
    habits: Counter[str] = field(default_factory=Counter)

    @property
    def tried(self) -> int:
        """How many inputs there were."""
        return self.outcomes.total() + len(self.findings)

    def add(self, other: Report) -> None:
        """Add what became of other inputs."""
        self.outcomes += other.outcomes
        self.cpu_seconds += other.cpu_seconds
        self.findings += other.findings
        self.right += other.right
        self.habits += other.habits

    def by_habit(self) -> list[str]:
        """Return a line for each habit of writers, with the share of inputs that were answered; the least first."""
        shares = {name: self.right[name] / n for name, n in self.habits.items()}
        return [
            f"  {share:.1%} of {self.habits[name]:,}: {name}"
            for name, share in sorted(shares.items(), key=lambda one: one[1])
        ]

    def __str__(self) -> str:
        """Return the counts, and the share of the inputs that came to a model, as one line."""
        counts = ", ".join(f"{n:,} {name}" for name, n in sorted(self.outcomes.items()))
        through = self.outcomes[MODEL] + self.outcomes[ANSWER]
        share = f"{through / max(1, self.outcomes.total()):.1%} through to a model"
        cost = f"{1000 * self.cpu_seconds / max(1, self.tried):.0f} ms CPU each"
        return f"{self.target}: {self.tried:,} inputs: {counts}; {share}; {cost}; {len(self.findings)} unexpected"


def run_here(target: Target, seeds: range) -> None:
    """Print two lines for each seed: the seed, and the outcome or ``finding`` and what was unexpected."""
    watch()
    if "ASAN_OPTIONS" not in os.environ:  # AddressSanitizer takes memory for notes on all memory
        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    for ended in (signal.SIGPROF, signal.SIGALRM):  # dump where Python is, then end as the signal does
        faulthandler.register(ended, chain=True)
    faulthandler.enable()
    for seed in seeds:
        print(f"begin\t{seed}", flush=True)
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            with tempfile.TemporaryDirectory() as folder:
                end = outcome(target, np.random.default_rng(seed), Path(folder))
        except Exception:
            end = "finding\t" + traceback.format_exc().replace("\r", "\\r").replace("\n", "\x1f")
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(f"end\t{time.process_time()}\t{end}", flush=True)


def run_in_child(target: Target, first: int, count: int) -> Report:
    """Return what becomes of `count` inputs with seeds from `first`; after a crash a new process goes on behind it."""
    report = Report(target.name)
    seed, stop = first, first + count
    while seed < stop:
        with tempfile.TemporaryDirectory() as folder:  # of all that the process leaves behind
            command = [sys.executable, "-m", "fuzz", str(stop - seed), "--target", target.name]
            done = subprocess.run(
                [*command, "--seed", str(seed), "--here"],
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                cwd=_ROOT,
                env=os.environ | _ONE_THREAD | {"TMPDIR": folder},
            )
        cpu_seconds = 0.0
        for line in done.stdout.split("\n"):
            kind, *rest = line.split("\t")
            if kind == "end":
                cpu_seconds, end = float(rest[0]), rest[1]
                if end == "finding":
                    report.findings.append((seed, "\t".join(rest[2:]).replace("\x1f", "\n")))
                else:
                    report.outcomes[end] += 1
                    report.habits += Counter(rest[2:])
                    report.right += Counter(rest[2:] if end == ANSWER else ())
                seed += 1
        report.cpu_seconds += cpu_seconds
        if seed < stop:
            report.findings.append((seed, f"the process ended with {done.returncode}\n{done.stderr[-4000:]}"))
            seed += 1
    return report
