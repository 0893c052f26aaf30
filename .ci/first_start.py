"""Check that an installed wheel compiles nothing: `first_start.py ENVIRONMENT`, a fresh environment with the wheel.

The commands run as another user whose home does not exist, who can write to one folder without machine code, with
`NUMBA_CACHE_DIR` unset; then once more after the files of the package have been touched. The seconds of each command
are printed beside what is asked for on two idle cores, and are no error.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_NOBODY = 65534
_COUNTED = """
from posteriori.support import compilation
compiled = []
with compilation.notified(lambda: compiled.append(1)):
    import posteriori as po
    from posteriori.datasets import load_penguins
    model = po.{model}.fit(load_penguins(), "species")
    model.predict_proba(load_penguins())
print(len(compiled), "kernels compiled")
raise SystemExit(len(compiled) > {allowed})
"""


def counted(model: str, allowed: int = 0) -> str:
    """Return a program that fits a model and fails if it compiles more kernels than allowed."""
    return _COUNTED.format(model=model, allowed=allowed)


def as_another_user() -> list[str]:
    """Return the beginning of a command that has no rights to write; empty where that cannot be had."""
    if sys.platform != "linux" or os.geteuid() or not shutil.which("setpriv"):
        return []
    rights = "=-all,+dac_read_search"  # reads everything, wherever Python is installed
    command = ["setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups"]
    command += [f"--inh-caps{rights}", f"--ambient-caps{rights}", f"--bounding-set{rights}"]
    return command if subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0 else []


def main() -> int:
    """Run the commands, and return 1 if one of them fails or compiles."""
    environment = Path(sys.argv[1]).resolve()
    python, posteriori = environment / "bin" / "python", environment / "bin" / "posteriori"
    command = [str(python), "-c", "import posteriori; print(posteriori.__path__[0])"]
    package = Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
    n_files = len(list(package.glob("kernels/machine/compiled/*.code")))
    print(f"{n_files} files of machine code come with {package}")
    failed = not n_files
    with tempfile.TemporaryDirectory() as home:
        user = as_another_user()
        folder = Path(home)
        folder.chmod(0o1777)
        shutil.copy(package / "datasets" / "penguins.csv", folder)
        settings = {name: value for name, value in os.environ.items() if not re.match("NUMBA_|XDG_", name)}
        settings |= {"HOME": "/nonexistent", "OPENBLAS_NUM_THREADS": "1"}
        fit = ["fit", "penguins.csv", "--target", "species", "--quiet"]
        works = [
            ("naive Bayes: import, fit, predict", [python, "-c", counted("NaiveBayes()")], 1.5),
            ("pool: import, fit, predict", [python, "-c", counted("GenerativeClassifier()")], 5.0),
            ("posteriori --help", [posteriori, "--help"], 0.3),
            ("posteriori fit", [posteriori, *fit], None),
            ("posteriori explain", [posteriori, "explain", "penguins.posteriori", "penguins.csv", "--row", "314"], 1.5),
        ]
        for title, words, asked in works:
            begun = time.monotonic()
            done = subprocess.run(
                [*user, *map(str, words)], cwd=folder, env=settings, capture_output=True, text=True, check=False
            )
            seconds = time.monotonic() - begun
            print(f"{title}: {seconds:.2f} s{f' (asked: {asked} s)' if asked else ''}")
            if done.returncode or "compiling" in done.stderr:
                failed = True
                print(done.stdout, done.stderr, sep="\n")
        for file in package.rglob("*"):
            file.touch()  # machine code depends on what is in the sources, not on their dates
        touched = [python, "-c", counted("NaiveBayes()")]
        if subprocess.run([*user, *map(str, touched)], cwd=folder, env=settings, check=False).returncode:
            failed = True
        old = settings | {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "+sse2", "TMPDIR": home}
        words = [python, "-c", counted("NaiveBayes()", allowed=999)]
        done = subprocess.run([*user, *words], cwd=folder, env=old, capture_output=True, text=True, check=False)
        if done.returncode or "needs a processor with" not in done.stderr:
            failed = True
            print("on an older processor:", done.stdout, done.stderr, sep="\n")
    return failed


if __name__ == "__main__":
    sys.exit(main())
