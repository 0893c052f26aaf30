"""The mutants of `make mutants` can be applied: each text still occurs once in its file."""

from pathlib import Path

import pytest

import posteriori
from tests.mutants import MUTANTS


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.path)
def test_the_text_of_a_mutant_occurs_once(mutant):
    source = Path(posteriori.__file__).parent / mutant.path
    assert source.read_text("utf-8").count(mutant.old) == 1
    assert mutant.new != mutant.old
