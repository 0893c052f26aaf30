"""The command: ``python -m fuzz COUNT [--target NAME] [--seed FIRST]``."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

from fuzz.harness import Report, run_here, run_in_child
from fuzz.targets import TARGETS

_PART = 2000  # inputs a process


def _commit() -> str:
    found = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def main() -> int:
    """Try inputs, print what became of them, and return 1 if there are findings."""
    parser = argparse.ArgumentParser(prog="fuzz", description="Try mutated inputs; every finding is a defect.")
    parser.add_argument("count", type=int, help="inputs, of all targets together")
    parser.add_argument("--target", choices=sorted(TARGETS), help="one target only")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first input of each target")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    targets = [TARGETS[options.target]] if options.target else list(TARGETS.values())
    seeds = range(options.seed, options.seed + -(-options.count // len(targets)))
    if options.here:
        run_here(targets[0], seeds)
        return 0
    begun = time.monotonic()
    reports = {target.name: Report(target.name) for target in targets}
    parts = [(target, first) for first in seeds[::_PART] for target in targets]
    with ThreadPoolExecutor(options.jobs) as pool:
        running = [pool.submit(run_in_child, target, first, min(_PART, seeds.stop - first)) for target, first in parts]
        for n_done, one in enumerate(as_completed(running), 1):
            report = one.result()
            reports[report.target].add(report)
            print(f"{n_done} of {len(running)}: {report}", flush=True)
            for seed, what in report.findings:
                print(f"--- python -m fuzz 1 --target {report.target} --seed {seed}\n{what}", flush=True)
    total = Report("all")
    for report in reports.values():
        print(report, *report.by_habit(), sep="\n")
        total.add(report)
    print(f"{total}\ncommit {_commit()}, seeds from {seeds.start}, {(time.monotonic() - begun) / 60:.0f} minutes")
    return 1 if total.findings else 0


if __name__ == "__main__":
    sys.exit(main())
