"""Keywords and methods of other libraries, and what does the same in classifiers and mixtures."""

from posteriori.support.keywords import Wanted

SAVE = "use po.save(model, path)"
_OTHER_COLUMNS = "for any other column use net = po.learn_network(table)"
IMPUTE = f"{_OTHER_COLUMNS}; net.marginals(table) has p(column | the known cells) of every row"
GIVEN_CELLS = f"{_OTHER_COLUMNS}; net.sample(n, evidence={{column: value}}) draws rows given cells"

# Methods of classifiers, and where models that predict a number have what is meant.
_CLASSES = "for classes use po.GenerativeClassifier"
PROBABILITIES = f"predict_density(X).probability_between(low, high) has probabilities of ranges; {_CLASSES}"
SAMPLE = "predict_density(X).sample() draws numbers for rows, po.learn_network(table).sample(n) whole rows"
TO_ONNX = (
    "classifiers, mixtures, AdditiveRegressor and KernelRegressor have graphs of ONNX; po.to_polars(model) scores rows "
    "within queries"
)
TO_SQL = "AdditiveRegressor has to_sql; posteriori predict writes predictions of files"
SUMMARY = "posteriori show prints sentences, po.report(model, table, path=…) writes a page"
SUMS = "AdditiveRegressor and KernelRegressor learn from further rows; or fit again to all rows"
DENSITY = "GenerativeRegressor has log p(x)"

OF_CLASSIFIERS: Wanted = {
    "class_weight": (("priors", 'use priors="uniform" for equal classes, or fit(X, y, sample_weight=…)'),),
    "class_prior": (("priors", "use priors=…"),),
    "prior": (("priors", "use priors=…"),),
    "fit_prior": (("priors", 'use priors="uniform" in place of fit_prior=False'),),
    "prior_alpha": (("priors", "use priors=…, a number is the pseudo-count per class"),),
    "var_smoothing": (
        ("distributions", "use distributions=po.Gaussian(smoothing=…), in rows of the pooled variance"),
        ("shrinkage", "use shrinkage=…"),
    ),
    "reg_param": (("shrinkage", "use shrinkage=…"),),
    "store_covariance": (("shrinkage", "leave it out, fit sets covariance_"),),
    "smoothing": (("alpha", "use alpha=…"),),
    "categorical": (("columns", "use columns=po.Columns(categorical_features=…)"),),
    "cat_features": (("columns", "use columns=po.Columns(categorical_features=…)"),),
    "ignore": (("columns", "drop the columns from X"),),
    "binarize": (("distributions", "cut the column at a number with distributions={column: po.Binned([…])}"),),
    "n_estimators": (("n_trees", "use n_trees=…"),),
    "n_components": (("em", "use em=po.EM(components_per_class=…)"),),
    "cv": (("folds", "use folds=…"), ("n_jobs", "use po.cross_validate(model, X, y, folds=…)")),
    "n_splits": (("folds", "use folds=…"),),
    "verbose": (("n_jobs", 'logging.basicConfig(level="INFO") prints each step of fit'),),
    "seed": (("random_state", "use random_state=…"),),
}

OF_SAMPLING: Wanted = {
    "given": (("y", f"use y=… for rows of a class; {GIVEN_CELLS}"), ("n", GIVEN_CELLS)),
    "evidence": (("y", f"use y=… for rows of a class; {GIVEN_CELLS}"), ("n", GIVEN_CELLS)),
    "seed": (("random_state", "use random_state=…"),),
    "n_samples": (("n", "use n=…"),),
}

OF_MIXTURES: Wanted = {
    "covariance_type": (("covariance", 'use covariance=…, "diagonal" in place of "diag"'),),
    "reg_covar": (("pseudo_rows", "use pseudo_rows=…"),),
    "categorical": (("columns", "use columns=po.Columns(categorical_features=…)"),),
    "verbose": (("n_jobs", "leave it out, log_likelihood_trace_ has the progress of EM"),),
    "seed": (("random_state", "use random_state=…"),),
}
