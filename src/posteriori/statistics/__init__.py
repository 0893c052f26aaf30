"""Sufficient statistics: a commutative monoid under +.

A fit adds them up, and parameters are derived from them late, so that shards merge and rows can be removed. Sums
declare their axes: order of classes, + and − follow from them.
"""

from __future__ import annotations

from posteriori.statistics.counts import Counts, CountTogether, JointCounts, PresenceCounts
from posteriori.statistics.forests import LeafCounts
from posteriori.statistics.grouped import GroupedStatistics
from posteriori.statistics.moments import Moments, TailMoments
from posteriori.statistics.pairs import PairMoments, Pairs
from posteriori.statistics.row_posteriors import RowPosteriors
from posteriori.statistics.row_records import RowFingerprints, RowSample
from posteriori.statistics.scatter import Scatter
from posteriori.statistics.sums import (
    ColumnRanges,
    JointStatistics,
    ResponsibilityStatisticsFactory,
    ReversibleStatistics,
    Statistics,
    StatisticsFactory,
    Sums,
    from_responsibilities,
)
from posteriori.statistics.word_counts import (
    CountExposed,
    ExposedCounts,
    ScaledWordCounts,
    WordCounts,
    WordPresence,
    WordRepeats,
)

__all__ = [
    "ColumnRanges",
    "CountExposed",
    "CountTogether",
    "Counts",
    "ExposedCounts",
    "GroupedStatistics",
    "JointCounts",
    "JointStatistics",
    "LeafCounts",
    "Moments",
    "PairMoments",
    "Pairs",
    "PresenceCounts",
    "ResponsibilityStatisticsFactory",
    "ReversibleStatistics",
    "RowFingerprints",
    "RowPosteriors",
    "RowSample",
    "ScaledWordCounts",
    "Scatter",
    "Statistics",
    "StatisticsFactory",
    "Sums",
    "TailMoments",
    "WordCounts",
    "WordPresence",
    "WordRepeats",
    "from_responsibilities",
]
