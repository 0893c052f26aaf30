"""Candidates of a pool for a table: the summary that they see, and their held-out predictions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone

from posteriori.densities import REGISTRY
from posteriori.densities.tree_growing import FEWEST_TREES, trees_for
from posteriori.fitting.named_columns import column_of
from posteriori.fitting.parameter_groups import Labels
from posteriori.fitting.recipe import Recipe, recipe_of_classifier
from posteriori.learning.fit import Plan
from posteriori.learning.fold_fits import CrossFitted
from posteriori.learning.folded_data import FoldedData, judge_and_sample
from posteriori.learning.work_bounds import reasons_against_plans
from posteriori.model import clip_log_posteriors
from posteriori.model_cost import Language, TableSummary
from posteriori.pool.parameters import PoolParameters
from posteriori.registry import ModelSpec, find_language, find_model, member_models, pool_candidates
from posteriori.support.typing import Array
from posteriori.tables import Batch, Schema, quote
from posteriori.tables.progress import report_score, without_passes
from posteriori.user_warnings import warn

T = TypeVar("T")
OF_COUNTS = frozenset(entry.density.name for entry in REGISTRY if entry.density.kind == "counts")
# What a candidate raises on a table that it cannot be fitted to; any other exception is a fault of the library.
CANNOT_FIT = (ValueError, MemoryError)
TYPICAL_OF_FOREST = 4.0
RESIDUAL = "residual trees"
SURE = 0.8  # of the room in a language: the size of trees of all rows is a forecast
USUAL_FOLDS = 5  # for which candidates are selected: more folds leave no candidate out


@dataclass(frozen=True)
class Candidates:
    """The recipes of the models that a pool fits, and why others are left out."""

    recipes: dict[str, Recipe]  # by name
    declined: dict[str, str] = field(default_factory=dict)  # why a model does not apply to the columns, by name
    too_costly: dict[str, str] = field(default_factory=dict)  # which limit of cost a model exceeds, by name
    reserved: float = 0.0  # the size in the language of the pool that trees on what the others leave may have

    @property
    def skipped(self) -> dict[str, str]:
        """Why models are left out, by name."""
        return self.declined | self.too_costly

    def plans(self, folded: FoldedData) -> dict[str, Plan]:
        """Return the plan of each candidate for the rows of a table."""
        return {name: one.plan(folded.source.schema, folded.target) for name, one in self.recipes.items()}

    def apart(self) -> tuple[Recipe | None, Candidates]:
        """Return the trees on what the others leave, if there are others, and the others."""
        others = {name: one for name, one in self.recipes.items() if not is_residual(one)}
        residual = next((one for one in self.recipes.values() if is_residual(one)), None)
        return (residual, replace(self, recipes=others)) if residual is not None and others else (None, self)

    def with_fewer_trees(self, n_rows: int) -> Candidates:
        """Return the candidates with half of the trees, where forests are grown once more on all rows in the end."""

        def halved(one: Recipe) -> Recipe:
            return one.with_(n_trees=max(trees_of(one, n_rows) // 2, FEWEST_TREES)) if _grows_freely(one) else one

        return replace(self, recipes={name: halved(one) for name, one in self.recipes.items()})

    def without(self, reasons: Mapping[str, str]) -> Candidates:
        """Return the candidates except for those that cost too much, by name."""
        kept = {name: one for name, one in self.recipes.items() if name not in reasons}
        return replace(self, recipes=kept, too_costly=self.too_costly | dict(reasons))


@dataclass(frozen=True)
class MemberOptions:
    """Parameters of a pool for its members."""

    common: Mapping[str, Any] = field(default_factory=dict)  # parameters of every estimator
    missing: str = "at_random"  # the parameter of the pool: "informative" for a model of which cells are missing
    # of the pool: if it asks for EM over rows without label, members that learn from these do so
    labels: Labels = field(default_factory=Labels)
    # the density that the pool's `distributions` names for columns of numbers and of counts, by their names
    densities: Mapping[str, Any] = field(default_factory=dict)
    # the columns of numbers and of counts
    numbers: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()
    has_others: bool = True  # whether there are columns of numbers or of categories

    def reason_against(self, spec: ModelSpec) -> str | None:
        """Return why a model cannot do what is asked; None if it can."""
        if not self.has_others and "counts" not in spec.options:
            return "it reads dense columns, and X holds sparse counts only"
        if self.missing == "informative" and "missing" not in spec.options:
            return "it does not model which cells are missing"
        known = spec.make().get_params()
        learns_cells = known.get("feature_weights") == "cells"
        if learns_cells and self.missing == "informative":
            return "its learned tables have no number for a missing cell"
        if "distributions" in known and not learns_cells:
            return self._reason_of_counts(spec)
        own = "binned" if "binned" in spec.options else "gaussian"
        for name in self.numbers:
            density = self.densities.get(name, own)
            given = density if isinstance(density, str) else getattr(density, "name", type(density).__name__)
            if density != own:
                how = "cuts numbers into bins" if own == "binned" else "takes numbers as jointly Gaussian"
                return f"it {how}, and distributions gives {name!r} the density {given!r}"
        return None

    def _reason_of_counts(self, spec: ModelSpec) -> str | None:
        """Return why a model with a density of counts of its own cannot do what is asked; None if it can."""
        own = spec.parameters.get("distributions")
        stated = [name for name in self.counts if name in self.densities]
        if own not in OF_COUNTS or not stated:
            return None
        return f"it takes counts as {own}, and distributions states the density of {stated[0]!r}"

    def recipe(self, spec: ModelSpec) -> Recipe:
        """Return the recipe of a model."""
        found = Recipe.of(clone(spec.make(**self.common)))
        known = found.parameters
        changed: dict[str, Any] = {}
        if self.missing == "informative" and not is_residual(found):  # what gaps tell is in what its trees begin at
            changed["missing"] = self.missing
        stated = self.labels.unlabelled is not None and not self.labels.is_one_of("error")
        if stated and found.has_labels and found.feature_weights is None:
            changed["labels__unlabelled"] = self.labels.unlabelled
        if (self.densities or self.counts) and "distributions" in known:
            own = known["distributions"]
            of_counts, others = (own, "binned") if own in OF_COUNTS else ("multinomial", own or "gaussian")
            default = dict.fromkeys(self.numbers, others) | dict.fromkeys(self.counts, of_counts)
            changed["distributions"] = default | dict(self.densities)
        return found.with_(**changed)


def select_candidates(table: TableSummary, options: MemberOptions, language: Language | None = None) -> Candidates:
    """Return the models of the registry that a pool tries on a table.

    Notes
    -----
    A model is left out if it declines the columns, if it cannot do what the options ask for, if a candidate that sees
    the table alike is tried (`ModelSpec.stands_in_for`), if it is a sum of trees that the language of the pool has no
    room for, or if its `Cost` exceeds a limit: 40 million cells in tables
    of pairs of columns, 60 times the lookups of naive Bayes per row, 20 million cells in covariances, or 100 seconds of
    EM where numbers are missing.
    """
    recipes: dict[str, Recipe] = {}
    declined, too_costly = {}, {}
    of_sum = 0.0 if language is None or language.size_of_sum is None else language.size_of_sum(table)
    candidates = pool_candidates(counts=table.n_counts > 0)
    for name in sorted(candidates, key=lambda name: len(candidates[name].stands_in_for)):  # stand-ins last
        spec = candidates[name]
        alike = [other for other in spec.stands_in_for if other in recipes]
        reason = spec.decline(table) or options.reason_against(spec)
        if reason is None and language is not None and name == RESIDUAL and of_sum > SURE * language.most:
            reason = language.too_large(of_sum)
        reason = reason or (f"{alike[0]!r} sees the table alike" if alike else None)
        if reason is not None:
            declined[name] = reason
            continue
        reason = spec.cost(table).reason_too_high()
        if reason is not None:
            too_costly[name] = reason
        else:
            recipes[name] = options.recipe(spec)
    in_order = {name: recipes[name] for name in candidates if name in recipes}
    return Candidates(in_order, declined, too_costly, of_sum if RESIDUAL in in_order else 0.0)


def is_residual(recipe: Recipe) -> bool:
    """Whether a model is trees on what the other members leave."""
    return recipe.parameters.get("combine") == "sum"


def is_forest(recipe: Recipe) -> bool:
    """Whether a model is a forest of trees that are grown by themselves."""
    return "n_trees" in recipe.parameters and not is_residual(recipe)


def _grows_freely(recipe: Recipe) -> bool:
    """Whether a model is a forest whose number of trees suits the rows."""
    return is_forest(recipe) and isinstance(recipe.parameters["n_trees"], str)


def trees_of(recipe: Recipe, n_rows: int) -> int:
    """Return the number of trees of a forest of some rows."""
    stated = recipe.parameters["n_trees"]
    return trees_for(n_rows, recipe.parameters["splits"]) if isinstance(stated, str) else int(stated)


def typical_weights(recipes: Iterable[Recipe]) -> Array:
    """Return the weights that members usually have in pools, in proportion, (M,): a forest has that of four others.

    On tables of the first half, forests had a weight of 0.33 in the mean, and the others 0.04 to 0.15 each.
    """
    return np.array([TYPICAL_OF_FOREST if is_forest(one) else 1.0 for one in recipes])


def resolve_members(members: Any, options: MemberOptions) -> dict[str, Recipe]:
    """Return the recipes of what the parameter `members` lists, by name.

    Estimators keep their own parameters; models that are named get those that the options ask for.
    Raises ValueError if a member is not the name of a generative model and not an estimator, or cannot do what the
    options ask for; or the list is empty; or no member models the columns of counts.
    """
    pairs = members.items() if isinstance(members, Mapping) else ((None, member) for member in members)
    recipes: dict[str, Recipe] = {}
    for given, member in pairs:
        if isinstance(member, str):
            spec = find_model(member)
            if spec.name not in member_models():
                raise ValueError(f"members holds {member!r}; choose among {', '.join(map(repr, member_models()))}")
            reason = options.reason_against(spec)
            if reason is not None:
                raise ValueError(f"members holds {member!r}, but {reason}; leave one of the two out")
            name, recipe = spec.name, options.recipe(spec)
        elif recipe_of_classifier(member) is not None:
            recipe = Recipe.of(clone(member))
            name = recipe.name
        else:
            raise ValueError(
                f"members holds {member!r}; give names ({', '.join(map(repr, member_models()))}) or generative "
                "estimators of posteriori"
            )
        name = given or name
        while name in recipes:
            name += " again"
        recipes[name] = recipe
    if not recipes:
        raise ValueError('members is empty; leave it "auto", or name at least one model')
    if sum(map(is_residual, recipes.values())) > 1:
        raise ValueError("members holds two sums of trees, and one learns what the others leave; keep one of them")
    if options.counts and not any(one.reads_counts for one in recipes.values()):
        raise ValueError(
            f'no member models the counts of words in {quote(options.counts)}; add one that does, such as "nb"'
        )
    return recipes


def options_of(asked: PoolParameters, schema: Schema, common: Mapping[str, Any]) -> MemberOptions:
    """Return the parameters for members, with the densities of the columns of numbers and of counts by name."""
    names = schema.names
    numbers, counts = (tuple(names[j] for j in schema.of_kind(kind)) for kind in ("continuous", "counts"))
    stated = asked.distributions or {}
    if isinstance(stated, str):
        stated = dict.fromkeys(counts if counts and stated in OF_COUNTS else numbers, stated)
    of_name = {names[column_of(key, schema)]: density for key, density in stated.items()}
    densities = {name: density for name, density in of_name.items() if name in (*numbers, *counts)}
    has_others = bool(schema.dense)
    return MemberOptions(common, asked.missing, asked.labels, densities, numbers, counts, has_others)


def candidates_of(
    asked: PoolParameters, folded: FoldedData, summary: TableSummary, common: Mapping[str, Any]
) -> Candidates:
    """Return the candidates of a pool for a table, and why others are left out; ValueError if none suits it."""
    options = options_of(asked, folded.source.schema, common)
    if not asked.selects:
        return Candidates(resolve_members(asked.members, options))
    language = None if asked.language is None else find_language(asked.language)
    selected = select_candidates(summary, options, language)
    if asked.time_budget is None:
        usual = replace(folded.work_counts, folds=min(folded.folds, USUAL_FOLDS))
        selected = selected.without(reasons_against_plans(selected.plans(folded), folded.source.schema, usual))
    if not selected.recipes:
        listed = "; ".join(f"{name}: {reason}" for name, reason in selected.skipped.items())
        raise ValueError(f"no candidate suits this table: {listed}")
    return selected


def fit_or_skip(
    recipes: dict[str, Recipe], fit: Callable[[Sequence[Recipe]], T]
) -> tuple[dict[str, Recipe], T, dict[str, str]]:
    """Fit all candidates together; if that fails, find those that fail alone and fit the others together.

    All candidates share one pass over the rows, so an exception does not name the candidate. Without an
    exception, nothing is fitted twice.

    Parameters
    ----------
    recipes : dict
    fit : callable
        Takes recipes to their result.

    Returns
    -------
    recipes : dict
        Those that were fitted.
    result
        Of `fit`, for them.
    failed : dict
        The reason of each that failed, by name.

    Raises
    ------
    ValueError
        Every candidate failed; the message lists the reasons. A single candidate raises its own exception.
    Exception
        Any other than `CANNOT_FIT`.
    """
    try:
        return recipes, fit(list(recipes.values())), {}
    except CANNOT_FIT as error:
        if len(recipes) == 1:
            raise
        together = error
    failures: dict[str, Exception] = {}
    for name, recipe in recipes.items():
        try:
            fit([recipe])
        except CANNOT_FIT as error:
            failures[name] = error
    if not failures:  # no candidate fails by itself
        raise together
    reasons = {name: reason_of(error) for name, error in failures.items()}
    if len(failures) == len(recipes):
        if len(set(reasons.values())) == 1:  # the table is at fault, and the error names the remedy
            raise together
        listed = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
        raise ValueError(f"no candidate can be fitted to this table: {listed}") from together
    fitted = {name: recipe for name, recipe in recipes.items() if name not in failures}
    return fitted, fit(list(fitted.values())), reasons


def reason_of(error: Exception) -> str:
    """Return in one line why a candidate cannot be fitted."""
    message = " ".join(str(error).split())
    return message if isinstance(error, ValueError) and message else f"{type(error).__name__}: {message}"


def warn_of_left_out(too_costly: Mapping[str, str], failed: Mapping[str, str]) -> None:
    """Warn of the candidates that cost too much, and of each that failed."""
    if too_costly:
        name, reason = next(iter(too_costly.items()))
        others = f" (and {len(too_costly) - 1} more)" if len(too_costly) > 1 else ""
        # The limit of memory, whose reason says how to lift it, holds for members that are named too.
        named = "" if "POSTERIORI_MAX_" in reason else ", or name it in members=[…] to try it"
        warn(f"candidate {name!r}{others} is not tried: {reason}; see skipped_{named}")
    for name, reason in failed.items():
        warn(f"candidate {name!r} is skipped: {reason}")


@dataclass(frozen=True)
class CandidateFits:
    """Fitted candidates and their held-out predictions."""

    recipes: dict[str, Recipe]  # by name
    # (r·m, C, M), in nats, clipped: of m evaluated rows in r assignments to folds, one after the other
    log_posterior: Array
    fitted: list[CrossFitted]  # of the first assignment
    batch: Batch  # the cells of the rows for feature importance
    failed: dict[str, str]  # why a candidate could not be fitted, by name

    def joined(self, other: CandidateFits) -> CandidateFits:
        """Return the candidates of both."""
        return CandidateFits(
            self.recipes | other.recipes,
            np.concatenate([self.log_posterior, other.log_posterior], axis=2),
            [*self.fitted, *other.fitted],
            self.batch,
            self.failed | other.failed,
        )

    def with_trees_of(self, asked: Candidates) -> CandidateFits:
        """Return the fits with as many trees in their recipes as others have."""
        n_trees = {name: one.parameters["n_trees"] for name, one in asked.recipes.items() if _grows_freely(one)}
        recipes = {
            name: one.with_(n_trees=n_trees[name]) if name in n_trees else one for name, one in self.recipes.items()
        }
        return replace(self, recipes=recipes)

    def in_order(self, names: Iterable[str]) -> CandidateFits:
        """Return those of the candidates that have one of some names, in the order of the names."""
        known = list(self.recipes)
        places = [known.index(name) for name in names if name in self.recipes]
        return replace(
            self,
            recipes={known[m]: self.recipes[known[m]] for m in places},
            log_posterior=self.log_posterior[:, :, places],
            fitted=[self.fitted[m] for m in places],
        )


@dataclass(frozen=True)
class CandidateFitter:
    """Cross-fits candidates on the rows of a table."""

    folded: FoldedData
    repeats: Sequence[FoldedData]  # further assignments of the rows to folds
    sampled: Array  # the positions of the evaluated rows for feature importance
    progress: Callable[[int], None] | None = None  # called with the number of rows of each finished batch

    def fit(self, recipes: dict[str, Recipe]) -> CandidateFits:
        """Fit some candidates together; those that fail are left out; ValueError if all of them fail."""
        fitted, (found, models, batch), failed = fit_or_skip(recipes, self._fit)
        log_posterior = clip_log_posteriors(found)
        self._report_scores(fitted, log_posterior)
        return CandidateFits(fitted, log_posterior, models, batch, failed)

    def _report_scores(self, names: Iterable[str], log_posterior: Array) -> None:
        """Report the log-loss of each candidate on the rows of the first assignment to folds."""
        y_true, weight = self.folded.y_true, self.folded.weight
        of_truth = log_posterior[np.arange(len(y_true)), y_true]
        for name, log_loss in zip(names, -(weight @ of_truth) / weight.sum(), strict=True):
            report_score(name, float(log_loss))

    def _fit(self, some: Sequence[Recipe]) -> tuple[Array, list[CrossFitted], Batch]:
        folded = self.folded
        with warnings.catch_warnings():  # the weight of a member shows how good it is
            warnings.simplefilter("ignore")
            plans = [one.plan(folded.source.schema, folded.target) for one in some]
            found, fitted, batch = judge_and_sample(plans, folded, self.progress, self.sampled, leave_trees_out=True)
            with without_passes():
                full = [one.full for one in fitted]
                again = [judge_and_sample(plans, other, leave_trees_out=True, known=full)[0] for other in self.repeats]
        assert batch is not None
        return np.concatenate([found, *again]), fitted, batch
