"""A recipe is a value: equal, hashable, kept as it was asked, sent to a worker, and stored in a model file."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import posteriori as po
from posteriori.classifiers import GenerativeEstimator
from posteriori.classifiers.estimator import estimator_of
from posteriori.datasets import load_penguins
from posteriori.fitting.learn import fit
from posteriori.fitting.merge import merge
from posteriori.fitting.recipe import Recipe
from posteriori.fitting.update import add, remove
from posteriori.registry import member_models

PENGUINS = load_penguins()
X, Y = PENGUINS.drop("species"), PENGUINS["species"]


def test_recipes_are_equal_where_class_and_parameters_are():
    assert po.NaiveBayes(bins=[1.0, 2.0]).recipe == po.NaiveBayes(bins=(1.0, 2.0)).recipe
    assert po.NaiveBayes(bins=np.array([1.0, 2.0])).recipe == po.NaiveBayes(bins=(1.0, 2.0)).recipe
    assert po.NaiveBayes(em=po.EM(tol=1e-3)).recipe == po.NaiveBayes(em=po.EM(tol=1e-3)).recipe
    assert po.NaiveBayes(em=po.EM(tol=1e-3)).recipe != po.NaiveBayes(em=po.EM(tol=1e-4)).recipe
    assert po.KDependenceBayes().recipe != po.AveragedOneDependence().recipe
    assert len({po.NaiveBayes().recipe, po.NaiveBayes().recipe, po.NaiveBayes(alpha=2.0).recipe}) == 2
    assert po.NaiveBayes(alpha=2.0).recipe.difference(po.NaiveBayes().recipe) == "alpha"
    assert po.NaiveBayes(alpha=2.0).recipe.difference(po.NaiveBayes().recipe, ["alpha"]) is None


def test_a_recipe_keeps_what_was_asked():
    model = po.NaiveBayes(em=po.EM(tol=1e-3))
    recipe = model.recipe
    model.set_params(em__tol=0.5, alpha=3.0)
    made = recipe.estimator().set_params(em__tol=0.25)
    assert (recipe.em.tol, recipe.parameters["alpha"], made.em.tol) == (1e-3, 1.0, 0.25)
    assert recipe.with_(alpha=2.0).parameters["alpha"] == 2.0
    assert recipe.with_(em__tol=0.1).em.tol == 0.1


class Fixed(po.NaiveBayes):
    """Naive Bayes whose constructor takes one parameter, and states others itself."""

    def __init__(self, alpha=1.0):
        super().__init__(alpha=alpha, priors="uniform", columns=po.Columns(categorical_features=["year"]))


class FixedPool(po.GenerativeClassifier):
    """A pool with a parameter of its own that states some of the others itself."""

    def __init__(self, members=("nb", "lda"), *, extra=1):
        super().__init__(members, folds=2, priors="uniform")
        self.extra = extra


def test_parameters_that_a_subclass_states_itself_count():
    stated = po.NaiveBayes(alpha=2.0, priors="uniform", columns=po.Columns(categorical_features=["year"])).fit(X, Y)
    model = Fixed(2.0).fit(X, Y)
    assert_array_equal(model.predict_proba(X), stated.predict_proba(X))
    assert_array_equal(model.class_prior_, [1 / 3] * 3)
    assert model.recipe.estimator().recipe == model.recipe
    model.priors = [0.2, 0.3, 0.5]  # the constructor does not take it
    assert_array_equal(model.partial_fit(X, Y).class_prior_, [0.2, 0.3, 0.5])
    pool = FixedPool().fit(X, Y)
    same = po.GenerativeClassifier(["nb", "lda"], folds=2, priors="uniform").fit(X, Y)
    assert_array_equal(pool.predict_proba(X), same.predict_proba(X))
    assert_array_equal(pool.partial_fit(X, Y).class_prior_, [1 / 3] * 3)


@pytest.mark.parametrize("name", member_models())
def test_a_recipe_is_sent_and_asks_for_the_same_densities(name):
    recipe = po.registry.find_model(name).make().recipe
    schema = po.NaiveBayes().fit(X, Y).schema_
    sent = pickle.loads(pickle.dumps(recipe))
    assert sent == recipe
    assert "_asked" not in vars(sent)
    assert [(type(b.density), b.columns) for b in sent.blocks(schema)] == [
        (type(b.density), b.columns) for b in recipe.blocks(schema)
    ]


@pytest.mark.parametrize(
    "model", [po.NaiveBayes(distributions="binned", bins=[40.0, 45.0]), po.AveragedOneDependence(bins=4)]
)
def test_estimators_are_facades_over_four_functions(model):
    recipe = model.recipe
    whole = fit(recipe, X, Y)
    assert_array_equal(estimator_of(whole).predict_proba(X), model.fit(X, Y).predict_proba(X))
    first = fit(recipe, X[:200], Y[:200], complete=False)
    assert_array_equal(
        estimator_of(add(first, X[200:], Y[200:])).predict_proba(X),
        model.__class__(**recipe.parameters)
        .partial_fit(X[:200], Y[:200])
        .partial_fit(X[200:], Y[200:])
        .predict_proba(X),
    )
    assert_array_equal(
        estimator_of(remove(whole, X[:20], Y[:20])).predict_proba(X), model.unlearn(X[:20], Y[:20]).predict_proba(X)
    )
    assert whole.recipe == recipe


def test_values_of_shards_merge():
    recipe = po.GaussianDiscriminant().recipe
    rows = PENGUINS.drop_nulls()
    features, labels = rows.drop("species"), rows["species"]
    merged = merge([fit(recipe, features[:150], labels[:150]), fit(recipe, features[150:], labels[150:])])
    expected = po.GaussianDiscriminant().fit(features, labels)
    np.testing.assert_allclose(
        estimator_of(merged).predict_proba(features), expected.predict_proba(features), atol=1e-9
    )


def test_members_are_values_whose_estimators_are_made_on_demand():
    pool = po.GenerativeClassifier(["nb", "tan"]).fit(X, Y)
    before = pool.predict_proba(X)
    pool.members_["tan"].set_params(alpha=9.0).unlearn(X[:20], Y[:20])
    assert_array_equal(pool.predict_proba(X), before)
    assert pool.members_["tan"].fitted_ is pool.fitted_.members["tan"]
    assert pool.fitted_.members["tan"].recipe == pool.members_["tan"].recipe
    assert all(one.fitted_ is pool.fitted_.members[name] for name, one in pool.members_.items())


@pytest.mark.parametrize("name", ["mine", "NaiveBayes"])
def test_a_pool_with_a_member_of_an_unknown_class_is_not_saved(name, tmp_path):
    kind = type(name, (po.NaiveBayes,), {})
    pool = po.GenerativeClassifier(["nb"]).fit(X, Y)
    member = replace(pool.fitted_.members["nb"], recipe=replace(po.NaiveBayes().recipe, family=kind))
    pool.fitted_ = replace(pool.fitted_, members={"nb": member})
    with pytest.raises(TypeError, match=f"a {name} cannot be saved"):
        po.save(pool, tmp_path / "model.posteriori")
    assert list(tmp_path.iterdir()) == []


def test_an_estimator_that_has_only_a_prior_learns():
    class OnlyPrior(GenerativeEstimator):
        _parameter_constraints = {"priors": [None]}  # noqa: RUF012

        def __init__(self, *, priors=None):
            self.priors = priors

        def _blocks(self, schema):
            return ()

    model = OnlyPrior().fit(X, Y)
    np.testing.assert_allclose(
        model.predict_proba(X[:2]), np.tile(Y.value_counts().sort("species")["count"] / 344, (2, 1))
    )
    assert isinstance(model.recipe, Recipe)
