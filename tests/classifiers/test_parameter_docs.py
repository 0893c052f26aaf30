"""Documentation of the parameters of classifiers: complete, in the same words for the same parameter."""

from __future__ import annotations

import inspect
import re

import pytest

import posteriori as po
from posteriori.classifiers.parameters import insert_shared_docs

CLASSIFIERS = [
    po.NaiveBayes,
    po.GaussianDiscriminant,
    po.TreeAugmentedNaiveBayes,
    po.classifiers.ChowLiuClassifier,
    po.KDependenceBayes,
    po.AveragedOneDependence,
    po.classifiers.FullJointClassifier,
    po.Columns,
    po.EM,
    po.Labels,
]


def entries(documented):
    """Return the text of each entry under Parameters, by name."""
    doc = inspect.getdoc(documented)
    section = re.split(r"\n\w+\n-+\n", doc)[1]
    found = re.findall(r"^(\w[\w, ]*) : ([^\n]*(?:\n(?=    )[^\n]*)*)", section, re.MULTILINE)
    return {name: text for names, text in found for name in names.split(", ")}


@pytest.mark.parametrize("documented", CLASSIFIERS, ids=lambda documented: documented.__name__)
def test_each_parameter_has_an_entry_and_a_constraint(documented):
    parameters = set(inspect.signature(documented).parameters)
    assert set(entries(documented)) == parameters
    assert set(documented._parameter_constraints) == parameters
    assert ".. shared::" not in documented.__doc__


def test_the_same_parameter_has_the_same_text():
    bayes, *others = (entries(documented) for documented in CLASSIFIERS[:4])
    for name in ("priors", "columns", "labels", "em", "random_state", "feature_weights", "n_jobs"):
        assert [other[name] for other in others] == 3 * [bayes[name]]


def test_indented_continuation_lines_and_unknown_names():
    @insert_shared_docs
    class Known:
        """Summary.

        .. shared:: em,
           n_iter_
        """

    lines = [line.strip() for line in inspect.getdoc(Known).splitlines()]
    assert [line for line in lines if " : " in line] == ["em : EM, optional", "n_iter_ : int"]

    with pytest.raises(KeyError, match="absent"):

        @insert_shared_docs
        class Unknown:
            """Summary.

            .. shared:: absent
            """


@pytest.mark.parametrize("documented", CLASSIFIERS[:7], ids=lambda documented: documented.__name__)
def test_a_signature_begins_with_the_parameters_of_the_model(documented):
    names = [*inspect.signature(documented).parameters]
    shared = [name for name in names if name in ("priors", "columns", "n_jobs")]
    assert names[-3:] == shared
