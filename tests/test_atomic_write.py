"""Files are whole or as they were; links, devices and pipes stay what they are."""

import os
import stat
import threading
from pathlib import Path

import pytest

from posteriori.support.atomic_write import atomic_write


def write_half(path):
    with atomic_write(path) as part:
        part.write_text("half")
        raise KeyboardInterrupt


def test_an_error_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        write_half(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_new_file_has_the_mode_of_any_other(tmp_path):
    with atomic_write(tmp_path / "a.txt") as part:
        part.write_text("new")
    (tmp_path / "b.txt").write_text("new")
    assert (tmp_path / "a.txt").stat().st_mode == (tmp_path / "b.txt").stat().st_mode
    assert sorted(os.listdir(tmp_path)) == ["a.txt", "b.txt"]


def test_a_link_is_followed(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "folder" / "real")
    with atomic_write(tmp_path / "link") as part:
        part.write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "folder" / "real").read_text() == "new"


def test_a_pipe_gets_the_content_and_stays_a_pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    read = []
    reader = threading.Thread(target=lambda: read.append(path.read_text()))
    reader.start()
    with atomic_write(path) as part:
        part.write_text("whole")
    reader.join()
    assert read == ["whole"]
    assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this platform has no /dev/full")
def test_a_full_device_is_named_and_not_replaced(tmp_path):
    device = tmp_path / "full"
    device.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left") as refused, atomic_write(device) as part:
        part.write_text("content")
    assert refused.value.filename == str(device)
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)
