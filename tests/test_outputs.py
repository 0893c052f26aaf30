"""The table of outputs in the documentation is what models give."""

from functools import cache
from pathlib import Path

import pytest

from tests.outputs import MODELS, OUTPUTS, YES, fitted, gives, stated, table

PAGE = Path(__file__).parent.parent / "docs" / "guide" / "outputs.md"

model_of = cache(fitted)


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_gives_what_the_table_says(name, output):
    model = model_of(name)
    assert gives(model, output) == (stated(name, model.subject, output) == YES)


def test_the_documentation_has_the_table():
    assert table() in PAGE.read_text(encoding="utf-8")
