"""A model file whose checksum is right and whose content does not fit together is refused, for every kind of model."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import posteriori as po
from fuzz import models as fuzzed
from fuzz.estimators import is_refused
from posteriori import model_files
from posteriori.densities import BackOff, Density, Gaussian
from posteriori.densities.tree_parameters import table_starts
from posteriori.support.checks import check_numbers, check_places, conforms
from posteriori.support.typing import Array


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.posteriori"


def parts_of(name):
    """Return the content and the arrays of the file of a model."""
    written = fuzzed._written(name)
    return json.loads(written.header["content"]), dict(written.arrays)


def refused(path, name, *, content=None, arrays=None, text=None, match="does not hold a model that this version knows"):
    written, stored = parts_of(name)
    crafted = json.dumps(written if content is None else content) if text is None else text
    fuzzed.forge(path, crafted, stored if arrays is None else arrays)
    with pytest.raises(ValueError, match=match) as caught:
        po.load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def replaced(node, wanted, value):
    """Return JSON in which every member of this name has another value, and how many there were."""
    if isinstance(node, dict):
        pairs = {key: (value, 1) if key == wanted else replaced(one, wanted, value) for key, one in node.items()}
        return {key: one for key, (one, _) in pairs.items()}, sum(n for _, n in pairs.values())
    if isinstance(node, list):
        items = [replaced(one, wanted, value) for one in node]
        return [one for one, _ in items], sum(n for _, n in items)
    return node, 0


@pytest.mark.parametrize("name", fuzzed.MODELS)
def test_every_model_is_read_again_as_it_was(name, path):
    path.write_bytes(fuzzed._written(name).raw)
    once = po.load(path)
    po.save(once, path)
    again, X = po.load(path), fuzzed._rows_for(once)
    assert again.score_samples(X).tobytes() == once.score_samples(X).tobytes()
    assert fuzzed._difference(name, path) == "arrays {}; "


# What indexes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tan", "gaussian tan", "tan em", "chow-liu", "tree"])
@pytest.mark.parametrize("array", ["parents", "start"])
@pytest.mark.parametrize("position", [1_000_000, -2, -(2**62), 2**62])
def test_an_index_of_a_tree_out_of_range(name, array, position, path):
    _, arrays = parts_of(name)
    [key] = [key for key in arrays if key.endswith(f"parameters.0.{array}")]
    arrays[key] = arrays[key].copy()
    arrays[key].flat[-1] = position
    refused(path, name, arrays=arrays)


@pytest.mark.parametrize("name", ["kdb", "kdb 1"])
@pytest.mark.parametrize("position", [1_000_000, -1, 2**62])
def test_parents_out_of_range(name, position, path):
    content, _ = parts_of(name)
    crafted, count = replaced(content, "parents", {"tuple": [{"tuple": [position]}] * 5})
    assert count > 0
    refused(path, name, content=crafted, match="is no column")


@pytest.mark.parametrize("cycle", [[1, 0, 1, 1, 1], [0, 0, 0, 0, 0], [1, 2, 3, 4, 0]])
def test_a_cycle_of_parents(cycle, path):
    content, _ = parts_of("kdb 1")
    crafted, _ = replaced(content, "parents", {"tuple": [{"tuple": [parent]} for parent in cycle]})
    refused(path, "kdb 1", content=crafted)
    _, arrays = parts_of("tan")
    arrays["fitted.model.parameters.0.parents"] = np.array([cycle])
    refused(path, "tan", arrays=arrays, match="its own ancestor")


@pytest.mark.parametrize("name", ["kdb", "aode"])
def test_tables_with_another_smoothing_than_their_density(name, path):
    content, _ = parts_of(name)
    density = content["fitted"]["fields"]["model"]["fields"]["blocks"]["tuple"][0]["fields"]["density"]
    assert replaced(density, "strength", 3.5)[1] == 1
    density["fields"]["smoothing"]["fields"]["strength"] = 3.5
    refused(path, name, content=content, match="smoothing")


@pytest.mark.parametrize("columns", [[0, 0], [-1], [99], [0, 1, 2, 3, 4]])
def test_columns_of_a_density_that_the_table_does_not_have(columns, path):
    content, _ = parts_of("naive Bayes")
    crafted, count = replaced(content, "columns", {"tuple": columns})
    assert count > 0
    refused(path, "naive Bayes", content=crafted)


STATED = ("fitted.model.", "fitted.statistics.")


@pytest.mark.parametrize("name", fuzzed.MODELS)
def test_every_array_of_another_type_or_shape_is_refused(name, path):
    content, arrays = parts_of(name)
    text = json.dumps(content)
    for key, array in arrays.items():
        if not key.startswith(STATED) or not array.size:
            continue
        whole = np.uint64 if np.isfinite(array).all() and (array >= 0).all() else np.bool_
        for other in (
            array.astype(np.float32),
            array.astype(np.bool_),
            array.astype(whole),
            array.ravel()[:-1],
            array[np.newaxis],
            np.array(1.0),
            np.concatenate([array, array]),
        ):
            if (other.dtype, other.shape) == (array.dtype, array.shape):
                continue  # booleans, which stay what they are
            if name in ("lda", "ledoit_wolf", "discriminant from parameters") and other.shape[1:] == array.shape[1:]:
                continue  # one covariance twice is one for each class
            fuzzed.forge(path, text, arrays | {key: np.ascontiguousarray(other) if other.ndim else other})
            with pytest.raises(ValueError, match="does not hold a model"):
                po.load(path)


@pytest.mark.parametrize("name", fuzzed.MODELS)
def test_no_number_of_a_model_may_be_nan(name, path):
    content, arrays = parts_of(name)
    for key, array in arrays.items():
        if key.startswith(STATED) and array.dtype.kind == "f" and array.size:
            other = array.copy()
            other.flat[0] = np.nan
            fuzzed.forge(path, json.dumps(content), arrays | {key: other})
            with pytest.raises(ValueError, match="does not hold a model"):
                po.load(path)


def mutated(array):
    """Yield an array of other shapes, and with another number at its first or its last place."""
    yield from (array.ravel()[:-1], array[np.newaxis], np.concatenate([array, array]), np.zeros_like(array))
    yield array[..., :0]
    for number in (-1, 0, 1_000_000, 2**62) if array.dtype.kind in "iu" else (np.nan, np.inf, -1.0, 0.0, 1e-300, 1e308):
        for place in (0, -1):
            other = array.copy()
            other.flat[place] = number & 255 if array.dtype == np.uint8 else np.array(number).astype(array.dtype)
            yield other


_HELD = ("additive", "additive with gaps", "kernel", "kernel with gaps")


@pytest.mark.parametrize("name", _HELD)
def test_a_changed_array_is_refused_or_answered(name, path):
    content, arrays = parts_of(name)
    text = json.dumps(content)
    for key, array in arrays.items():
        for other in mutated(array) if array.size and array.dtype.kind in "iuf" else ():
            fuzzed.forge(path, text, arrays | {key: np.ascontiguousarray(other)})
            loaded = []
            if is_refused(lambda loaded=loaded: loaded.append(po.load(path)), po.NaiveBayes):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # a table that contradicts itself may warn
                try:
                    fuzzed.use(loaded[0], path.with_name("again"))
                except Exception as error:
                    error.add_note(
                        f"{key}: {array.ravel()[:5]} of {array.shape} → {other.ravel()[:5]} of {other.shape}"
                    )
                    raise


# JSON -------------------------------------------------------------------------------------------------------------


def test_deeply_nested_json(path):
    refused(path, "numbers", text="[" * 200_000 + "]" * 200_000)
    text = fuzzed._written("numbers").header["content"]
    deep = '{"tuple": [' * 100_000 + "]}" * 100_000
    refused(path, "numbers", text=text.replace('["alpha", 1.0]', f'["alpha", {deep}]'))


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_json_does_not_have(constant, path):
    text = fuzzed._written("numbers").header["content"]
    refused(path, "numbers", text=text.replace('["alpha", 1.0]', f'["alpha", {constant}]'))


def test_a_name_that_occurs_twice(path):
    text = fuzzed._written("numbers").header["content"]
    refused(path, "numbers", text=text.replace("{", '{"model": "NaiveBayes", ', 1), match="a name occurs twice")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("categories", {"tuple": ["b", "a"]}),
        ("categories", {"tuple": ["a", "a"]}),
        ("categories", {"tuple": [{"float": "nan"}]}),
        ("categories", "ab"),
        ("kind", "other"),
        ("name", 3),
        ("name", "twice"),
        ("declared", 1),
        ("cuts", {"tuple": [2.0, 1.0]}),
        ("cuts", {"tuple": [1.0, {"float": "inf"}]}),
        ("container", "os"),
        ("log_prior", 3.0),
        ("blocks", {"list": []}),
        ("alpha", -1.0),
        ("alpha", {"float": "nan"}),
        ("smoothing", "much"),
        ("density", None),
        ("columns", {"tuple": [0.0, 1.0]}),
    ],
)
def test_fields_of_another_kind_or_out_of_range(field, value, path):
    for name in ("naive Bayes", "mdlp"):
        content, _ = parts_of(name)
        crafted, count = replaced(content, field, value)
        assert count > 0
        refused(path, name, content=crafted)


def with_parameter(content, parameter, value):
    """Return the content with another value of a parameter, or of one of those of EM."""
    em = {"components_per_class": None, "n_init": 5, "max_iter": 200, "tol": 1e-5}
    name, stored = (
        (parameter, value) if parameter not in em else ("em", {"type": "EM", "fields": em | {parameter: value}})
    )
    fields = content["fitted"]["fields"]
    recipe = fields["recipe"]["estimator"]
    pairs = [[one, stored if one == name else old] for one, old in recipe["parameters"]["dict"]]
    asked = {"estimator": recipe | {"parameters": {"dict": pairs}}}
    return content | {"fitted": {"type": "Fitted", "fields": fields | {"recipe": asked}}}


@pytest.mark.parametrize(
    ("parameter", "value"), [("alpha", -1.0), ("alpha", "x"), ("n_init", 0), ("missing", "never"), ("tol", None)]
)
def test_parameters_of_estimators_are_validated(parameter, value, path):
    content, _ = parts_of("naive Bayes")
    refused(
        path,
        "naive Bayes",
        content=with_parameter(content, parameter, value),
        match=f"'{parameter}' (parameter|of a EM is)",
    )


@pytest.mark.parametrize("name", ["naive Bayes", "pool"])
def test_parameters_that_are_unknown_or_left_out(name, path):
    content, arrays = parts_of(name)
    parameters = content["fitted"]["fields"]["recipe"]["estimator"]["parameters"]
    parameters["dict"].append(["no_such_parameter", 1])
    refused(path, name, content=content, match=f"{content['model']} has no parameter 'no_such_parameter'")
    parameters["dict"] = []  # all of them have defaults
    fuzzed.forge(path, json.dumps(content), arrays)
    once = po.load(path)
    assert once.recipe == type(once)().recipe
    assert once.score_samples(fuzzed._rows_for(once)).ndim == 1


def test_a_model_in_an_estimator_of_another_kind(path):
    tree, arrays = parts_of("tan")
    bayes, _ = parts_of("naive Bayes")
    of_bayes = bayes["fitted"]["fields"]["recipe"]
    fitted = {"type": "Fitted", "fields": tree["fitted"]["fields"] | {"recipe": of_bayes}}
    refused(path, "tan", content=bayes | {"fitted": fitted}, arrays=arrays, match="has other densities")


def test_members_of_a_pool_fit_together(path):
    content, _ = parts_of("pool")
    fields = content["fitted"]["fields"]
    for state, value in (
        ("members", {"dict": []}),
        ("members", {"dict": [["nb", 1]]}),
        ("weights", {"dict": [["nb", 1.0]]}),
        ("weights", {"dict": [[name, -1.0] for name, _ in fields["weights"]["dict"]]}),
        ("weights", {"dict": [[name, 1e308] for name, _ in fields["weights"]["dict"]]}),
        ("bias", {"array": "no such array"}),
        ("bias", 1.0),
    ):
        refused(path, "pool", content=content | {"fitted": {"type": "FittedPool", "fields": fields | {state: value}}})
    model = parts_of("naive Bayes")[0]["fitted"]
    refused(path, "pool", content=content | {"fitted": model})


def test_components_that_the_model_does_not_have(path):
    content, _ = parts_of("naive Bayes")
    for components in (4, 10**30, {"dict": [["yes", 2]]}):
        crafted = with_parameter(content, "components_per_class", components)
        refused(path, "naive Bayes", content=crafted, match="components_per_class")


# The checks themselves --------------------------------------------------------------------------------------------


@given(st.lists(st.integers(-5, 5), min_size=1), st.integers(-5, 5), st.integers(-5, 5))
def test_places_are_checked_as_indexing_would(positions, low, high):
    array = np.array(positions, np.int64)
    if all(low <= position < high for position in positions):
        check_places("it", array, array.shape, low, high)
    else:
        with pytest.raises(ValueError, match="it holds"):
            check_places("it", array, array.shape, low, high)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e200, -1.0])
def test_numbers_out_of_range(value):
    check_numbers("it", np.array([0.0, 1.0]), (2,), 0.0)
    with pytest.raises(ValueError, match="it holds"):
        check_numbers("it", np.array([0.0, value]), (2,), 0.0)


@pytest.mark.parametrize(
    ("value", "annotation", "right"),
    [
        (1, float, True),
        (True, int, False),
        (1.0, int, False),
        ("a", str, True),
        (None, float | None, True),
        ((1, 2.5), tuple[float, ...], True),
        ((1, "a"), tuple[float, ...], False),
        ([1], tuple[int, ...], False),
        (((1,), ()), tuple[tuple[int, ...], ...], True),
        (((1,), 2), tuple[tuple[int, ...], ...], False),
        ({"a": 1.0}, dict[str, float], True),
        ({1: 1.0}, dict[str, float], False),
        (["a", None], list[str | None], True),
        (Gaussian(), Density, True),
        (Gaussian, Density, False),
        (BackOff(), Density, False),
        (np.zeros(2), Array, True),
        ([0.0], Array, False),
    ],
)
def test_values_conform_to_annotations(value, annotation, right):
    assert conforms(value, annotation) is right


@given(st.data())
def test_tables_of_a_tree_lie_side_by_side(data):
    d, n_trees = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 3))
    n_components = n_trees if n_trees > 1 else data.draw(st.integers(1, 3))
    continuous = np.array(data.draw(st.lists(st.booleans(), min_size=d, max_size=d)))
    widths = np.where(continuous, 1, data.draw(st.integers(1, 4)))
    parents = np.array([[data.draw(st.integers(-1, j - 1)) for j in range(d)] for _ in range(n_trees)])
    start, n_slots, n_lines = table_starts(continuous, widths, parents, n_components)
    taken = {True: np.zeros(n_lines, int), False: np.zeros(n_slots, int)}
    for z in range(n_components):
        tree = parents[z if n_trees > 1 else 0]
        for j in range(d):
            by_code = tree[j] >= 0 and not continuous[tree[j]]
            size = (widths[tree[j]] if by_code else 1) * (1 if continuous[j] else widths[j])
            taken[bool(continuous[j])][start[z, j] : start[z, j] + size] += 1
    assert all((one == 1).all() for one in taken.values())


@pytest.mark.parametrize(("bound", "number"), [("highest", np.inf), ("lowest", -np.inf), ("lowest", 1e9)])
def test_a_range_that_no_rows_can_have(bound, number, path):
    _, arrays = parts_of("naive Bayes")
    key = f"fitted.statistics.ranges.{bound}"
    arrays[key] = np.full_like(arrays[key], number)
    refused(path, "naive Bayes", arrays=arrays, match="does not run from a lower to a higher number")


def test_groups_of_categories_with_huge_numbers_take_no_memory(path):
    content, _ = parts_of("groups")
    crafted, count = replaced(content, "of_categories", {"tuple": [{"tuple": [0, 2**62]}]})
    assert count > 0
    refused(path, "groups", content=crafted, match="a group of categories has no category")


def test_classes_are_open_unless_the_file_declares_them_closed(path):
    content, arrays = parts_of("numbers")
    assert content["fitted"]["fields"].pop("classes_closed") is False
    fuzzed.forge(path, json.dumps(content), arrays)
    assert po.load(path).partial_fit([[0.0] * 3] * 2, [0, 2]).classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("read", [po.load, po.scoring.load_scorer])
def test_a_file_of_an_early_state_is_refused_with_the_remedy(read, path):
    content, arrays = parts_of("numbers")
    del content["fitted"]
    fuzzed.forge(path, json.dumps(content | {"state": {}}), arrays)
    with pytest.raises(ValueError, match=r"holds no fitted value, .* fit the model again"):
        read(path)


def test_a_mixture_without_sums_knows_no_ranges(path):
    content, arrays = parts_of("mixture")
    content["fitted"]["fields"]["statistics"] = None
    fuzzed.forge(path, json.dumps(content), arrays)
    rows, component = po.load(path).sample(4, random_state=0)
    assert rows.height == len(component) == 4


@pytest.mark.parametrize("size", [-1, 1 << 70])
def test_a_stream_of_impossible_size_is_refused_before_unpacking(size):
    with pytest.raises(ValueError, match="cannot have the size"):
        model_files._inflated(model_files._deflated(b"0" * 100), size)


def columns_of(node):
    """Return the fields of every column in the content of a file."""
    if isinstance(node, dict):
        found = [node["fields"]] if node.get("type") == "Column" else []
        return found + [column for one in node.values() for column in columns_of(one)]
    return [column for one in node for column in columns_of(one)] if isinstance(node, list) else []


@pytest.mark.parametrize("name", ["naive Bayes", "bins", "dates", "mixture", "tree"])
@pytest.mark.parametrize(("flag", "kind"), [("valueless", "continuous"), ("declared", "categorical")])
def test_a_flag_that_contradicts_the_kind_of_a_column_is_refused(name, flag, kind, path):
    content, arrays = parts_of(name)
    for j, column in enumerate(columns_of(content)):
        if column["kind"] != kind:
            changed = json.loads(json.dumps(content))
            columns_of(changed)[j][flag] = True
            refused(path, name, content=changed, arrays=arrays, match=f"column {column['name']!r}")
