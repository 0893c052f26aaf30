"""What completing a name shows, and that no call of the library prints."""

import ast
import importlib
import logging
import types
from pathlib import Path

import pytest

import posteriori as po

PACKAGES = ("comparison", "drop_in", "explain", "networks", "plotting")
PUBLIC = ["posteriori", *(f"posteriori.{name}" for name in PACKAGES)]


def test_type_checkers_see_the_public_names():
    tree = ast.parse(Path(po.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    names = {(node.module, name.name, name.asname) for node in block.body for name in node.names}
    assert names == {(home, name, name) for name, home in po._HOMES.items()}


@pytest.mark.parametrize("name", PUBLIC)
def test_a_namespace_shows_what_is_public_and_nothing_else(name):
    module = importlib.import_module(name)
    shown = dir(module)
    assert {one for one in shown if not one.startswith("__")} == set(module.__all__)
    assert len(set(shown)) == len(shown)
    for one in shown:
        getattr(module, one)
    public = {key for key, value in vars(module).items() if not key.startswith("_")}
    leaked = {key for key in public - set(module.__all__) if not isinstance(getattr(module, key), types.ModuleType)}
    assert not leaked
    for one in ("Any", "TYPE_CHECKING", "importlib", "annotations"):
        assert not hasattr(module, one)


def test_the_full_joint_prints_nothing_and_logs_its_size(capsys, caplog):
    X, y = [["a", "u"], ["b", "v"], ["a", "v"], ["b", "u"]], ["same", "same", "other", "other"]
    with caplog.at_level(logging.INFO, logger="posteriori"):
        model = po.classifiers.FullJointClassifier().fit(X, y)
        assert not caplog.records
        po.classifiers.FullJointClassifier(verbose=True).fit(X, y)
    assert f"{model.n_cells_} cells" in caplog.text
    printed = capsys.readouterr()
    assert not printed.out
    assert not printed.err
