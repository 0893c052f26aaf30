"""Loops over bags of words: row i holds the stored cells starts[i] ≤ k < starts[i + 1], each a word and its count."""

import math

from posteriori.kernels.compiling import kernel


@kernel
def add_word_counts(starts, words, counts, component, weight, table):
    """Add the weight of each row times each of its counts to table[component, word], (Z, V)."""
    for i in range(len(component)):
        w = weight[i]
        row = table[component[i]]
        for k in range(starts[i], starts[i + 1]):
            row[words[k]] += w * counts[k]


@kernel
def add_word_scores(starts, words, counts, score, out):
    """Add Σ_k counts[k]·score[words[k]] of each row to out (n, Z); score is (V, Z). A count of 0 adds 0, even to −inf.

    A missing count (NaN) adds nothing.
    """
    n, n_components = out.shape
    for i in range(n):
        total = out[i]
        for k in range(starts[i], starts[i + 1]):
            x = counts[k]
            if x > 0.0:
                of_word = score[words[k]]
                for z in range(n_components):
                    total[z] += x * of_word[z]


@kernel
def write_word_scores(words, counts, score, out):
    """Write counts[k]·score[words[k]] to out[k], (m, Z); 0 for a count that is 0 or missing."""
    m, n_components = out.shape
    for k in range(m):
        x = counts[k]
        for z in range(n_components):
            out[k, z] = x * score[words[k], z] if x > 0.0 else 0.0


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
