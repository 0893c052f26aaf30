"""From what parameters ask and rows show to what is learned: recipes, rows to learn from, and fitted values.

`fit` reads the parameters of an estimator once, as a `Recipe`; everything after it is a function from values to values.
`update.py` and `merge.py` add, remove and merge rows of what was learned.
"""

import posteriori.support.scikit_learn  # noqa: F401  (before any module imports scikit-learn)
