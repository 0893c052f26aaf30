"""The experiments behind docs/ and the benchmarks: they import, and they fill blocks that their pages have."""

import importlib
import pkgutil
import re

import pytest

import benchmarks
import experiments
from experiments.page import DOCS, markdown_table, replace_block

ROOT = DOCS.parent
MODULES = sorted(module.name for module in pkgutil.iter_modules(experiments.__path__))
BENCHMARKS = sorted(module.name for module in pkgutil.iter_modules(benchmarks.__path__))


@pytest.mark.parametrize("name", MODULES)
def test_an_experiment_imports_and_its_page_exists(name):
    module = importlib.import_module(f"experiments.{name}")
    page = getattr(module, "PAGE", None)
    assert page is None or page.parent == DOCS
    assert page is None or page.exists()


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_imports(name):
    source = (ROOT / "benchmarks" / f"{name}.py").read_text(encoding="utf-8")
    if "import pyagrum" in source or "from benchmarks.networks" in source:
        pytest.importorskip("pyagrum", reason="pyAgrum is absent: pip install -e '.[bench]'")
    assert importlib.import_module(f"benchmarks.{name}")


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_every_block_of_a_page_has_an_end(page):
    text = page.read_text(encoding="utf-8")
    begins = re.findall(r"^<!-- (?!end of )([a-z ]+) -->$", text, re.MULTILINE)
    ends = re.findall(r"^<!-- end of ([a-z ]+) -->$", text, re.MULTILINE)
    assert begins == ends


def test_a_block_is_replaced_and_the_rest_stays(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("above\n<!-- scores -->\nold\n<!-- end of scores -->\nbelow\n")
    replace_block("scores", markdown_table(["a", "b"], [["1", "2"]]), path)
    expected = "above\n<!-- scores -->\n| a | b |\n|-|-|\n| 1 | 2 |\n<!-- end of scores -->\nbelow\n"
    assert path.read_text() == expected
    with pytest.raises(ValueError, match=r"page.md has no block <!-- others -->"):
        replace_block("others", "", path)
