"""The report on a mixture: shares, what tells clusters apart, and rows between them."""

import numpy as np
import pytest

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.facts.clusters import informative_columns

PENGUINS = load_penguins().drop("species")


@pytest.fixture(scope="module")
def mixture():
    return po.MixtureModel(3, random_state=0).fit(PENGUINS)


def test_the_page_has_the_figures_of_the_model(mixture):
    html = po.report(mixture, PENGUINS).html
    posterior, evidence = mixture.predict_proba(PENGUINS), mixture.score_samples(PENGUINS)
    assert f"row {posterior.max(axis=1).argmin()}<" in html
    assert f"row {evidence.argmin()}<" in html
    for size in np.bincount(posterior.argmax(axis=1)):
        assert f">{size}<" in html
    first = informative_columns(mixture)[0]
    apart = html[html.index("What tells them apart</h2>") :]
    assert apart.index(first["name"]) < apart.index(informative_columns(mixture)[1]["name"])


@pytest.mark.parametrize("n_rows", [1, 2])
def test_one_cluster_and_few_rows_have_a_page(n_rows):
    alone = po.MixtureModel(1, random_state=0).fit(PENGUINS)
    assert "Rows between clusters" in po.report(alone, PENGUINS.head(n_rows)).html


def test_what_a_report_on_clusters_does_not_use_is_refused(mixture):
    with pytest.raises(ValueError, match="y is not used in a report on clusters; remove it"):
        po.report(mixture, PENGUINS, "sex")
