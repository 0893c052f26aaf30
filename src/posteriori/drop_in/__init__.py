"""scikit-learn's generative classifiers, name for name and number for number, by adding up statistics.

To change over, change the import::

    from posteriori.drop_in import BernoulliNB, CategoricalNB, GaussianNB
    from posteriori.drop_in import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis

Parameters, fitted attributes, messages and numbers are scikit-learn's. What differs is said in the Notes of
each class; what is common to all:

- The sums are kept and parameters derived from them, so ``partial_fit(A).partial_fit(B)`` is ``fit(A + B)``.
- A label outside the classes of the first ``partial_fit`` is an error in all of them.
- A negative ``sample_weight`` is an error.
"""

from posteriori.drop_in.bernoulli import BernoulliNB
from posteriori.drop_in.categorical import CategoricalNB
from posteriori.drop_in.gaussian import GaussianNB
from posteriori.drop_in.lda import LinearDiscriminantAnalysis
from posteriori.drop_in.qda import QuadraticDiscriminantAnalysis

__all__ = [
    "BernoulliNB",
    "CategoricalNB",
    "GaussianNB",
    "LinearDiscriminantAnalysis",
    "QuadraticDiscriminantAnalysis",
]


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
