"""Machine code that comes with a package is loaded elsewhere, and only where it is exactly what is asked for."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import posteriori
from posteriori.kernels.machine import machine_code
from posteriori.kernels.machine.machine_code import baseline

_PACKAGE = Path(posteriori.__file__).parent
_LINES = ["bayes.log_evidence(float64[:, ::1], float64[::1])", "bayes.normalise(float64[:, ::1])"]
_BUILD = f"""
import sys
from pathlib import Path
from posteriori.kernels.machine.ahead_of_time import compile_for_package
if __name__ == "__main__":
    compile_for_package(Path(sys.argv[1]), lines={_LINES!r})
"""
_NORMALISE = """
import warnings
import numpy as np
from posteriori.support import compilation
compiled = []
with warnings.catch_warnings(record=True) as caught, compilation.notified(lambda: compiled.append(1)):
    warnings.simplefilter("always", UserWarning)
    from posteriori.kernels.loops.bayes import log_evidence, normalise
    scores = np.log([[0.1, 0.3], [0.2, 0.2]])
    out = np.empty(2)
    log_evidence.compiled(scores, out)
    normalise.compiled(scores)
print(scores.tobytes().hex() + out.tobytes().hex(), len(compiled), *[str(w.message) for w in caught], sep="\\n")
"""

pytestmark = pytest.mark.skipif(baseline() is None, reason="no baseline is known of this kind of machine")


def run(code, home, *arguments, **settings):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    paths = [str(home), sysconfig.get_path("purelib")]
    environment = kept | {"PYTHONPATH": os.pathsep.join(paths)} | settings
    done = subprocess.run(
        [sys.executable, str(home / code), *arguments],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A package with machine code of two kernels, compiled in another folder."""
    elsewhere, home = tmp_path_factory.mktemp("elsewhere"), tmp_path_factory.mktemp("home")
    for folder in (elsewhere, home):
        shutil.copytree(_PACKAGE, folder / "posteriori", ignore=shutil.ignore_patterns("__pycache__", "compiled"))
        (folder / "build.py").write_text(_BUILD)
        (folder / "normalise.py").write_text(_NORMALISE)
    shipped = home / "posteriori" / "kernels" / "machine" / "compiled"
    shipped.mkdir()
    run("build.py", elsewhere, str(shipped))
    return home


@pytest.fixture
def package(built, tmp_path):
    shutil.copytree(built, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def shipped(package):
    return package / "posteriori" / "kernels" / "machine" / "compiled"


def normalise(package, cache=None, **settings):
    """Return the numbers, how many kernels were compiled, and the warnings."""
    numbers, n_compiled, *warnings = run(
        "normalise.py", package, NUMBA_CACHE_DIR=str(cache or package / "c"), **settings
    )
    return numbers, int(n_compiled), warnings


def test_shipped_code_is_loaded_elsewhere_with_equal_numbers(package):
    (package / "c").mkdir()
    numbers, n_compiled, warnings = normalise(package)
    assert (n_compiled, warnings) == (0, [])
    shutil.rmtree(shipped(package))
    again, n_compiled, warnings = normalise(package)
    assert n_compiled > 0
    assert (again, warnings) == (numbers, [])


def test_a_damaged_file_is_compiled_again(package):
    (package / "c").mkdir()
    numbers, _, _ = normalise(package)
    for file in shipped(package).glob("bayes.normalise*.code"):
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    for file in shipped(package).glob("bayes.log_evidence*.code"):
        file.write_bytes(file.read_bytes()[:100])
    again, n_compiled, warnings = normalise(package)
    assert n_compiled > 0
    assert (again, warnings) == (numbers, [])
    assert normalise(package) == (numbers, 0, [])  # what was compiled is kept


def test_a_source_that_changed_is_compiled_again(package):
    (package / "c").mkdir()
    source = package / "posteriori" / "kernels" / "loops" / "exponential.py"  # bayes.py imports it
    source.write_text(source.read_text() + "\n")
    assert normalise(package)[1] > 0


def test_a_processor_without_the_features_compiles_and_says_so(package):
    if not baseline()[1]:
        pytest.skip("the baseline of this kind of machine needs no features")
    (package / "c").mkdir()
    _, n_compiled, warnings = normalise(package, NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="+sse2")
    assert n_compiled > 0
    assert len(warnings) == 1
    assert "needs a processor with avx2 bmi bmi2" in warnings[0]
    assert "compiled on first use instead" in warnings[0]


def test_another_version_of_numba_compiles_and_says_so(package):
    (package / "c").mkdir()
    stated = shipped(package) / "made_with.json"
    made_with = json.loads(stated.read_text())
    stated.write_text(json.dumps(made_with | {"numba": "0.1"}))
    for file in shipped(package).glob("*.code"):
        file.unlink()
    _, n_compiled, warnings = normalise(package)
    assert n_compiled > 0
    assert len(warnings) == 1
    assert f"is for numba 0.1, not {made_with['numba']}" in warnings[0]


def test_files_of_former_sources_are_removed_once_they_are_old(package):
    kept = package / "c" / "posteriori"
    kept.mkdir(parents=True)
    old, young = kept / "bayes.normalise-former-1.code", kept / "bayes.normalise-former-2.code"
    other = kept / "bayes.log_evidence_of-former-1.code"
    for file in (old, young, other):
        file.write_bytes(b"")
    for file in (old, other):
        os.utime(file, (0, 0))
    shutil.rmtree(shipped(package))
    normalise(package)
    assert not old.exists()
    assert young.exists()
    assert other.exists()  # of another kernel


@pytest.mark.parametrize(
    ("machine", "name"), [("x86_64", "x86-64-v3"), ("AMD64", "x86-64-v3"), ("aarch64", "generic"), ("arm64", "generic")]
)
def test_each_kind_of_machine_has_one_baseline_on_any_system(machine, name, monkeypatch):
    monkeypatch.setattr(machine_code.platform, "machine", lambda: machine)
    assert baseline()[0] == name


def test_a_machine_of_an_unknown_kind_has_none(monkeypatch):
    monkeypatch.setattr(machine_code.platform, "machine", lambda: "riscv64")
    assert baseline() is None
