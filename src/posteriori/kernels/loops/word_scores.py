"""The scores of bags of words. Its vector instructions need Numba when it is imported, so that it is imported late."""

import numpy as np

from posteriori.kernels.machine.compiling import kernel
from posteriori.kernels.machine.lanes import LANES, add_scaled_row


@kernel
def add_word_scores(starts, words, counts, score, out):
    """Add Σ_k counts[k]·score[words[k]] of each row to out (n, Z). A count of 0 adds 0, even to −inf.

    A missing count (NaN) adds nothing. score is (V, Z) if Z ≤ 2; otherwise (V·B, LANES), with B rows for a word.
    """
    n, n_components = out.shape
    if n_components <= 2:
        for i in range(n):
            first, second = 0.0, 0.0
            for k in range(starts[i], starts[i + 1]):
                x = float(counts[k])
                if x > 0.0:
                    word = np.uint32(words[k])
                    first += x * score[word, 0]
                    second += x * score[word, n_components - 1]
            out[i, 0] += first
            if n_components > 1:
                out[i, 1] += second
        return
    n_blocks = (n_components + LANES - 1) // LANES
    total = np.empty((n_blocks, LANES))
    for i in range(n):
        total[:] = 0.0
        for k in range(starts[i], starts[i + 1]):
            x = float(counts[k])
            if x > 0.0:
                first_block = int(words[k]) * n_blocks
                for block in range(n_blocks):
                    add_scaled_row(total, block, x, score, first_block + block)
        for z in range(n_components):
            out[i, z] += total[z // LANES, z % LANES]
