"""Each claim of "exact" or "equals" in the README and the pages has a row in docs/measured/exact.md, with a test."""

import ast
import functools
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.datasets import load_penguins

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "measured" / "exact.md"
CLAIM = re.compile(r"\bexact(?:ly)?\b|\bequals\b", re.IGNORECASE)
# Sentences with one of these words that claim nothing about numbers of this library.
NO_CLAIM = (
    "The error rate of a linear rule is known exactly here",
    "the variance of a count equals its mean",
    "LDA equals it at six",
    "LDA and QDA equal all others",
    "Exact values that repeat",
    "it has no exact inference",
    "which are exact too",
)


def rows():
    """Return the claim, the pages and the tests of each row."""
    lines = [line.strip("|\n ").split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if "::" in line]
    return [(cells[0], cells[1].split(", "), cells[-1].split(", ")) for cells in lines if len(cells) == 4]


@functools.cache
def functions_of(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.prose
@pytest.mark.parametrize(("claim", "pages", "tests"), rows(), ids=lambda cells: cells if isinstance(cells, str) else "")
def test_every_claim_has_its_pages_and_tests(claim, pages, tests):
    assert all((ROOT / page).is_file() for page in pages)
    for test in tests:
        path, name = test.split("::")
        assert name in functions_of(path), test


def pages():
    """Return the README and the pages of the site, without the generated ones."""
    found = [page.relative_to(ROOT).as_posix() for page in (ROOT / "docs").rglob("*.md")]
    return ["README.md", *(page for page in found if not page.startswith(("docs/auto_", "docs/measured/")))]


@pytest.mark.prose
@pytest.mark.parametrize("page", pages())
def test_every_page_that_claims_is_in_the_table(page):
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    for sentence in NO_CLAIM:
        text = text.replace(sentence, "")
    if CLAIM.search(text):
        assert page in {one for _, places, _ in rows() for one in places}, CLAIM.findall(text)


def test_new_class_shares_multiply_the_odds():
    penguins = load_penguins().select("species", "body_mass_g", "island")
    there = {"Adelie": 0.1, "Chinstrap": 0.8, "Gentoo": 0.1}
    for model in (po.NaiveBayes(), po.TreeAugmentedNaiveBayes()):
        here = model.fit(penguins, "species")
        ratio = np.array([there[name] for name in here.classes_]) / here.class_prior_
        expected = here.predict_proba(penguins) * ratio
        other = type(model)(priors=there).fit(penguins, "species")
        assert_allclose(other.predict_proba(penguins), expected / expected.sum(axis=1, keepdims=True), rtol=1e-9)
