"""The last step of Bayes' rule: evidence and posterior, by log-sum-exp."""

import math

from posteriori.kernels import few_rows
from posteriori.kernels.compiling import kernel


@kernel(few_rows=few_rows.log_evidence)
def log_evidence(log_joint, out):
    """Write log Σ_z exp(log_joint[i, z]) to out[i]."""
    n, n_components = log_joint.shape
    for i in range(n):
        largest = log_joint[i, 0]
        for z in range(1, n_components):
            largest = max(largest, log_joint[i, z])
        if largest == -math.inf:
            out[i] = -math.inf
            continue
        total = 0.0
        for z in range(n_components):
            total += math.exp(log_joint[i, z] - largest)
        out[i] = largest + math.log(total)


@kernel(few_rows=few_rows.normalise)
def normalise(log_joint):
    """Replace each row of log p(x, z) by p(z | x), or by NaN if p(x) = 0."""
    n, n_components = log_joint.shape
    for i in range(n):
        largest = log_joint[i, 0]
        for z in range(1, n_components):
            largest = max(largest, log_joint[i, z])
        total = 0.0
        for z in range(n_components):
            log_joint[i, z] = math.exp(log_joint[i, z] - largest)
            total += log_joint[i, z]
        share = 1.0 / total
        for z in range(n_components):
            log_joint[i, z] *= share


@kernel
def responsibilities_and_evidence(log_joint, log_evidence):
    """Replace each row of log p(x, z) by p(z | x), and write log p(x) to log_evidence[i]."""
    n, n_components = log_joint.shape
    for i in range(n):
        largest = log_joint[i, 0]
        for z in range(1, n_components):
            largest = max(largest, log_joint[i, z])
        if largest == -math.inf:
            log_evidence[i] = -math.inf
            for z in range(n_components):
                log_joint[i, z] = math.nan
            continue
        total = 0.0
        for z in range(n_components):
            log_joint[i, z] = math.exp(log_joint[i, z] - largest)
            total += log_joint[i, z]
        log_evidence[i] = largest + math.log(total)
        share = 1.0 / total
        for z in range(n_components):
            log_joint[i, z] *= share
