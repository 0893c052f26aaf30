"""Questions to classifiers, whose class is a column like the others."""

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.datasets import load_penguins

PENGUINS = load_penguins()
_CATEGORIES = PENGUINS.select("island", "sex", "species").drop_nulls()


@pytest.mark.parametrize(
    "model",
    [
        po.TreeAugmentedNaiveBayes(),
        po.NaiveBayes(distributions="binned"),
        po.NaiveBayes(distributions="binned", em=po.EM(components_per_class=2), random_state=0),
    ],
)
def test_the_class_given_cells_is_that_of_predict_proba(model):
    model.fit(PENGUINS, "species")
    row = PENGUINS.head(1).with_columns(pl.lit(None, pl.Float64).alias("bill_depth_mm")).drop("species")
    cells = row.row(0, named=True)
    known = ", ".join(f"{name} = {value}" for name, value in cells.items() if value is not None)
    found = model.query(f"P(species | {known})")
    assert_allclose([found[one] for one in model.classes_], model.predict_proba(row)[0], rtol=1e-9)


def test_any_column_given_class_and_ranges_is_a_network_sum():
    model = po.TreeAugmentedNaiveBayes().fit(_CATEGORIES, "species")
    net = model.to_network()
    wanted = net.probability({"sex": "male"}, {"species": "Gentoo", "island": "Biscoe"})
    assert_allclose(model.query("P(sex = male | species = Gentoo, island = Biscoe)"), wanted, rtol=1e-9)
    wanted = net.probability({"island": "Dream"}, {"species": {"Adelie", "Chinstrap"}})
    assert_allclose(model.query("P(island = Dream | species in (Adelie, Chinstrap))"), wanted, rtol=1e-9)


def test_numbers_are_asked_for_by_range():
    model = po.TreeAugmentedNaiveBayes(bins=8).fit(PENGUINS, "species")
    below, above = (model.query(f"P(body_mass_g {sign} 4000 | species = Adelie)") for sign in ("<", ">="))
    assert_allclose(below + above, 1.0, rtol=1e-9)
    assert model.query("P(body_mass_g | species = Gentoo)").mean[0] == pytest.approx(5076, rel=0.02)
    assert 0 < np.sum(list(model.query("P(species | body_mass_g > 5000)").values())) <= 1 + 1e-9
