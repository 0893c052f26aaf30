"""Figure of predicted numbers against true ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from posteriori.plotting.canvas import GREY, PALETTE, draw_legend, open_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from posteriori.classifiers.generative_regressor import GenerativeRegressor


def plot_predictions(
    model: GenerativeRegressor, *, coverage: float = 0.9, most: int = 1000, ax: Axes | None = None
) -> Axes:
    """Draw the held-out predictions of training rows: medians and intervals against the true numbers.

    They are those of `out_of_fold_`: each row was predicted by models that had not learned from it.

    Parameters
    ----------
    model : fitted regressor
    coverage : float, default 0.9
        The probability of the intervals.
    most : int, default 1000
        Number of rows to draw, at random with a fixed seed. The legend counts all rows.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
        Vertical lines are intervals; the dashed diagonal is where prediction and truth agree.

    Raises
    ------
    ValueError
        most is not positive, or the coverage is not between 0 and 1.
    AttributeError
        The model keeps no held-out predictions, as one that was loaded from a file.

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> penguins = load_penguins().drop_nulls("body_mass_g")
    >>> model = po.GenerativeRegressor(members=["additive"]).fit(penguins, "body_mass_g")
    >>> ax = po.plotting.plot_predictions(model)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('true body_mass_g', 'predicted body_mass_g')
    """
    if most < 1:
        raise ValueError(f"most is {most}; draw at least one row")
    found = model.out_of_fold_
    y, median, interval = found.y, found.density.median, found.density.interval(coverage)
    within = (interval[:, 0] <= y) & (y <= interval[:, 1])
    share = float(found.weight @ within / found.weight.sum())
    drawn = np.random.default_rng(0).permutation(len(y))[:most]
    ax = open_axes(ax, width=5.4, height=5.0)
    ends = [float(end) for end in (min(y.min(), median.min()), max(y.max(), median.max()))]
    ax.plot(ends, ends, "--", color=GREY, lw=1.0, zorder=1)
    for inside, colour, of in ((True, PALETTE[0], share), (False, PALETTE[4], 1.0 - share)):
        rows = drawn[within[drawn] == inside]
        name = f"{'within' if inside else 'outside'} the {100 * coverage:g} % interval: {100 * of:.0f} %"
        ax.vlines(y[rows], *interval[rows].T, color=colour, lw=0.8, alpha=0.35, zorder=2)
        ax.scatter(y[rows], median[rows], s=9.0, color=colour, zorder=3, label=name)
    ax.set(xlabel=f"true {found.density.name}", ylabel=f"predicted {found.density.name}")
    draw_legend(ax)
    return ax
