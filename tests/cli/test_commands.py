"""The recipe of CONTRIBUTING.md that adds a command, run from the page."""

import json
import re
import sys
import types
from pathlib import Path

import pytest

import posteriori as po
from posteriori import cli
from posteriori.cli import commands
from posteriori.datasets import load_penguins
from tests.cli.command_line import CommandLine

MODULE = "posteriori.cli.classes"


@pytest.fixture
def added(monkeypatch):
    page = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    recipe = page.split("## Add a command")[1].split("\n## ")[0]
    code, entry = re.findall(r"```python\n(.*?)```", recipe, re.DOTALL)
    module = types.ModuleType(MODULE)
    monkeypatch.setitem(sys.modules, MODULE, module)
    exec(code, vars(module))
    monkeypatch.setattr(commands.app, "registered_commands", list(commands.app.registered_commands))
    cli._command.cache_clear()
    exec(entry, {"classes": module.classes})
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
