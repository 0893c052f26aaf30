"""Loops over bags of words: row i holds the stored cells starts[i] ≤ k < starts[i + 1], each a word and its count.

Words index as unsigned integers, because a signed index would be compared with 0 each time.
"""

import math

import numpy as np

from posteriori.kernels.machine.compiling import kernel

_MOST_FACTORS = 16  # with more, their product might overflow


@kernel
def add_word_counts(starts, words, counts, component, weight, table):
    """Add the weight of each row times each of its counts to table[component, word], (Z, V)."""
    for i in range(len(component)):
        w = weight[i]
        row = table[component[i]]
        for k in range(starts[i], starts[i + 1]):
            row[np.uint32(words[k])] += w * counts[k]


@kernel
def count_invalid(counts, largest):
    """Return how many counts are negative, missing (NaN) or larger than `largest`."""
    n_invalid = 0
    for k in range(len(counts)):
        n_invalid += not (0.0 <= counts[k] <= largest)
    return n_invalid


@kernel
def write_word_scores(words, counts, score, out):
    """Write counts[k]·score[:, words[k]] to out[k], (m, Z); 0 for a count that is 0 or missing. score is (Z, V)."""
    m, n_components = out.shape
    for k in range(m):
        x = counts[k]
        for z in range(n_components):
            out[k, z] = x * score[z, words[k]] if x > 0.0 else 0.0


@kernel
def add_missing_words(starts, words, counts, probability, out):
    """Add the probability of the missing words of each row (NaN) to out (n, Z); probability is (V, Z)."""
    n, n_components = out.shape
    for i in range(n):
        for k in range(starts[i], starts[i + 1]):
            if math.isnan(counts[k]):
                for z in range(n_components):
                    out[i, z] += probability[words[k], z]


@kernel
def add_totals(starts, counts, out):
    """Add the counts of each row to out (n,), without those that are missing (NaN)."""
    for i in range(len(out)):
        for k in range(starts[i], starts[i + 1]):
            if counts[k] > 0.0:
                out[i] += counts[k]


@kernel
def add_rising_factorials(place, words, counts, a, log_a, out):
    """Add log Γ(a + x) − log Γ(a) of the word and the count x of stored cell k to out[place[k]]; a is (V, Z).

    It is Σ_{i < x} log(a + i). A large count takes two log-gamma functions.
    """
    n_components = out.shape[1]
    for k in range(len(words)):
        x = counts[k]
        if not x > 0.0:
            continue
        of_word, log_of_word, target = a[words[k]], log_a[words[k]], out[place[k]]
        for z in range(n_components):
            if x > _MOST_FACTORS:
                target[z] += math.lgamma(of_word[z] + x) - math.lgamma(of_word[z])
            else:
                product = 1.0
                for i in range(1, int(x)):
                    product *= of_word[z] + i
                target[z] += log_of_word[z] + (math.log(product) if x > 1.0 else 0.0)
