"""Laws of every model: a column without information on the class, an order and a name change no posterior."""

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose

from posteriori.densities.registry import REGISTRY
from posteriori.registry import MODELS
from tests.laws.models import CASES, EXCLUDED
from tests.laws.tables import Table, answers, make_table, tables


def test_every_model_and_every_density_of_the_registries_has_laws():
    assert MODELS.keys() == (CASES.keys() | EXCLUDED.keys()) & MODELS.keys()
    assert not CASES.keys() & EXCLUDED.keys()
    named = {f"nb of {entry.density.name}" for entry in REGISTRY if entry.options is not None}
    assert named <= CASES.keys()


def every_model(law):
    """Run a law on random tables for every model."""

    @pytest.mark.parametrize("name", CASES)
    def run(name):
        case = CASES[name]

        @settings(max_examples=1 if case.is_costly else 4)
        @given(table=tables(case))
        def on(table):
            law(case, table)

        on()

    run.__doc__ = law.__doc__
    return run


@every_model
def test_names_of_columns(case, table):
    renamed = Table({f"{chr(ord('z') - j)}": cells for j, cells in enumerate(table.columns.values())}, table.y)
    assert_allclose(answers(case, renamed), answers(case, table), atol=1e-9)


# The models that an empty or constant column, or the order of the columns, once changed.
TABLE = make_table(5, n_classes=3, n_numbers=3, n_categories=2, missing=0.1)
MENDED = [
    "aode 5",
    "aode learned",
    "kdb learned",
    "lda predictive",
    "qda predictive",
    "nb predictive",
    "gda oas",
    "tan",
]


@pytest.mark.parametrize("name", [*MENDED, "tan of numbers"])
def test_empty_and_constant_columns(name):
    n = TABLE.n_rows
    more = {"e": np.full(n, np.nan), "k": np.full(n, 3.5), "g": np.array(["q"] * n, dtype=object)}
    assert_allclose(answers(CASES[name], TABLE.with_columns(**more)), answers(CASES[name], TABLE), atol=1e-9)


@pytest.mark.parametrize("name", ["tan", "tan learned", "tan of numbers", "chow-liu", "kdb"])
def test_order_of_columns(name):
    turned = Table(dict(reversed(TABLE.columns.items())), TABLE.y)
    assert_allclose(answers(CASES[name], turned), answers(CASES[name], TABLE), atol=1e-9)
