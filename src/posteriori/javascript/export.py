"""A fitted model as JSON, and the evaluator in JavaScript that reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import Traversable
from importlib.resources import files
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from posteriori import densities
from posteriori.classifiers.estimator import Estimator, OfClasses
from posteriori.javascript.joint import written_joint_model
from posteriori.javascript.numbers import written_regressor
from posteriori.javascript.values import MOST_NUMBERS, n_numbers, plain, written_array, written_cell, written_column
from posteriori.kernels.loops.forests import ARITHMETIC, GEOMETRIC, SUM
from posteriori.model import FactorWeights, GenerativeModel, Pool
from posteriori.model_cost import Language, require_affordable_export
from posteriori.networks import BayesianNetwork
from posteriori.networks.classifier import NetworkClassifier
from posteriori.networks.graph.cpt import CPT
from posteriori.networks.graph.linear_gaussian import LinearGaussian
from posteriori.networks.inference.clg import Component
from posteriori.networks.inference.clique_tables import Factor
from posteriori.networks.inference.inference import Inference
from posteriori.networks.inference.junction_tree import JunctionTree, compile_tree
from posteriori.registry import Subject
from posteriori.tables import Column
from posteriori.version import __version__

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([a-z_]+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=\w)", re.MULTILINE)


def javascript_evaluator() -> str:
    """Return the source of the evaluator: one ES module without dependencies, for browsers, Node.js, Deno and Bun.

    It reads models that `to_javascript` writes. Its exports are documented in docs/explore.md.

    Returns
    -------
    str

    Examples
    --------
    >>> import posteriori as po
    >>> "export function load(" in po.javascript.javascript_evaluator()
    True
    """
    return joined(files(__package__).joinpath("evaluator"), "posteriori")


def joined(folder: Traversable, first: str, known: str = "") -> str:
    """Return a module and those that it imports from its folder, in the order in which they depend on each other.

    Imports of names of `known`, a text of JavaScript that stands before the module, are left out. The first module
    alone has exports.
    """
    texts: dict[str, str] = {}

    def visit(name: str) -> None:
        if name in texts:
            return
        path = folder.joinpath(f"{name}.js")
        if not path.is_file() and known:
            return
        text = path.read_text(encoding="utf-8")
        texts[name] = ""  # so that a cycle of imports ends
        for imported in _IMPORT.findall(text):
            visit(imported)
        del texts[name]  # now it comes after what it imports
        text = _IMPORT.sub("", text).strip("\n")
        texts[name] = text if name == first else _EXPORT.sub("", text)

    visit(first)
    return "\n\n".join(texts.values()) + "\n"


FORMAT = 1  # of the JSON; the evaluator refuses others
MOST_CELLS = 1 << 22  # of the junction tree of a network: half a second per query

# The densities that the evaluator knows, and the fields of their parameters that it reads.
FIELDS: dict[type[Any], tuple[str, ...]] = {
    densities.AveragedOneDependence: ("cardinalities", "log_probability"),
    densities.Binned: ("mean", "scale"),  # the cuts are those of the columns
    densities.Categorical: ("cardinalities", "log_probability"),
    densities.Complement: ("score",),
    densities.Compound: ("concentration",),
    densities.FullJoint: ("cardinalities", "log_probability"),
    densities.Gaussian: ("mean", "variance", "degrees"),
    densities.Missingness: ("log_missing", "log_present"),
    densities.Multinomial: ("log_probability",),
    densities.Poisson: ("rate",),
    densities.PoissonRate: ("rate",),
    densities.Presence: ("present", "absent"),
    densities.RandomTrees: ("cardinalities", "mass", "prior"),  # and more, by `_trees`
    densities.ScaledMultinomial: ("log_probability",),
    densities.SummedTrees: ("cardinalities",),  # and more, by `_trees`
    densities.Tree: ("continuous", "cardinalities", "parents", "start", "table", "centre", "normal"),
    densities.KDependence: ("parents", "cardinalities", "order", "offsets", "log_probability"),
    densities.MultivariateGaussian: ("mean", "covariance", "degrees", "spread", "constant"),
}
# The fields that no posterior depends on, that `_trees` writes, or that hold what other fields are derived from.
UNREAD = {"cuts", "shared", "edge_weights", "mean_total", "mean_exposure"}
UNREAD |= {"trees", "geometric", "counts", "strengths", "smoothing"}
_COMBINE = {ARITHMETIC: "arithmetic", GEOMETRIC: "geometric", SUM: "sum"}


def to_javascript(model: Estimator | BayesianNetwork) -> str:
    """Return a model as JSON that the evaluator in JavaScript reads; see `javascript_evaluator`.

    Parameters
    ----------
    model : fitted estimator of posteriori or BayesianNetwork
        A pool is written with its members of positive weight.

    Returns
    -------
    str
        Plain JSON. Numbers have as many digits as float64 needs; those that JSON lacks are the strings "inf", "-inf"
        and "nan". It is ASCII without <, > and &, so that it may stand in a <script> of a page. It holds
        parameters, categories and names of columns, and no rows.

    Raises
    ------
    TypeError
        The model is no classifier, mixture, `AdditiveRegressor`, `JointModel` or network of posteriori.
    ValueError
        The model has something that the evaluator does not read, or more than 10,000,000 numbers: the message names it
        and the remedy.
    sklearn.exceptions.NotFittedError
        The model is not fitted.

    Examples
    --------
    >>> import json, posteriori as po
    >>> model = po.NaiveBayes().fit([["u"], ["u"], ["v"]], ["a", "a", "b"])
    >>> json.loads(po.javascript.to_javascript(model))["classes"]
    ['a', 'b']
    """
    return page_json(javascript_object(model))


def _size(model: GenerativeModel) -> int:
    return sum(map(n_numbers, model.posterior_parameters))


def _reason_against_column(column: Column) -> str | None:
    """Return why the evaluator does not read a column; None if it does."""
    try:
        written_column(column)
    except ValueError as error:
        return f"cannot be written: {error}"
    return None


def _reason_against_model(model: GenerativeModel) -> str | None:
    """Return why the evaluator does not know a model; None if it does."""
    try:
        for block, parameters in zip(model.blocks, model.posterior_parameters, strict=True):
            _density(block.density, parameters)
    except ValueError as error:
        return str(error)
    return None


LANGUAGE = Language(
    "the model in JavaScript", "numbers", MOST_NUMBERS, _size, _reason_against_column, _reason_against_model
)


def page_json(content: Any) -> str:
    """Return JSON in ASCII in which no text can end an element of a page."""
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def javascript_object(model: Estimator | BayesianNetwork) -> dict[str, Any]:
    """Return a model as the objects that `to_javascript` writes."""
    head = {"format": FORMAT, "posteriori": __version__}
    if isinstance(model, NetworkClassifier):
        raise TypeError(
            "a classifier of a network is not written; write the network itself, which predicts all variables"
        )
    writers: dict[Subject | None, Callable[[Any], dict[str, Any]]] = {
        Subject.CLASS: _classifier,
        Subject.COMPONENT: _classifier,
        Subject.NUMBER: written_regressor,
        Subject.COLUMNS: written_joint_model,
        Subject.VARIABLES: _network,
    }
    write = writers.get(getattr(model, "subject", None))
    if write is None:
        raise TypeError(f"a {type(model).__name__} cannot be written; give a fitted classifier or a BayesianNetwork")
    if model.subject is not Subject.VARIABLES:
        check_is_fitted(model)
    return {**head, **write(model)}


def _classifier(estimator: OfClasses) -> dict[str, Any]:
    posterior = estimator.fitted_.posterior
    schema, pool = posterior.schema, posterior.pool
    kept = [0] if pool is None else np.flatnonzero(pool.used).tolist()
    names = list(estimator.fitted_.members) or [type(estimator).__name__]
    counts = {names[m]: _size(posterior.models[m]) for m in kept}
    require_affordable_export(
        "the model in JavaScript", "javascript", counts, "numbers", MOST_NUMBERS, "score by predict_to instead"
    )
    target, priors = estimator.target_, getattr(estimator, "priors", None)
    is_mixture = estimator.subject is Subject.COMPONENT
    n_classes = posterior.models[0].n_classes
    binned = {column.cuts for model in posterior.models for column in model.schema.columns if column.cuts is not None}
    cuts = {points: place for place, points in enumerate(sorted(binned))}  # members share many of them
    return {
        "kind": "mixture" if is_mixture else "classifier",
        "name": type(estimator).__name__,
        "target": schema.target,
        "classes": list(range(n_classes))
        if is_mixture
        else [written_cell(cell, "the classes") for cell in target.categories],
        "levels": list(target.order) or None,
        "columns": [written_column(column) for column in schema.columns],
        "class_log_prior": None if priors is None else written_array(estimator.class_log_prior_),
        "models": [_model(names[m], posterior.models[m], cuts) for m in kept],
        "cuts": [list(points) for points in cuts],
        "pool": None if pool is None else _pool(pool, kept),
    }


def _pool(pool: Pool, kept: list[int]) -> dict[str, Any]:
    written: dict[str, Any] = {"weight": written_array(pool.weight[kept]), "bias": written_array(pool.bias)}
    if pool.fading is not None:
        cells = pool.fading.cells
        written["partial"] = {
            "weight": written_array(pool.fading.weight[kept]),
            "bias": written_array(pool.fading.bias),
            "nothing": {
                "weight": written_array(pool.fading.nothing_weight[kept]),
                "bias": written_array(pool.fading.nothing_bias),
            },
            "columns": written_array(cells.weight),
            "typical": cells.typical,
            "typical_number": cells.typical_number,
            "patterns": [np.flatnonzero(pattern).tolist() for pattern in cells.patterns],
            "power": cells.power,
        }
    beyond = pool.extrapolation
    if beyond is not None:
        columns = np.flatnonzero(beyond.ranges.has_numbers)
        written["extrapolation"] = {
            "columns": columns.tolist(),
            "lowest": written_array((beyond.ranges.lowest - beyond.ranges.room)[columns]),
            "highest": written_array((beyond.ranges.highest + beyond.ranges.room)[columns]),
            "in_mean": beyond.in_mean[kept].tolist(),
            "log_ratio": written_array(beyond.log_ratio),
        }
    return written


def _model(name: str, model: GenerativeModel, cuts: dict[tuple[float, ...], int]) -> dict[str, Any]:
    weights = model.weights
    return {
        "name": name,
        "cuts": [None if column.cuts is None else cuts[column.cuts] for column in model.schema.columns],
        "log_prior": written_array(model.log_prior),
        "of_class": list(model.of_class),
        "given": [list(of_j) for of_j in model.given],
        "weights": None if weights is None else _weights(model, weights),
        "blocks": [
            {"columns": list(block.columns), "exposure": block.exposure_in(model.schema)}
            | _density(block.density, parameters)
            | ({} if learned is parameters else {"posterior": _density(block.density, learned)})
            for block, parameters, learned in zip(
                model.blocks, model.parameters, model.posterior_parameters, strict=True
            )
        ],
    }


def _weights(model: GenerativeModel, weights: FactorWeights) -> dict[str, Any]:
    return {
        "bias": written_array(weights.bias),
        "weight": written_array(weights.weight),
        "sharing": np.flatnonzero(model.sharing).tolist(),
        "evident": np.flatnonzero(model.evident & model.sharing).tolist(),
    }


def _density(density: Any, parameters: Any) -> dict[str, Any]:
    """Return a density with its parameters; ValueError if the evaluator does not know it."""
    if isinstance(density, densities.Grouped):
        written: dict[str, Any] = {
            "groups": [list(groups) for groups in parameters.groups.of_categories],
            "coded": list(parameters.coded),
            "cardinalities": list(parameters.cardinalities),
            "log_within": written_array(parameters.log_within),
            "coarse": _density(density.coarse, parameters.coarse),
        }
    elif type(density) in FIELDS:
        read = parameters.tables if isinstance(density, densities.KDependence) else parameters
        written = {name: plain(getattr(read, name)) for name in FIELDS[type(density)]}
        if isinstance(density, densities.RandomTrees | densities.SummedTrees):
            written |= _trees(parameters)
    else:
        raise ValueError(
            f"the evaluator in JavaScript does not know the density {type(density).__name__}; choose a distribution of "
            "the library"
        )
    return {"density": type(density).__name__, "parameters": written}


def _trees(parameters: Any) -> dict[str, Any]:
    """Return the splits of a forest, and the class distributions of its leaves.

    The evaluator derives those of the other nodes, and the weights of the edges.
    """
    structure = parameters.trees
    column, cut, child = structure.nodes.T
    inner = np.flatnonzero(column >= 0)
    return {
        "column": written_array(column),
        "cut": written_array(cut[inner]),
        "step": written_array(child[inner] - inner),  # from a node to its left child
        "share": written_array(parameters.share[inner]),
        "given_leaf": written_array(parameters.given_node[column < 0]),
        "roots": written_array(structure.roots),
        "ordered": written_array(structure.ordered),
        "sides": written_array(structure.sides),
        "combine": _COMBINE[parameters.combine],
    }


def _network(network: BayesianNetwork) -> dict[str, Any]:
    inference = network._inference  # raises an error that names a variable without a table
    position = {name: v for v, name in enumerate(network.variables)}
    # Evidence about numbers only splits components and their scopes, so that these cliques are enough for any evidence.
    components = inference.components((), inference.continuous)
    n_numbers = max((one.size * len(one.hidden) ** 2 for one in components), default=0)
    tree = None if n_numbers > MOST_CELLS else _tree(inference, components)
    if tree is None:
        raise ValueError(
            f"exact inference in this network needs more than {MOST_CELLS:,} cells of clique tables, which is too much "
            "for a browser; query it in Python, or write a part of it"
        )
    discrete = [position[name] for name in inference.states]
    variables = [_discrete_variable(cpt, position) for cpt in inference.cpts]
    variables += [_continuous_variable(density, position) for density in inference.gaussians]
    written: dict[str, Any] = {
        "kind": "network",
        "name": network.name,
        "cliques": [
            {"scope": sorted(discrete[v] for v in clique.scope), "parent": clique.parent}
            for clique in tree.triangulation.cliques
        ],
        "variables": sorted(variables, key=lambda variable: position[variable["name"]]),
    }
    if components:
        written["components"] = [
            {
                "scope": sorted(position[name] for name in one.discrete),
                "members": [position[name] for name in one.hidden],
            }
            for one in components
        ]
    return written


def _tree(inference: Inference, components: Sequence[Component]) -> JunctionTree | None:
    """Return a tree with the discrete parents of each component in one clique; None if it has too many cells."""
    tables = inference.tables
    whole = tables.whole
    if components:
        factors = [Factor(scope, cpt.probabilities) for scope, cpt in zip(tables.scopes, tables.cpts, strict=True)]
        for one in components:
            scope = tuple(tables.position[name] for name in one.discrete)
            if one.size > MOST_CELLS:
                return None
            if scope:
                factors.append(Factor(scope, np.ones(one.shape)))
        try:
            whole = compile_tree(tables.cardinalities, factors, max_table_size=MOST_CELLS)
        except ValueError:
            return None
    return None if whole is None or whole.total_size > MOST_CELLS else whole


def _discrete_variable(cpt: CPT, position: Mapping[str, int]) -> dict[str, Any]:
    return {
        "name": cpt.variable,
        "states": [written_cell(state, f"variable {cpt.variable!r}") for state in cpt.states],
        "parents": [position[parent] for parent in cpt.parents],
        "probabilities": written_array(cpt.probabilities),
    }


def _continuous_variable(density: LinearGaussian, position: Mapping[str, int]) -> dict[str, Any]:
    discrete = [position[parent] for parent in density.parents]
    continuous = [position[parent] for parent in density.continuous]
    return {
        "name": density.variable,
        "parents": discrete + continuous,
        "discrete": discrete,
        "continuous": continuous,
        "intercept": written_array(density.intercept),
        "coefficients": written_array(density.coefficients),
        "variance": written_array(density.variance),
    }
