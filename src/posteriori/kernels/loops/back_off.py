r"""The equation of back-off, for kernels that estimate probabilities from few rows.

A table is the posterior mean under a Dirichlet prior whose s pseudo-rows are distributed as a lower-order table q:

.. math:: p(x) = \frac{n_x + s\, q(x)}{n + s}

Given parents and the component, there are two lower-order tables: the one without the last parent,
p(x | a_1 … a_{t−1}, z), and the one without the component, p(x | a_1 … a_t). q is their mean, so half of the
pseudo-rows follow each. Where rows are few, the first one alone restores the naive factor, which counts evidence
twice; it did worse than plain pseudo-counts. The second one alone was also worse than the mean (`docs/dependence.md`).

The functions take numbers in compiled loops, and arrays in Python. `posteriori.densities.BackOff` states the model.
"""

from posteriori.kernels.machine.compiling import kernel


@kernel(is_part=True)
def halfway(without_parent, without_component):
    """Return the lower-order probability q of a table that depends on parents and on the component."""
    return (without_parent + without_component) / 2.0


@kernel(is_part=True)
def with_pseudo_rows(count, pseudo_rows, lower):
    """Return n_x + s·q(x), the numerator."""
    return count + pseudo_rows * lower


@kernel(is_part=True)
def share_of(count, total, lower):
    """Return count / total, the probability, or the lower-order one if the total is 0."""
    return count / total if total > 0.0 else lower
