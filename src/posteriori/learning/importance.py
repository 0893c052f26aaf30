r"""Feature importance: the information about the class that the posterior of a model loses without a column.

.. math:: I_j = \mathbb{E}\big[\log p(y \mid x) - \log p(y \mid x_{-j})\big]

A generative model integrates a missing cell out, so that p(y | x₋ⱼ) is exact: nothing is refitted and nothing is
permuted. With held-out rows, the expectation is their weighted mean, and I_j is the increase of the held-out log-loss
when column j is unknown. Without held-out rows, it is the expectation under the model itself, over rows drawn from it:
then I_j = E_x KL(p(y | x) ‖ p(y | x₋ⱼ)) ≥ 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from posteriori.densities import ChainedDensity, MarginalDensity
from posteriori.invariants import check_numbers
from posteriori.learning.observed_categories import ObservedCategoriesModel
from posteriori.learning.pool import Pool, clip_log_posteriors
from posteriori.model import GenerativeModel, draw_rows, log_sum
from posteriori.tables import Bags, Batch
from posteriori.typing import Array

MOST_ROWS = 2000  # held-out rows: the standard error of a loss of 0.5 nats is then about 0.01
_FEWEST_ROWS = 500
_WORK = 2_000_000  # rows times columns squared
_DRAWN = 2000  # rows drawn from a model
_SMALLEST = float(np.finfo(np.float64).eps)  # a probability of 0 counts as this, as in `metrics.log_loss`
_MOST_NUMBERS = 1 << 21  # log posteriors held at once
_MOST_KEPT = 1 << 23  # parameters of the models of all folds, 64 MB


@dataclass(frozen=True)
class Importance:
    """The information about the class, in nats per row, that a model's posterior loses without each column.

    Attributes
    ----------
    information : ndarray (d,)
        E[log p(y | x) − log p(y | x₋ⱼ)]. Negative if held-out rows are predicted better without the column.
    standard_error : ndarray (d,)
        Standard error of that mean over the rows. Other training rows would change the mean by more.
    n_rows : int
        The number of rows of the mean.
    held_out : bool
        Whether these are rows that the model was not trained on. Otherwise they were drawn from the model.

    Notes
    -----
    Mutual information I(x_j; y) differs: it considers each column alone. Here, columns that carry the same information
    replace each other, so that the loss of one of them may be small. Permutation importance differs: it evaluates the
    model on rows that cannot occur.

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
        """Raise ValueError unless there is one number for each of `n_columns` columns."""
        check_numbers("the importance of columns", self.information, (n_columns,), -np.inf, np.inf)
        check_numbers("the standard errors of importance", self.standard_error, (n_columns,), 0.0, np.inf)


@dataclass(frozen=True)
class Predictor:
    """p(y | x) of one model, or of a pool of several.

    Attributes
    ----------
    members : tuple of GenerativeModel or ObservedCategoriesModel
    pool : Pool or None
        None for a single model.
    """

    members: tuple[GenerativeModel | ObservedCategoriesModel, ...]
    pool: Pool | None = None

    @property
    def n_parameters(self) -> int:
        """The number of parameters of all members."""
        return sum(_model_of(member).n_parameters for member in self.members)

    def log_posteriors(self, batch: Batch) -> tuple[Array, Array]:
        """Return log p(y | x), (n, C), and log p(y | x₋ⱼ) for each column j, (d, n, C), in nats."""
        each = [_log_posteriors(member, batch) for member in self.members]
        if self.pool is None:
            return each[0]
        whole = self.pool.log_posterior(clip_log_posteriors(np.stack([of_member for of_member, _ in each], axis=2)))
        d, n, n_classes = each[0][1].shape
        flat = np.stack([without.reshape(d * n, n_classes) for _, without in each], axis=2)
        return whole, self.pool.log_posterior(clip_log_posteriors(flat)).reshape(d, n, n_classes)


@dataclass(frozen=True)
class HeldOutRows:
    """Held-out rows with their classes, and the predictor of each fold.

    Attributes
    ----------
    batch : Batch
    y_true : ndarray (n,)
        The class index of each row.
    weight : ndarray (n,)
    folds : tuple of (ndarray, Predictor)
        For each fold, the positions of its rows, and the predictor that was trained on the rows outside it.
    """

    batch: Batch
    y_true: Array
    weight: Array
    folds: tuple[tuple[Array, Predictor], ...]

    @property
    def is_large(self) -> bool:
        """Whether the models are too large to be stored until the importance is requested."""
        return sum(predictor.n_parameters for _, predictor in self.folds) > _MOST_KEPT

    def importance(self) -> Importance:
        """Return the weighted mean over the rows of log p(y | x) − log p(y | x₋ⱼ), and its standard error."""
        losses = np.empty((len(self.batch.schema.columns), len(self.y_true)))
        for rows, predictor in self.folds:
            for chunk in _chunks(predictor, rows):
                y_true = self.y_true[chunk]
                whole, without = predictor.log_posteriors(self.batch.rows(chunk))
                of_true = _clip(whole[np.arange(len(chunk)), y_true])
                losses[:, chunk] = of_true - _clip(without[:, np.arange(len(chunk)), y_true])
        share = self.weight / self.weight.sum()
        mean = losses @ share
        error = np.sqrt((losses - mean[:, np.newaxis]) ** 2 @ share**2)
        return Importance(mean, error, len(self.y_true), held_out=True)


def most_rows(n_columns: int) -> int:
    """Return the number of held-out rows for the importance: at most 2,000, and fewer for wide tables.

    The cost per row grows with the square of the number of columns.
    """
    return int(np.clip(_WORK // max(n_columns, 1) ** 2, _FEWEST_ROWS, MOST_ROWS))


def importance_under_model(predictor: Predictor, fractions: Array) -> Importance:
    """Return E_x KL(p(y | x) ‖ p(y | x₋ⱼ)) over 2,000 rows drawn from the model, with a fixed seed.

    Parameters
    ----------
    predictor : Predictor
    fractions : ndarray (M,)
        The fraction of the rows that is drawn from each member.

    Raises
    ------
    ValueError
        No rows can be drawn from one of the members.
    """
    if not all(_model_of(member).is_density for member in predictor.members):
        raise ValueError(
            "there are no held-out rows to measure the feature importance on, and none can be drawn, because a member "
            "has scores of words that are not a density, or reads no words; fit all rows at once, or add rows by "
            "partial_fit"
        )
    rng = np.random.default_rng(0)
    gains = []
    # Rounding the cumulative sums makes the counts add up to _DRAWN.
    n_rows = np.diff(np.round(np.cumsum([0.0, *fractions]) * _DRAWN)).astype(int)
    for member, n in zip(predictor.members, n_rows, strict=True):
        batch = _draw(_model_of(member), n, rng)
        for chunk in _chunks(predictor, np.arange(n)):
            whole, without = predictor.log_posteriors(batch.rows(chunk))
            gains.append(_divergence(whole, without))
    gain = np.concatenate(gains, axis=1)
    error = gain.std(axis=1) / np.sqrt(gain.shape[1])
    return Importance(gain.mean(axis=1), error, gain.shape[1], held_out=False)


def _model_of(member: GenerativeModel | ObservedCategoriesModel) -> GenerativeModel:
    return member.model if isinstance(member, ObservedCategoriesModel) else member


def _chunks(predictor: Predictor, rows: Array) -> Iterator[Array]:
    """Yield the rows in chunks whose posteriors without each column fit into memory."""
    model = _model_of(predictor.members[0])
    numbers = (
        len(predictor.members) * len(model.schema.columns) * max(_model_of(m).n_components for m in predictor.members)
    )
    size = max(1, _MOST_NUMBERS // numbers)
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def _draw(model: GenerativeModel, n: int, rng: np.random.Generator) -> Batch:
    """Draw rows from a model."""
    component = rng.choice(model.n_components, size=n, p=np.exp(model.log_prior))
    columns, schema = draw_rows(model, component, rng), model.schema
    continuous, categorical = schema.of_kind("continuous"), schema.of_kind("categorical")
    numbers, codes = np.empty((n, len(continuous))), np.empty((n, len(categorical)), schema.code_dtype)
    for cells, positions in ((numbers, continuous), (codes, categorical)):
        for position, j in enumerate(positions):
            cells[:, position] = columns[j]
    return Batch.of(schema, 0, numbers, codes, {}, bags=tuple(columns[j] for j in schema.of_kind("counts")))


def _clip(log_probability: Array) -> Array:
    clipped: Array = np.maximum(log_probability, np.log(_SMALLEST))
    return clipped


def _divergence(whole: Array, without: Array) -> Array:
    """Return KL(p(y | x) ‖ p(y | x₋ⱼ)) in nats, (d, n)."""
    posterior = np.exp(whole)
    divergence: Array = np.einsum("nc,dnc->dn", posterior, _clip(whole) - _clip(without))
    return divergence


def _log_posteriors(member: GenerativeModel | ObservedCategoriesModel, batch: Batch) -> tuple[Array, Array]:
    """Return the log posteriors of one member, and its log prior for a row that no class can produce."""
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
    """Return log p(y | x₋ⱼ) in nats for each column j, (d, n, C), up to a constant per row.

    If a column is independent of the others given the component, its factor is left out of the sum. A
    `MarginalDensity` computes its log-density without each of its columns. Any other column is made missing, and the
    model integrates it out.

    Parameters
    ----------
    model : GenerativeModel
    batch : Batch
        In the codes of the model.
    """
    d = len(model.schema.columns)
    chained = [block for block in model.blocks if not block.shared and isinstance(block.density, ChainedDensity)]
    if model.weights is not None and chained:  # a missing parent changes the factors that weights multiply
        masked = set(range(d))
    else:
        masked = {j for block in chained if not isinstance(block.density, MarginalDensity) for j in block.columns}
    exposures = {block.exposure_in(model.schema) for block in model.blocks}
    masked |= {j for j in exposures if j is not None}
    scores = np.empty((d, len(batch), model.n_classes))
    if len(masked) < d:
        scores[:] = _sums_without_each(model, batch)
    columns = sorted(masked)
    # A density of missingness would take the cell made missing here as evidence: ignore it for this column.
    if any(block.models_missingness for block in model.blocks):
        for j in columns:
            scores[j] = model.ignore_missingness_except([k for k in range(d) if k != j]).scores(
                unknown_in_turn(batch, [j])
            )
    elif columns:
        scores[columns] = model.scores(unknown_in_turn(batch, columns)).reshape(len(columns), len(batch), -1)
    return scores


def _sums_without_each(model: GenerativeModel, batch: Batch) -> Array:
    """Return the scores without each column, (d, n, C); wrong for columns that have to be made missing."""
    d, weights = len(model.schema.columns), model.weights
    total = np.tile(model.log_prior if weights is None else weights.bias, (d, len(batch), 1))
    for block, parameters in zip(model.blocks, model.posterior_parameters, strict=True):
        if block.shared:
            continue
        columns, others = list(block.columns), np.delete(np.arange(d), block.columns)
        tile = block.tile(batch)
        if isinstance(block.density, ChainedDensity):
            total[others] += block.density.log_density(parameters, tile)
            if isinstance(block.density, MarginalDensity):
                total[columns] += block.density.without_each(parameters, tile)
            continue
        factors = np.moveaxis(block.density.log_factors(parameters, tile), 2, 0)
        if weights is not None:
            of_block = weights.weight[columns, np.newaxis, np.newaxis]
            with np.errstate(invalid="ignore"):  # 0 · −inf
                factors = np.where(of_block > 0, of_block * factors, 0.0)
        total[others] += factors.sum(axis=0)
        total[columns] += _sums_of_others(factors)
    return model.by_class(total) if weights is None else total


def _sums_of_others(terms: Array) -> Array:
    """Return, for each index of the first axis, the sum over all other indices.

    The sums before and after it are added. Subtracting it from the total would give NaN for terms of −inf.
    """
    before, after = np.zeros_like(terms), np.zeros_like(terms)
    np.cumsum(terms[:-1], axis=0, out=before[1:])
    np.cumsum(terms[:0:-1], axis=0, out=after[-2::-1])
    return before + after


def unknown_in_turn(batch: Batch, columns: Sequence[int]) -> Batch:
    """Return one copy of the rows for each of the columns, in which the cells of that column are missing."""
    schema, n = batch.schema, len(batch)
    numbers, codes = (np.tile(cells, (len(columns), 1)) for cells in (batch.numbers.values, batch.codes.values))
    for position, j in enumerate(columns):
        rows = slice(position * n, (position + 1) * n)
        if schema.columns[j].kind == "continuous":
            numbers[rows, schema.of_kind("continuous").index(j)] = np.nan
        if j in schema.coded:
            codes[rows, schema.coded.index(j)] = 0
    tiles = replace(batch.numbers, values=numbers), replace(batch.codes, values=codes)
    row_numbers = np.tile([batch.number(i) for i in range(n)], len(columns))
    bags = tuple(
        Bags.joined([Bags.empty(n, cells.n_words) if j == column else cells for column in columns])
        for j, cells in zip(schema.of_kind("counts"), batch.bags, strict=True)
    )
    return replace(batch, numbers=tiles[0], codes=tiles[1], assignment=None, fold=None, chosen=row_numbers, bags=bags)
