"""CHANGELOG.md has one entry per release, and changes/ one short file per change since the last one."""

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

import posteriori as po

pytestmark = pytest.mark.prose

ROOT = Path(__file__).parents[1]
JOINING = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["towncrier"]
KINDS = [kind["directory"] for kind in JOINING["type"]]
CHANGES = sorted(path for path in (ROOT / "changes").iterdir() if path.name not in JOINING["ignore"])


def releases():
    """Return the version and the text of each entry, newest first."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    return re.findall(r"^## \[(.+?)\](.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)


def fault_of(name, text):
    """Return what is wrong with a file of changes/, or None."""
    if not re.fullmatch(rf"[A-Za-z0-9-]+\.({'|'.join(KINDS)})\.md", name):
        return f"its name is not NAME.KIND.md with a KIND of {KINDS}"
    if not 0 < len(text.strip()) <= 300:
        return "it has no text or more than 300 characters"
    if re.match(r"\s*[#*-]|.*\n\s*\n\s*\S", text, re.DOTALL):
        return "it has a heading, a bullet or several paragraphs"
    return None


def test_each_change_is_a_short_file_of_a_known_kind():
    faults = {path.name: fault_of(path.name, path.read_text(encoding="utf-8")) for path in CHANGES}
    assert {name: fault for name, fault in faults.items() if fault} == {}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("dates.md", "Dates are read."),
        ("dates.fix.md", "Dates are read."),
        ("dates.fixed", "Dates are read."),
        ("two words.fixed.md", "Dates are read."),
        ("dates.fixed.md", " \n"),
        ("dates.fixed.md", "Dates are read. " * 20),
        ("dates.fixed.md", "- Dates are read."),
        ("dates.fixed.md", "# Dates\nThey are read."),
        ("dates.fixed.md", "Dates are read.\n\nTimes, too."),
    ],
)
def test_a_wrong_file_of_changes_is_found(name, text):
    assert fault_of(name, text)
    assert fault_of("dates.fixed.md", "Dates are read,\nand times.\n") is None


def test_the_kinds_are_those_that_the_readme_of_the_folder_lists():
    text = (ROOT / "changes" / "README.md").read_text(encoding="utf-8")
    assert set(KINDS) == set(re.findall(r"`(\w+)`", text.partition("KIND is ")[2].splitlines()[0]))


def test_every_release_has_each_heading_and_each_entry_once():
    assert max(Counter(version for version, _ in releases()).values()) == 1
    for _, release in releases():
        headings = Counter(re.findall(r"^### .*", release, re.MULTILINE))
        entries = Counter(" ".join(entry.split()) for entry in re.split(r"^- |^### .*", release, flags=re.MULTILINE))
        del entries[""]
        assert set(headings.values()) <= {1}, headings
        assert max(entries.values(), default=1) == 1, entries.most_common(1)


def test_the_changelog_runs_from_the_first_to_this_version():
    newest, first = releases()[0], releases()[-1]
    assert newest[0] == po.__version__
    assert first[0] == "0.1.0"
    assert len(first[1].encode()) <= 4096
