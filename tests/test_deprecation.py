"""Every former name works, warns once with the new name, and is hidden from scikit-learn's parameters."""

import importlib
import inspect
import pickle
import warnings

import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import make_pipeline

import posteriori as po
from posteriori import model_selection, networks
from posteriori.deprecation import (
    REMOVED_IN,
    Renamed,
    renamed_keywords,
    renamed_module_attributes,
    renamed_parameters,
)

X = [["a", "u"], ["a", "v"], ["b", "v"], ["b", "v"]] * 10
Y = ["k", "k", "l", "k"] * 10
WITH_FEATURE_WEIGHTS = (
    po.NaiveBayes,
    po.GaussianDiscriminant,
    po.TreeAugmentedNaiveBayes,
    po.ChowLiuClassifier,
    po.KDependenceBayes,
)
PARAMETERS = [(kind, "weights", "feature_weights", "conditional") for kind in WITH_FEATURE_WEIGHTS] + [
    (kind, "components", "components_per_class", 2) for kind in WITH_FEATURE_WEIGHTS[:-1]
]


def pool():
    return po.GenerativeClassifier(members=["nb", "tan"]).fit(X, Y)


def network():
    return po.NaiveBayes().fit(X, Y).to_network()


ATTRIBUTES = [
    (lambda: po.NaiveBayes(feature_weights="conditional").fit(X, Y), "factor_weights_", "feature_weights_"),
    (lambda: po.TreeAugmentedNaiveBayes().fit(X, Y), "edge_weights_", "edge_information_"),
    (lambda: po.ChowLiuClassifier().fit(X, Y), "edge_weights_", "edge_information_"),
    (lambda: po.ChowLiuTree().fit(X), "edge_weights_", "edge_information_"),
    (pool, "weights_", "member_weights_"),
    (pool, "left_out_", "skipped_"),
    (lambda: po.NaiveBayes().fit(X, Y), "forget", "unlearn"),
    (lambda: po.ChowLiuTree().fit(X), "forget", "unlearn"),
    (network, "why", "active_trails"),
]
MODULE_ATTRIBUTES = [
    ("posteriori.networks", "why", networks.active_trails),
    ("posteriori.networks", "Why", networks.DependenceExplanation),
    ("posteriori.learning.selection", "out_of_fold", model_selection.out_of_fold),
    ("posteriori.learning.selection", "OutOfFold", model_selection.OutOfFold),
    ("posteriori.learning.out_of_fold", "out_of_fold", model_selection.out_of_fold),
    ("posteriori.learning.out_of_fold", "OutOfFold", model_selection.OutOfFold),
]


def warned_once(of, new):
    """Call a function; return its result if it warned once, at the calling line, with the new name."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = of()
    assert [one.category for one in found] == [FutureWarning]
    assert new in str(found[0].message)
    assert REMOVED_IN in str(found[0].message)
    assert found[0].filename == __file__
    return result


@pytest.mark.parametrize(("kind", "old", "new", "value"), PARAMETERS)
def test_a_former_parameter(kind, old, new, value):
    model = warned_once(lambda: kind(**{old: value}), f"the parameter {old!r} of {kind.__name__} is now {new!r}")
    assert model.get_params() == kind(**{new: value}).get_params()
    assert old not in model.get_params()
    assert old not in inspect.signature(kind).parameters
    assert clone(model).get_params() == model.get_params()
    assert warned_once(lambda: getattr(model, old), f"{kind.__name__}.{new}") == value

    changed = kind()
    assert warned_once(lambda: changed.set_params(**{old: value}), new) is changed
    assert changed.get_params() == model.get_params()
    nested = make_pipeline(kind())
    with pytest.warns(FutureWarning, match=new):
        nested.set_params(**{f"{kind.__name__.lower()}__{old}": value})
    assert nested[0].get_params() == model.get_params()
    with pytest.raises(TypeError, match=f"got both {old!r} and {new!r}"):
        kind(**{old: value, new: value})


@pytest.mark.parametrize(("make", "old", "new"), ATTRIBUTES)
def test_a_former_attribute_or_method(make, old, new):
    model = make()
    name = type(model).__name__
    found = warned_once(lambda: getattr(model, old), f"{name}.{old} is now {name}.{new}")
    if callable(found):
        assert found == getattr(model, new)
    else:
        assert repr(found) == repr(getattr(model, new))


@pytest.mark.parametrize(("module", "old", "new"), MODULE_ATTRIBUTES)
def test_a_former_name_of_a_module(module, old, new):
    home = importlib.import_module(module)
    assert warned_once(lambda: getattr(home, old), new.__name__) is new
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        home.nothing


def test_every_former_name_of_a_class_is_tested():
    classes = [getattr(po, name) for name in po.__all__ if inspect.isclass(getattr(po, name))]
    former = {name for kind in classes for name, value in inspect.getmembers(kind) if isinstance(value, Renamed)}
    assert former == {old for _, old, *_ in PARAMETERS} | {old for _, old, _ in ATTRIBUTES}


def test_tools_that_read_a_class_and_hasattr_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        inspect.getmembers(po.NaiveBayes)
        assert not hasattr(po.GenerativeClassifier(), "weights_")  # not fitted
        pickle.loads(pickle.dumps(pool()))


def test_a_former_attribute_can_be_set():
    model = po.NaiveBayes()
    with pytest.warns(FutureWarning, match="feature_weights"):
        model.weights = "conditional"
    assert model.feature_weights == "conditional"


@renamed_parameters(size="n_rows")
class Parent(BaseEstimator):
    def __init__(self, n_rows=1):
        self.n_rows = n_rows


class Child(Parent):
    pass


def test_a_subclass_inherits_former_parameters_under_its_own_name():
    model = warned_once(lambda: Child(size=3), "'size' of Child is now 'n_rows'")
    assert model.get_params() == {"n_rows": 3}
    with pytest.raises(TypeError, match="unexpected keyword argument 'length'"):
        Child(length=3)


def test_a_former_keyword_of_a_function():
    @renamed_keywords(size="n_rows")
    def draw(n_rows, seed=0):
        """Draw."""
        return n_rows, seed

    assert warned_once(lambda: draw(size=3, seed=1), "'n_rows'") == (3, 1)
    assert draw(3) == (3, 0)
    assert list(inspect.signature(draw).parameters) == ["n_rows", "seed"]
    assert draw.__doc__ == "Draw."
    with pytest.raises(TypeError, match="got both 'size' and 'n_rows'"):
        draw(size=3, n_rows=3)


def test_a_name_that_moved_to_another_module():
    moved = renamed_module_attributes("old.place", {"count": "posteriori.parameter_count.count_parameters"})
    with pytest.warns(FutureWarning, match=r"old.place.count is now posteriori.parameter_count.count_parameters"):
        assert moved("count") is po.count_parameters
    with pytest.raises(AttributeError, match=r"module 'old.place' has no attribute 'other'"):
        moved("other")
