"""Run targets in a child process, so that a crash or an endless loop is noticed, and name the seed of every finding."""

from __future__ import annotations

import faulthandler
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fuzz.target import Target

_SECONDS = 60  # for one input; far more than any takes


@dataclass
class Report:
    """What became of some inputs of a target.

    Attributes
    ----------
    outcomes : Counter
        How many inputs were accepted and refused.
    findings : list of tuple
        The seed of an input, and what was unexpected about it.
    """

    target: str
    outcomes: Counter[str] = field(default_factory=Counter)
    findings: list[tuple[int, str]] = field(default_factory=list)

    @property
    def tried(self) -> int:
        """How many inputs there were."""
        return self.outcomes.total() + len(self.findings)


def run_one(target: Target, seed: int) -> str:
    """Return what becomes of the input with this seed; raise what is unexpected."""
    with tempfile.TemporaryDirectory() as folder:
        return target.run(np.random.default_rng(seed), Path(folder))


def run_here(target: Target, seeds: range) -> None:
    """Print a line for each seed: the seed, a tab, and the outcome or ``finding`` and what was unexpected."""
    faulthandler.enable()
    for seed in seeds:
        print(f"begin\t{seed}", flush=True)
        faulthandler.dump_traceback_later(_SECONDS, exit=True)
        try:
            outcome = run_one(target, seed)
        except Exception:
            outcome = "finding\t" + traceback.format_exc().replace("\n", "\x1f")
        faulthandler.cancel_dump_traceback_later()
        print(f"end\t{outcome}", flush=True)


def run_in_child(target: Target, first: int, count: int) -> Report:
    """Return what becomes of `count` inputs with seeds from `first`; after a crash a new process goes on behind it."""
    report = Report(target.name)
    seed, stop = first, first + count
    while seed < stop:
        command = [sys.executable, "-m", "fuzz", str(stop - seed), "--target", target.name]
        done = subprocess.run(
            [*command, "--seed", str(seed), "--here"],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            cwd=Path(__file__).parents[1],
        )
        ended = 0
        for line in done.stdout.splitlines():
            kind, _, rest = line.partition("\t")
            if kind == "end":
                outcome, _, what = rest.partition("\t")
                if outcome == "finding":
                    report.findings.append((seed + ended, what.replace("\x1f", "\n")))
                else:
                    report.outcomes[outcome] += 1
                ended += 1
        seed += ended
        if seed < stop:
            report.findings.append((seed, f"the process ended with {done.returncode}\n{done.stderr[-4000:]}"))
            seed += 1
    return report
