"""Kernels run on every machine: machine code is kept where nobody else can write, or nowhere."""

import os
import shutil
import stat
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import posteriori
from posteriori.kernels.machine import machine_code
from posteriori.kernels.machine.machine_code import choose_folder, temporary_folder, user_folder

_NOBODY = 65534
_PACKAGE = Path(posteriori.__file__).parent
_PREDICT = """
import warnings
from posteriori.support import compilation
compiled = []
with warnings.catch_warnings(record=True) as caught, compilation.notified(lambda: compiled.append(1)):
    warnings.simplefilter("always", UserWarning)
    from posteriori import NaiveBayes
    print(NaiveBayes().fit([[0.0], [1.0], [8.0], [9.0]], ["low", "low", "high", "high"]).predict([[8.5]]))
from posteriori.kernels.loops.bayes import log_evidence
print(log_evidence.compiled.stats.cache_path, len(compiled))
print([str(w.message) for w in caught if "machine code" in str(w.message)])
"""

needs_users = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no user ids")


# Which folder -----------------------------------------------------------------------------------------------------


@pytest.fixture
def no_folder_beside(tmp_path, monkeypatch):
    """Return a folder of sources in which no file can be created, not by root either."""
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "__pycache__").write_text("a file, where a folder would have to be")
    for variable in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(variable, str(tmp_path / "user"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(machine_code.tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    return tmp_path / "sources"


def test_machine_code_is_kept_beside_the_sources_if_possible(tmp_path):
    assert choose_folder(tmp_path)[0] == tmp_path / "__pycache__"


@needs_users
def test_machine_code_is_kept_in_a_private_folder_of_the_user(no_folder_beside, tmp_path):
    assert choose_folder(no_folder_beside)[0] == user_folder() == tmp_path / "user" / "posteriori"
    assert stat.S_IMODE(user_folder().stat().st_mode) == 0o700


@needs_users
def test_machine_code_is_temporary_where_a_user_has_no_folder(no_folder_beside, tmp_path):
    (tmp_path / "user").write_text("a file, where a folder would have to be")
    assert choose_folder(no_folder_beside)[0] == temporary_folder()
    assert temporary_folder().name == f"posteriori-{os.geteuid()}"
    assert stat.S_IMODE(temporary_folder().stat().st_mode) == 0o700


@needs_users
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_can_write_to_is_passed_over(no_folder_beside, mode):
    user_folder().mkdir(parents=True)
    user_folder().chmod(mode)
    temporary_folder().mkdir()
    temporary_folder().chmod(mode)
    assert choose_folder(no_folder_beside)[0] is None


@needs_users
def test_a_folder_that_others_can_swap_is_passed_over(no_folder_beside, tmp_path):
    (tmp_path / "user").mkdir()
    (tmp_path / "user").chmod(0o777)
    assert choose_folder(no_folder_beside)[0] == temporary_folder()
    (tmp_path / "user").chmod(0o1777)  # in a sticky folder only the owner of a file can rename it
    assert choose_folder(no_folder_beside)[0] == user_folder()


@needs_users
def test_a_link_is_passed_over(no_folder_beside, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    user_folder().parent.mkdir()
    user_folder().symlink_to(tmp_path / "elsewhere")
    assert choose_folder(no_folder_beside)[0] == temporary_folder()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid(), reason="only root can give a folder to another user")
def test_a_folder_of_another_user_is_passed_over(no_folder_beside):
    for folder in (user_folder(), temporary_folder()):
        folder.mkdir(parents=True, mode=0o700)
        os.chown(folder, _NOBODY, _NOBODY)
    assert choose_folder(no_folder_beside)[0] is None


def test_there_need_be_neither_home_nor_temporary_files(no_folder_beside, monkeypatch):
    def none(*_):
        raise RuntimeError

    def nowhere():
        raise FileNotFoundError

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("LOCALAPPDATA")
    monkeypatch.setattr(machine_code.Path, "home", none)
    monkeypatch.setattr(machine_code.tempfile, "gettempdir", nowhere)
    assert choose_folder(no_folder_beside)[0] is None


# A process that may write nowhere ---------------------------------------------------------------------------------


def as_nobody(folder, **environment):
    """Return what a user without any rights to write prints, whose home does not exist."""
    if sys.platform != "linux" or os.geteuid() or not shutil.which("setpriv"):
        pytest.skip("needs Linux, root and setpriv, to run as another user")
    rights = "=-all,+dac_read_search"  # reads everything, wherever Python is installed, and writes nothing
    command = ["setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups"]
    command += [f"--inh-caps{rights}", f"--ambient-caps{rights}", f"--bounding-set{rights}", sys.executable]
    if subprocess.run([*command, "-c", ""], capture_output=True, check=False).returncode:
        pytest.skip("this container may not change the user of a process")
    package = folder / "installed" / "posteriori"
    if not package.exists():
        shutil.copytree(_PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
        for path in (package.parent, *package.parent.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "OPENBLAS_NUM_THREADS": "1"} | environment
    environment["PYTHONPATH"] = os.pathsep.join([str(package.parent), sysconfig.get_path("purelib")])
    done = subprocess.run([*command, "-c", _PREDICT], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def reachable(tmp_path):
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        folder.chmod(folder.stat().st_mode | 0o055)
    return tmp_path


def test_where_only_temporary_files_can_be_written(reachable):
    temporary = reachable / "temporary"
    temporary.mkdir()
    temporary.chmod(0o1777)
    first = as_nobody(reachable, TMPDIR=str(temporary))
    again = as_nobody(reachable, TMPDIR=str(temporary))
    assert first[0] == again[0] == "['high']"
    position, compiled = first[1].split()
    assert Path(position) == temporary / f"posteriori-{_NOBODY}"
    assert int(compiled) > 0
    assert again[1] == f"{position} 0"  # the second process compiles nothing
    assert first[2] == again[2] == "[]"


def test_where_nothing_can_be_written(reachable):
    temporary = reachable / "temporary"
    temporary.mkdir()
    temporary.chmod(0o1777)
    (temporary / f"posteriori-{_NOBODY}").mkdir(mode=0o755)  # somebody else was there first
    said = as_nobody(reachable, TMPDIR=str(temporary))
    assert said[0] == "['high']"
    assert said[1].startswith("None ")
    assert said[2].count("machine code") == 1
    assert "set NUMBA_CACHE_DIR to a folder that you can write to" in said[2]


def test_a_folder_that_is_stated_is_used(reachable):
    stated = reachable / "stated"
    stated.mkdir(mode=0o700)
    os.chown(stated, _NOBODY, _NOBODY)
    said = as_nobody(reachable, NUMBA_CACHE_DIR=str(stated))
    assert Path(said[1].split()[0]).parent == stated


def test_a_kernel_is_compiled_again_if_one_that_it_calls_changed(tmp_path):
    shutil.copytree(_PACKAGE, tmp_path / "posteriori", ignore=shutil.ignore_patterns("__pycache__"))
    loops = tmp_path / "posteriori" / "kernels" / "loops"
    (loops / "whole.py").write_text(
        "from posteriori.kernels.machine.compiling import kernel\nfrom posteriori.kernels.loops.part import step\n"
        "@kernel\ndef total(x):\n    return step(x)\n"
    )

    def total(increment):
        (loops / "part.py").write_text(
            "from posteriori.kernels.machine.compiling import kernel\n"
            f"@kernel(is_part=True)\ndef step(x):\n    return x + {increment}\n"
        )
        use = "print(f(1), sum(f.compiled.stats.cache_hits.values()))"
        code = f"from posteriori.kernels.loops.whole import total as f; {use}"
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), sysconfig.get_path("purelib")])}
        environment["NUMBA_CACHE_DIR"] = str(tmp_path / "kept")  # an earlier run of this test has compiled the same
        command = [sys.executable, "-c", code]
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout.split()

    (tmp_path / "kept").mkdir(mode=0o700)
    assert [total(1), total(1), total(2)] == [["2", "0"], ["2", "1"], ["3", "0"]]


# Messages ---------------------------------------------------------------------------------------------------------


_LISTENS = """
import numba
from posteriori.kernels.machine.compiling import kernel
from posteriori.support.compilation import notified

def add(a, b):
    return a + b

calls = []
with notified(lambda: calls.append(1)):
    results = [kernel(add)(1, 2), len(calls), kernel(add)(3, 4), len(calls)]  # the second is found in the cache
    results += [numba.njit(lambda a: a)(1), len(calls)]  # no kernel of ours
print(results, kernel(add)(1.0, 2.0), len(calls))
"""


def test_listeners_are_called_by_compiled_not_by_loaded_kernels(tmp_path):
    (tmp_path / "listens.py").write_text(_LISTENS)
    (tmp_path / "cache").mkdir(mode=0o700)
    paths = [str(tmp_path), str(_PACKAGE.parent), sysconfig.get_path("purelib")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", "import listens"]  # alone: kernels of another thread would be counted too
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert done.stdout == "[3, 1, 7, 1, 1, 1] 3.0 1\n"


def test_the_command_line_says_once_that_it_compiles(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,y\n" + "1,u,p\n2,v,q\n" * 10)
    command = [sys.executable, "-c", "import posteriori.cli as c; raise SystemExit(c.main())"]
    command += ["fit", str(tmp_path / "t.csv"), "--target", "y", "--model", "nb"]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(_PACKAGE.parent)}
    cold, warm = (
        subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stderr for _ in range(2)
    )
    assert cold.count("compiling (once per machine") == 1
    assert "compiling" not in warm
