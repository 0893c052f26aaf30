"""The recipe that adds a command: `examples/extending/command.py`."""

import json
import re

import pytest

import posteriori as po
from examples.extending import command
from posteriori import cli
from posteriori.cli import commands
from posteriori.datasets import load_penguins
from tests.cli.command_line import CommandLine


@pytest.fixture
def added(monkeypatch):
    monkeypatch.setattr(commands.app, "registered_commands", list(commands.app.registered_commands))
    cli._command.cache_clear()
    command.register()
    yield
    cli._command.cache_clear()


def test_the_command_of_the_recipe_shows_the_prior(added, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = po.NaiveBayes().fit(load_penguins(), "species")
    po.save(model, "penguins.posteriori")
    line = CommandLine()
    found = json.loads(line.succeeds("classes", "penguins.posteriori", "--json"))
    assert found["prior"] == dict(zip(model.classes_, model.class_prior_, strict=True))
    assert re.search(r"Adelie +0\.44", line.succeeds("classes", "penguins.posteriori"))
    assert "posteriori classes penguins.posteriori" in line.succeeds("classes", "--help")
    assert "no file" in line.refused("classes", "absent.posteriori")
