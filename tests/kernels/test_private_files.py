"""Machine code is pickled: a file that another user may have written is never read, at whatever moment it appears."""

import hashlib
import os
import pickle
import stat

import numba
import pytest

from posteriori.kernels.machine import code_files, numba_compiler, private_files
from posteriori.kernels.machine.compiling import kernel
from posteriori.kernels.machine.machine_code import choose_folder
from posteriori.kernels.machine.private_files import (
    read_beside,
    read_private,
    why_not_private,
    why_not_trusted,
    write_private,
)

_NOBODY = 65534

pytestmark = pytest.mark.skipif(not private_files.HAS_OWNERS, reason="files have no owners on this system")
is_root = pytest.mark.skipif(private_files.HAS_OWNERS and os.geteuid() != 0, reason="only root can give files away")


def add(a, b):
    return a + b


class Canary:
    """What makes a folder if it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.fixture
def canary(tmp_path):
    return tmp_path / "canary"


@pytest.fixture
def stated(tmp_path, monkeypatch):
    """The folder that NUMBA_CACHE_DIR names, and no code anywhere else."""
    monkeypatch.setattr(numba_compiler, "__file__", str(tmp_path / "sources" / "numba_compiler.py"))
    monkeypatch.setattr(numba_compiler, "_said", set())
    monkeypatch.setattr(code_files, "SHIPPED", tmp_path / "sources" / "compiled")
    folder = tmp_path / "stated" / "posteriori"
    folder.mkdir(parents=True, mode=0o755)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(folder.parent))
    return folder


@pytest.fixture
def planted(stated, canary):
    """A file with a valid hash under the name of the machine code of `add`, which leaves the canary if it is read."""
    return plant(stated, canary)


def plant(folder, canary):
    name = kernel(add).compiled._cache._file_name((numba.int64, numba.int64), code_files._this_machine())
    content = pickle.dumps(Canary(canary))
    file = folder / name
    file.write_bytes(hashlib.sha256(content).digest() + content)
    file.chmod(0o644)
    return file


def give_away(path):
    os.chown(path, _NOBODY, _NOBODY, follow_symlinks=False)


def replace_by_link(path):
    elsewhere = path.with_name(f"{path.name} elsewhere")
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def replace_by_pipe(path):
    path.unlink()
    os.mkfifo(path)


OPEN = {
    "a folder for everybody": lambda file: file.parent.chmod(0o777),
    "a sticky folder": lambda file: file.parent.chmod(0o1777),
    "a folder for a group": lambda file: file.parent.chmod(0o775),
    "a folder in one for everybody": lambda file: file.parent.parent.chmod(0o777),
    "a folder in one for a group": lambda file: file.parent.parent.chmod(0o770),
    "a file for everybody": lambda file: file.chmod(0o666),
    "a file for a group": lambda file: file.chmod(0o664),
    "a link to a folder": lambda file: replace_by_link(file.parent),
    "a link to a file": replace_by_link,
    "a named pipe": replace_by_pipe,
}
OF_NOBODY = {
    "a file of another user": give_away,
    "a folder of another user": lambda file: give_away(file.parent),
    "a folder in one of another user": lambda file: give_away(file.parent.parent),
}


def test_what_only_this_user_can_write_is_read(planted, canary):
    with pytest.raises(TypeError):  # the canary is no machine code
        kernel(add)(1, 2)
    assert canary.exists()


@pytest.mark.filterwarnings("ignore:posteriori keeps no machine code in NUMBA_CACHE_DIR")
@pytest.mark.parametrize("change", [*OPEN, *(pytest.param(name, marks=is_root) for name in OF_NOBODY)])
def test_what_another_user_may_have_written_is_not_read(change, planted, canary):
    (OPEN | OF_NOBODY)[change](planted)
    assert kernel(add)(1, 2) == 3
    assert not canary.exists()


@pytest.mark.parametrize("folder", ["posteriori", ""])
def test_a_stated_folder_that_is_not_private_is_named_once(folder, stated, tmp_path):
    stated.parent.joinpath(folder).chmod(0o775)
    with pytest.warns(
        UserWarning, match=r"NUMBA_CACHE_DIR, because its group can write to .*stated.*chmod 700"
    ) as caught:
        assert [kernel(add)(1, 2), kernel(add)(1.0, 2.0)] == [3, 3.0]
    assert len(caught) == 1
    assert len(list((tmp_path / "sources" / "__pycache__").glob("*.code"))) == 2  # the next folder is used


def test_kernels_run_with_one_warning_without_a_private_folder(stated, tmp_path, monkeypatch):
    tmp_path.chmod(0o777)
    for variable in ("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME", "TMPDIR"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.warns(UserWarning, match=r"other users can write to .*; set NUMBA_CACHE_DIR to .*chmod 700") as caught:
        assert [kernel(add)(1, 2), kernel(add)(1.0, 2.0)] == [3, 3.0]
    assert len(caught) == 1
    assert not list(tmp_path.rglob("*.code"))


def test_a_folder_given_away_after_the_first_kernel_is_not_read(stated, canary):
    assert kernel(add)(1.0, 2.0) == 3.0
    assert list(stated.glob("*.code"))
    stated.rename(stated.with_name("before"))
    stated.mkdir()
    plant(stated, canary)
    stated.chmod(0o777)
    with pytest.warns(UserWarning, match="other users can write to"):
        assert kernel(add)(1, 2) == 3
    assert not canary.exists()


def test_a_folder_swapped_after_its_check_is_not_read(planted, canary, monkeypatch):
    opened, swapped = os.open, []
    checked, attack = planted.parent.with_name("checked"), planted.parent.with_name("attack")
    planted.rename(attack)

    def swap(path, *arguments, **options):
        if path == planted.name and not swapped:
            swapped.append(path)
            planted.parent.rename(checked)
            planted.parent.mkdir()
            attack.rename(planted)
            planted.parent.chmod(0o777)
        return opened(path, *arguments, **options)

    monkeypatch.setattr(private_files.os, "open", swap)
    with pytest.warns(UserWarning, match="other users can write to"):
        assert kernel(add)(1, 2) == 3
    assert swapped
    assert not canary.exists()


def test_a_file_is_checked_as_it_was_opened(tmp_path, monkeypatch):
    """Its mode is that of the content which is read, whatever its name leads to by then."""
    write_private(tmp_path, "name", b"ours")
    (tmp_path / "name").chmod(0o666)
    status = os.fstat

    def swap(descriptor):
        found = status(descriptor)
        if stat.S_ISREG(found.st_mode):
            (tmp_path / "name").unlink(missing_ok=True)
            write_private(tmp_path, "name", b"ours")
        return found

    monkeypatch.setattr(private_files.os, "fstat", swap)
    assert read_private(tmp_path, "name") is None


def test_what_comes_with_the_package_is_looked_at_first(planted, stated, canary):
    planted.unlink()
    assert kernel(add)(1, 2) == 3
    code_files.SHIPPED.mkdir(parents=True)
    planted.rename(code_files.SHIPPED / planted.name)
    plant(stated, canary)
    again = kernel(add)
    assert again(1, 2) == 3
    assert sum(again.compiled.stats.cache_hits.values()) == 1
    assert not canary.exists()


@pytest.mark.parametrize("mask", [0o000, 0o002, 0o022, 0o077])
def test_what_is_kept_is_private_whatever_the_mask_of_new_files(mask, stated, monkeypatch):
    stated.rmdir()
    stated.parent.rmdir()
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(stated.parent / "deep" / "deeper"))
    before = os.umask(mask)
    try:
        assert kernel(add)(1, 2) == 3
    finally:
        os.umask(before)
    again = kernel(add)
    assert again(1, 2) == 3
    assert sum(again.compiled.stats.cache_hits.values()) == 1
    assert list((stated.parent / "deep" / "deeper" / "posteriori").iterdir())


def test_a_relative_folder_stays_the_same_one(stated, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = choose_folder(tmp_path, "stated")[0]
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert folder == stated


@pytest.mark.parametrize("text", ["5", "[]", "null", '"failed"', "{", ""])
def test_a_damaged_list_of_what_code_was_made_with_is_no_error(text, stated):
    code_files.SHIPPED.mkdir(parents=True)
    (code_files.SHIPPED / code_files.MADE_WITH).write_text(text)
    assert code_files.why_shipped_code_is_unused() == ""


@pytest.mark.parametrize("change", [replace_by_pipe, lambda file: file.chmod(0o666)])
def test_records_of_code_that_others_may_have_written_are_unread(change, stated):
    code_files.SHIPPED.mkdir(parents=True)
    listed = code_files.SHIPPED / code_files.MADE_WITH
    listed.write_text('{"failed": "theirs"}')
    assert "theirs" in code_files.why_shipped_code_is_unused()
    change(listed)
    assert code_files.why_shipped_code_is_unused() == ""


def test_links_above_a_folder_are_followed(tmp_path):
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "absolute").symlink_to(tmp_path / "real")
    (tmp_path / "relative").symlink_to("absolute/../real")
    write_private(tmp_path / "real" / "inner", "name", b"ours")
    for way in ("absolute", "relative"):
        assert read_private(tmp_path / way / "inner", "name") == b"ours"
    (tmp_path / "loop").symlink_to("loop")
    assert "cannot be opened" in why_not_private(tmp_path / "loop" / "inner")
    (tmp_path / "real").chmod(0o777)
    assert "other users can write to" in why_not_private(tmp_path / "absolute" / "inner")


@is_root
def test_a_link_of_another_user_is_not_followed(tmp_path):
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o1777)
    link = tmp_path / "shared" / "link"
    link.symlink_to(tmp_path / "real")
    assert why_not_private(link / "inner") == ""
    give_away(link)
    assert "belongs to another user" in why_not_private(link / "inner")


def test_code_beside_sources_is_trusted_as_much_as_they_are(tmp_path):
    folder = tmp_path / "compiled"
    folder.mkdir(mode=0o755)
    write_private(folder, "name", b"ours")
    assert read_beside(tmp_path, "compiled", "name") == b"ours"
    folder.chmod(0o775)
    assert read_beside(tmp_path, "compiled", "name") is None
    assert "its group can write to" in why_not_trusted(tmp_path, "compiled")
    tmp_path.chmod(0o775)  # as all that is installed with such a mask
    (folder / "name").chmod(0o664)
    assert read_beside(tmp_path, "compiled", "name") == b"ours"
    (folder / "name").chmod(0o666)
    assert read_beside(tmp_path, "compiled", "name") is None


@is_root
def test_code_beside_sources_must_belong_to_their_owner(tmp_path):
    folder = tmp_path / "compiled"
    folder.mkdir()
    write_private(folder, "name", b"ours")
    give_away(folder / "name")
    assert read_beside(tmp_path, "compiled", "name") is None
    give_away(tmp_path)
    assert read_beside(tmp_path, "compiled", "name") == b"ours"
