"""Fixtures of several files of tests of the command line: a folder to write to, and a model of the penguins."""

import json

import pytest

from posteriori.datasets import load_penguins
from tests.cli.command_line import CommandLine


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Run the test in an empty folder, on a terminal of 80 columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


@pytest.fixture(scope="session")
def fitted(tmp_path_factory):
    """Return the facts that fit printed of the penguins, and the model it saved."""
    path = tmp_path_factory.mktemp("fitted") / "penguins.posteriori"
    arguments = ("fit", "penguins.csv", "--target", "species", "--output", path, "--json")
    return json.loads(CommandLine(model="nb").succeeds(*arguments)), path


@pytest.fixture
def model(fitted):
    return fitted[1]


@pytest.fixture
def penguins(folder):
    path = folder / "birds.csv"
    load_penguins().write_csv(path)
    return path
