"""Drop-in replacements of the generative classifiers of scikit-learn, based on additive statistics.

They are estimators of scikit-learn's names above the same sums and densities as everything else. The tests compare each
with the original.

To switch, change the import::

    from posteriori.drop_in import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB
    from posteriori.drop_in import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis

Parameters, fitted attributes, messages and numbers are the same as in scikit-learn. The Notes of each class list the
differences. Common to all:

- The sums are kept and parameters are derived from them, so ``partial_fit(A).partial_fit(B)`` equals ``fit(A + B)``.
- A label outside the classes of the first ``partial_fit`` is an error in all of them.
- A negative ``sample_weight`` is an error.
"""

import posteriori.support.scikit_learn  # noqa: F401  (before any module imports scikit-learn)
from posteriori.drop_in.counts import ComplementNB, MultinomialNB
from posteriori.drop_in.discrete import BernoulliNB, CategoricalNB
from posteriori.drop_in.gaussian import GaussianNB
from posteriori.drop_in.lda import LinearDiscriminantAnalysis
from posteriori.drop_in.qda import QuadraticDiscriminantAnalysis

__all__ = [
    "BernoulliNB",
    "CategoricalNB",
    "ComplementNB",
    "GaussianNB",
    "LinearDiscriminantAnalysis",
    "MultinomialNB",
    "QuadraticDiscriminantAnalysis",
]


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
