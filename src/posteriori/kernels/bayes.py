"""The last step of Bayes' rule: evidence and posterior, by log-sum-exp."""

import math

import numpy as np

from posteriori.kernels import few_rows
from posteriori.kernels.compiling import kernel
from posteriori.kernels.exponential import exponentiate

_CELLS = 1024  # exponentials at once


@kernel(few_rows=few_rows.log_evidence)
def log_evidence(log_joint, out):
    """Write log Σ_z exp(log_joint[i, z]) to out[i]."""
    _apply_bayes(log_joint, log_joint[:0], out)


@kernel(few_rows=few_rows.normalise)
def normalise(log_joint):
    """Replace each row of log p(x, z) by p(z | x), or by NaN if p(x) = 0."""
    _apply_bayes(log_joint, log_joint, np.empty(0))


@kernel
def responsibilities_and_evidence(log_joint, log_evidence):
    """Replace each row of log p(x, z) by p(z | x), and write log p(x) to log_evidence[i]; NaN and −inf if p(x) = 0."""
    _apply_bayes(log_joint, log_joint, log_evidence)


@kernel(is_part=True)
def _apply_bayes(log_joint, posterior, log_evidence):
    """Write p(z | x) to posterior and log p(x) to log_evidence; to neither if it is empty."""
    n, n_components = log_joint.shape
    at_once = max(1, _CELLS // n_components)
    shares, largest = np.empty((at_once, n_components)), np.empty(at_once)
    for first in range(0, n, at_once):
        m = min(at_once, n - first)
        _exponentiate(log_joint[first : first + m], shares, largest)
        for r in range(m):
            total = 0.0
            for z in range(n_components):
                total += shares[r, z]
            if len(log_evidence) > 0:
                log_evidence[first + r] = -math.inf if largest[r] == -math.inf else largest[r] + math.log(total)
            if len(posterior) > 0:
                scale = 1.0 / total
                for z in range(n_components):
                    posterior[first + r, z] = shares[r, z] * scale


@kernel
def _exponentiate(log_joint, shares, largest):
    """Write the largest entry of each row to largest, and exp(entry − largest) to shares; NaN where all are −inf."""
    m, n_components = log_joint.shape
    for r in range(m):
        peak = log_joint[r, 0]
        for z in range(1, n_components):
            peak = max(peak, log_joint[r, z])
        largest[r] = peak
        for z in range(n_components):
            shares[r, z] = log_joint[r, z] - peak
    exponentiate(shares[:m].reshape(m * n_components))
