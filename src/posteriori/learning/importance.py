r"""Feature importance: the information about the class that a model's own posterior loses without a column.

.. math:: I_j = \mathbb{E}\big[\log p(y \mid x) - \log p(y \mid x_{-j})\big]

A generative model integrates a missing cell out, so p(y | x₋ⱼ) is exact: nothing is refitted and nothing is permuted.
Where there are rows that the model was not trained on, the expectation is their weighted mean, and I_j is the increase
of the held-out log-loss when column j is unknown. Where there are none, it is the expectation under the model itself,
over rows drawn from it: then I_j = E_x KL(p(y | x) ‖ p(y | x₋ⱼ)) ≥ 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from posteriori.densities import ChainedDensity, MarginalDensity
from posteriori.invariants import check_numbers
from posteriori.learning.observed_categories import ObservedCategoriesModel
from posteriori.learning.pool import Pool, clip_log_posteriors
from posteriori.model import GenerativeModel, log_sum
from posteriori.tables import Batch
from posteriori.typing import Array

MOST_ROWS = 2000  # held-out rows: the standard error of a loss of 0.5 nats is then about 0.01
_FEWEST_ROWS = 500
_WORK = 2_000_000  # rows times columns squared
_DRAWN = 2000
_LEAST = float(np.finfo(np.float64).eps)  # a probability of 0 counts as this, as in `metrics.log_loss`
_MOST_NUMBERS = 1 << 21  # log posteriors held at once
_MOST_KEPT = 1 << 22  # parameters of the models of all folds, 32 MB


@dataclass(frozen=True)
class Importance:
    """The information about the class, in nats per row, that a model's posterior loses without each column.

    Attributes
    ----------
    information : ndarray (d,)
        E[log p(y | x) − log p(y | x₋ⱼ)]. Negative where held-out rows are predicted better without the column.
    standard_error : ndarray (d,)
        Of that mean over the rows. Learning from other rows would change the mean by more.
    n_rows : int
        How many rows the mean is over.
    held_out : bool
        Whether these are rows that the model was not trained on; otherwise they were drawn from the model.

    Notes
    -----
    It differs from mutual information I(x_j; y), which takes a column as the only one known: columns that carry the
    same information share the importance, and each alone may lose little. It differs from permutation importance,
    which asks the model about rows that cannot occur.

    References
    ----------
    Covert, Lundberg & Lee, Understanding global feature contributions with additive importance measures, NeurIPS 33
    (2020), on removing features by marginalising them.
    """

    information: Array
    standard_error: Array
    n_rows: int
    held_out: bool

    def check_against(self, n_columns: int) -> None:
        """Raise ValueError unless there is a number for each of so many columns."""
        check_numbers("the importance of columns", self.information, (n_columns,), -np.inf, np.inf)
        check_numbers("the standard errors of importance", self.standard_error, (n_columns,), 0.0, np.inf)


@dataclass(frozen=True)
class Predictor:
    """p(y | x) of one model, or of several that are pooled.

    Attributes
    ----------
    members : tuple of GenerativeModel or Trimmed
    pool : Pool or None
        None for one model alone.
    """

    members: tuple[GenerativeModel | ObservedCategoriesModel, ...]
    pool: Pool | None = None

    @property
    def n_parameters(self) -> int:
        """The number of parameters of all members."""
        return sum(_model_of(one).n_parameters for one in self.members)

    def log_posteriors(self, batch: Batch) -> tuple[Array, Array]:
        """Return log p(y | x), (n, C), and log p(y | x₋ⱼ), (d, n, C), in nats: with each column unknown in turn."""
        each = [_log_posteriors(one, batch) for one in self.members]
        if self.pool is None:
            return each[0]
        whole = self.pool.log_posterior(clip_log_posteriors(np.stack([one for one, _ in each], axis=2)))
        d, n, n_classes = each[0][1].shape
        flat = np.stack([without.reshape(d * n, n_classes) for _, without in each], axis=2)
        return whole, self.pool.log_posterior(clip_log_posteriors(flat)).reshape(d, n, n_classes)


@dataclass(frozen=True)
class HeldOutRows:
    """Rows with their classes, and for each fold the rows in it and what predicts them.

    Attributes
    ----------
    batch : Batch
    components : ndarray (n,)
    weight : ndarray (n,)
    folds : tuple of (ndarray, Predictor)
        The places of the rows that are held out together, and the model of the others.
    """

    batch: Batch
    components: Array
    weight: Array
    folds: tuple[tuple[Array, Predictor], ...]

    @property
    def is_large(self) -> bool:
        """Whether the models are too large to be kept until somebody asks for the importance."""
        return sum(predictor.n_parameters for _, predictor in self.folds) > _MOST_KEPT

    def importance(self) -> Importance:
        """Return the weighted mean over the rows of log p(y | x) − log p(y | x₋ⱼ), and its standard error."""
        losses = np.empty((len(self.batch.schema.columns), len(self.components)))
        for rows, predictor in self.folds:
            for part in _parts(predictor, rows):
                truth = self.components[part]
                whole, without = predictor.log_posteriors(self.batch.rows(part))
                of_truth = _at_least(whole[np.arange(len(part)), truth])
                losses[:, part] = of_truth - _at_least(without[:, np.arange(len(part)), truth])
        share = self.weight / self.weight.sum()
        mean = losses @ share
        error = np.sqrt((losses - mean[:, np.newaxis]) ** 2 @ share**2)
        return Importance(mean, error, len(self.components), held_out=True)


def most_rows(n_columns: int) -> int:
    """Return of how many held-out rows the importance is taken: at most 2,000, and fewer of wide tables."""
    return int(np.clip(_WORK // max(n_columns, 1) ** 2, _FEWEST_ROWS, MOST_ROWS))


def importance_under_model(predictor: Predictor, shares: Array) -> Importance:
    """Return E_x KL(p(y | x) ‖ p(y | x₋ⱼ)) over 2,000 rows that are drawn from a model, always the same ones.

    Parameters
    ----------
    predictor : Predictor
    shares : ndarray (M,)
        The share of the rows that is drawn from each member.
    """
    rng = np.random.default_rng(0)
    gains = []
    for one, n in zip(
        predictor.members, np.diff(np.round(np.cumsum([0.0, *shares]) * _DRAWN)).astype(int), strict=True
    ):
        batch = _drawn(_model_of(one), n, rng)
        for part in _parts(predictor, np.arange(n)):
            whole, without = predictor.log_posteriors(batch.rows(part))
            gains.append(_divergence(whole, without))
    gain = np.concatenate(gains, axis=1)
    error = gain.std(axis=1) / np.sqrt(gain.shape[1])
    return Importance(gain.mean(axis=1), error, gain.shape[1], held_out=False)


def _model_of(member: GenerativeModel | ObservedCategoriesModel) -> GenerativeModel:
    return member.model if isinstance(member, ObservedCategoriesModel) else member


def _parts(predictor: Predictor, rows: Array) -> Iterator[Array]:
    """Yield some rows at a time, so that their posteriors without each column fit into memory."""
    model = _model_of(predictor.members[0])
    numbers = (
        len(predictor.members) * len(model.schema.columns) * max(_model_of(m).n_components for m in predictor.members)
    )
    size = max(1, _MOST_NUMBERS // numbers)
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def _drawn(model: GenerativeModel, n: int, rng: np.random.Generator) -> Batch:
    """Return rows drawn from a model."""
    component = rng.choice(model.n_components, size=n, p=np.exp(model.log_prior))
    columns, schema = model.sample(component, rng), model.schema
    continuous, categorical = schema.of_kind("continuous"), schema.of_kind("categorical")
    numbers, codes = np.empty((n, len(continuous))), np.empty((n, len(categorical)), schema.code_dtype)
    for cells, positions in ((numbers, continuous), (codes, categorical)):
        for position, j in enumerate(positions):
            cells[:, position] = columns[j]
    return Batch.of(schema, 0, numbers, codes, {})


def _at_least(log_probability: Array) -> Array:
    return np.maximum(log_probability, np.log(_LEAST))


def _divergence(whole: Array, without: Array) -> Array:
    """Return KL(p(y | x) ‖ p(y | x₋ⱼ)) in nats, (d, n)."""
    posterior = np.exp(whole)
    return np.einsum("nc,dnc->dn", posterior, _at_least(whole) - _at_least(without))


def _log_posteriors(member: GenerativeModel | ObservedCategoriesModel, batch: Batch) -> tuple[Array, Array]:
    """Return the log posteriors of one member; those of a row that no class can produce are its log prior."""
    model = _model_of(member)
    batch = (
        member.to_observed_codes(batch)
        if isinstance(member, ObservedCategoriesModel)
        else batch.with_schema(model.schema)
    )
    whole, without = model.scores(batch), scores_without_each(model, batch)
    return _normalised(whole, model), _normalised(without.reshape(-1, whole.shape[1]), model).reshape(without.shape)


def _normalised(scores: Array, model: GenerativeModel) -> Array:
    with np.errstate(invalid="ignore"):
        log_posterior = scores - log_sum(scores)[:, np.newaxis]
    return np.where(np.isnan(log_posterior), model.class_log_prior, log_posterior)


def scores_without_each(model: GenerativeModel, batch: Batch) -> Array:
    """Return log p(y | x₋ⱼ) in nats up to a number per row, (d, n, C), for each column j.

    The factor of a column that is independent of the others given the component is left out of the sum. A density may
    know how to leave each of its columns out (`MarginalDensity`). Any other column is made missing, and the model
    integrates it out.

    Parameters
    ----------
    model : GenerativeModel
    batch : Batch
        In the codes of the model.
    """
    d = len(model.schema.columns)
    chained = [block for block in model.blocks if not block.shared and isinstance(block.density, ChainedDensity)]
    if model.weights is not None and chained:  # weights apply to factors, which missing parents change
        masked = set(range(d))
    else:
        masked = {j for block in chained if not isinstance(block.density, MarginalDensity) for j in block.columns}
    scores = np.empty((d, len(batch), model.n_classes))
    if len(masked) < d:
        scores[:] = _sums_without_each(model, batch)
    columns = sorted(masked)
    if any(block.models_missingness for block in model.blocks):  # a missing cell is to say nothing
        for j in columns:
            scores[j] = model.ignore_missingness_except([k for k in range(d) if k != j]).scores(
                unknown_in_turn(batch, [j])
            )
    elif columns:
        scores[columns] = model.scores(unknown_in_turn(batch, columns)).reshape(len(columns), len(batch), -1)
    return scores


def _sums_without_each(model: GenerativeModel, batch: Batch) -> Array:
    """Return the scores without each column, (d, n, C), except for columns that have to be made missing."""
    d, weights = len(model.schema.columns), model.weights
    total = np.tile(model.log_prior if weights is None else weights.bias, (d, len(batch), 1))
    for block, parameters in zip(model.blocks, model.parameters, strict=True):
        if block.shared:
            continue
        own, others = list(block.columns), np.delete(np.arange(d), block.columns)
        tile = block.tile(batch)
        if isinstance(block.density, ChainedDensity):
            total[others] += block.density.log_density(parameters, tile)
            if isinstance(block.density, MarginalDensity):
                total[own] += block.density.without_each(parameters, tile)
            continue
        factors = np.moveaxis(block.density.log_factors(parameters, tile), 2, 0)
        if weights is not None:
            of_block = weights.weight[own, np.newaxis, np.newaxis]
            with np.errstate(invalid="ignore"):
                factors = np.where(of_block > 0, of_block * factors, 0.0)
        total[others] += factors.sum(axis=0)
        total[own] += _sums_of_others(factors)
    return model.by_class(total) if weights is None else total


def _sums_of_others(terms: Array) -> Array:
    """Return for each entry of the first axis the sum of all others, without subtracting: terms may be −inf."""
    before, after = np.zeros_like(terms), np.zeros_like(terms)
    np.cumsum(terms[:-1], axis=0, out=before[1:])
    np.cumsum(terms[:0:-1], axis=0, out=after[-2::-1])
    return before + after


def unknown_in_turn(batch: Batch, columns: Sequence[int]) -> Batch:
    """Return the rows once for each of some columns, by their positions in the schema, with its cells missing."""
    schema, n = batch.schema, len(batch)
    numbers, codes = (np.tile(cells, (len(columns), 1)) for cells in (batch.numbers.values, batch.codes.values))
    for position, j in enumerate(columns):
        rows = slice(position * n, (position + 1) * n)
        if schema.columns[j].kind == "continuous":
            numbers[rows, schema.of_kind("continuous").index(j)] = np.nan
        if j in schema.coded:
            codes[rows, schema.coded.index(j)] = 0
    tiles = replace(batch.numbers, values=numbers), replace(batch.codes, values=codes)
    places = np.tile([batch.number(i) for i in range(n)], len(columns))
    return replace(batch, numbers=tiles[0], codes=tiles[1], assignment=None, fold=None, chosen=places)
