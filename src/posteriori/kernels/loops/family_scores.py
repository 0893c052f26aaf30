"""Scores of families, a variable with its parents, for the search of structures."""

import math

import numpy as np

from posteriori.kernels.machine.compiling import kernel


@kernel
def encode_configurations(columns, cardinalities, members, configuration):
    """Set configuration[i] to the mixed-radix number whose digits are the codes of some columns; columns is (d, n)."""
    configuration[:] = 0
    for j in members:
        width = np.uint32(cardinalities[j])
        codes = columns[j]
        for i in range(len(configuration)):
            configuration[i] = configuration[i] * width + codes[i]


@kernel
def score_families(
    columns, weight, cardinalities, configuration, n_parents, n_states, added, penalty, pseudo_rows, out
):
    """Set out[c] to the score of a family after the parent added[c] is added to it.

    configuration (n,) encodes the current parents (one of n_parents combinations) and then the child (one of n_states)
    of each row. The score is Σ n_ak·log(n_ak / n_a) − penalty per parameter. If pseudo_rows is positive, it is the log
    Dirichlet-multinomial likelihood with that many pseudo-rows spread evenly over the cells (BDeu: Heckerman, Geiger &
    Chickering 1995).
    """
    c = 0
    while c < len(added):
        two = c + 1 < len(added)
        a, b = added[c], added[c + 1] if two else added[c]
        table_a = np.zeros(n_parents * n_states * cardinalities[a], weight.dtype)
        if two:  # two tables at a time: an increment waits for the previous one of its own table only
            table_b = np.zeros(n_parents * n_states * cardinalities[b], weight.dtype)
            _count_two(
                columns[a], columns[b], weight, cardinalities[a], cardinalities[b], configuration, table_a, table_b
            )
            out[c + 1] = _score(table_b, n_parents, n_states, cardinalities[b], penalty, pseudo_rows)
        else:
            width = np.uint32(cardinalities[a])
            codes = columns[a]
            for i in range(len(configuration)):
                table_a[configuration[i] * width + codes[i]] += weight[i]
        out[c] = _score(table_a, n_parents, n_states, cardinalities[a], penalty, pseudo_rows)
        c += 2


@kernel(is_part=True)
def _count_two(codes_a, codes_b, weight, k_a, k_b, configuration, table_a, table_b):
    width_a, width_b = np.uint32(k_a), np.uint32(k_b)
    for i in range(len(configuration)):
        x = weight[i]
        table_a[configuration[i] * width_a + codes_a[i]] += x
        table_b[configuration[i] * width_b + codes_b[i]] += x


@kernel(is_part=True)
def _score(table, n_parents, n_states, width, penalty, pseudo_rows):
    """Return the score of counts (n_parents, n_states, width). The last axis is the added parent."""
    n_configurations = n_parents * width
    total = 0.0
    alpha = pseudo_rows / (n_configurations * n_states)
    for p in range(n_parents):
        for u in range(width):
            first = p * n_states * width + u
            n = 0.0
            for k in range(n_states):
                count = float(table[first + k * width])
                if count > 0.0:
                    n += count
                    if pseudo_rows > 0.0:
                        total += math.lgamma(count + alpha) - math.lgamma(alpha)
                    else:
                        total += count * math.log(count)
            if n > 0.0:
                if pseudo_rows > 0.0:
                    total += math.lgamma(alpha * n_states) - math.lgamma(n + alpha * n_states)
                else:
                    total -= n * math.log(n)
    return total - penalty * n_configurations * (n_states - 1)
