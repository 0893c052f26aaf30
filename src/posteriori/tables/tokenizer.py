"""How a column of text is cut into words: the settings of scikit-learn's CountVectorizer and HashingVectorizer."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from posteriori.support.checks import require
from posteriori.support.suggestions import similar

_OF_VOCABULARY = ("min_df", "max_df", "max_features")
_MOST_HASHES = 1 << 31  # scikit-learn's indices have 32 bits


@dataclass(frozen=True)
class Tokenizer:
    """The settings of scikit-learn's `CountVectorizer`, of the same names, and which words become the vocabulary."""

    # whether the tokens are words, characters, or characters within words
    analyzer: Literal["word", "char", "char_wb"] = "word"
    lowercase: bool = True
    strip_accents: Literal["ascii", "unicode"] | None = None
    # the least and the greatest number of neighbouring tokens that are counted together
    ngram_range: tuple[int, ...] = (1, 1)
    stop_words: str | tuple[str, ...] | None = None  # words that are left out
    # the regular expression of a word; by default two or more letters, digits or underscores
    token_pattern: str = r"(?u)\b\w\w+\b"
    binary: bool = False  # whether a word counts once per cell, however often it occurs
    # the least and the greatest number of rows (int), or share of rows (float), that a word of the vocabulary occurs in
    min_df: int | float = 1
    max_df: int | float = 1.0
    max_features: int | None = 1 << 17  # V, the greatest number of words: the ones that most rows hold
    # V, if words are counted by their hashes and not by a vocabulary, as `HashingVectorizer` does. Two words may have
    # one hash, and a hash cannot be read as a word; the first pass over the rows is saved.
    n_features: int | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Tokenizer:
        """Return the settings that a mapping states, and the defaults of the others.

        Raises ValueError if there is no such setting, or it has a wrong value.
        """
        from posteriori.support.checks import check_fields

        if not isinstance(options, Mapping):
            raise ValueError(f"text gives {options!r} for a column; give its settings, such as {{'min_df': 2}}")
        known = [field.name for field in dataclasses.fields(cls)]
        unknown = next((name for name in options if name not in known), None)
        if unknown is not None:
            found = similar(str(unknown), known)
            hint = f"; do you mean {found!r}?" if found else f"; the settings are {', '.join(known)}"
            raise ValueError(f"text has no setting {unknown!r}{hint}")
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in options.items()
        }
        check_fields(cls, given)
        made = cls(**given)
        made.check()
        return made

    def check(self) -> None:
        """Raise ValueError unless the settings have a meaning."""
        low_to_high = len(self.ngram_range) == 2 and 1 <= self.ngram_range[0] <= self.ngram_range[1]
        require(low_to_high, f"ngram_range is {self.ngram_range}; give the least and the greatest length, as (1, 2)")
        named = not isinstance(self.stop_words, str) or self.stop_words == "english"
        require(named, f'stop_words is {self.stop_words!r}; give "english" or a list of words')
        for name in ("min_df", "max_df"):
            value = getattr(self, name)
            suits = value >= 0 if isinstance(value, int) else 0.0 <= value <= 1.0
            require(suits, f"{name} is {value}; give a number of rows, or a share of them between 0.0 and 1.0")
        require(self.max_features is None or self.max_features > 0, "max_features is not positive")
        if self.n_features is not None:
            suits = 0 < self.n_features < _MOST_HASHES
            require(suits, f"n_features is {self.n_features}; give the number of hashes, such as {1 << 18}")
            usual = Tokenizer()
            stated = [name for name in _OF_VOCABULARY if getattr(self, name) != getattr(usual, name)]
            require(
                not stated,
                f"n_features hashes the words, so that there is no vocabulary that {', '.join(stated)} could limit; "
                "leave one of them out",
            )
        try:
            groups = re.compile(self.token_pattern).groups
        except re.error as error:
            raise ValueError(f"token_pattern is {self.token_pattern!r}, which is no pattern: {error}") from None
        require(groups <= 1, f"token_pattern is {self.token_pattern!r}; it may have one group at most")

    @property
    def _settings(self) -> dict[str, Any]:
        """The settings of the vectorizers of scikit-learn, without those of the vocabulary."""
        settings = dataclasses.asdict(self)
        for name in (*_OF_VOCABULARY, "n_features"):
            del settings[name]
        if isinstance(self.stop_words, tuple):
            settings["stop_words"] = list(self.stop_words)
        if self.analyzer != "word":  # CountVectorizer warns of settings that only words have
            del settings["stop_words"], settings["token_pattern"]
        return settings

    def _vectorizer(self, **vocabulary: Any) -> Any:
        try:
            from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
        except ImportError:
            raise ImportError("a model with a column of text needs scikit-learn: pip install scikit-learn") from None
        if self.n_features is not None:
            return HashingVectorizer(n_features=self.n_features, alternate_sign=False, norm=None, **self._settings)
        return CountVectorizer(**self._settings, **vocabulary)

    def weighter(self) -> Any:
        """Return a vectorizer that learns a vocabulary, and weights its words by tf-idf."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        limits = {name: getattr(self, name) for name in _OF_VOCABULARY}
        return TfidfVectorizer(**self._settings, **limits)

    def counter(self, places: Mapping[str, int]) -> Any:
        """Return a vectorizer that counts hashes, or the words of a vocabulary, given as the position of each."""
        return self._vectorizer(**({} if self.n_features is not None else {"vocabulary": places}))

    def count(self, texts: Sequence[str | None]) -> tuple[tuple[str, ...], Any]:
        """Return the words of some texts, and how often each occurs in each text, as a CSR matrix; None has no word."""
        vectorizer = self._vectorizer()
        try:
            counts = vectorizer.fit_transform([text or "" for text in texts])
        except ValueError as error:
            if "empty vocabulary" not in str(error):
                raise
            return (), None
        return tuple(vectorizer.get_feature_names_out().tolist()), counts

    def selected(self, n_rows_with: Mapping[str, int], n_rows: int) -> tuple[str, ...]:
        """Return the vocabulary, in alphabetical order, from the number of rows that hold each word."""
        low, high = (bound if isinstance(bound, int) else bound * n_rows for bound in (self.min_df, self.max_df))
        kept: Iterable[str] = [word for word, count in n_rows_with.items() if low <= count <= high]
        if self.max_features is not None:
            kept = sorted(kept, key=lambda word: (-n_rows_with[word], word))[: self.max_features]
        return tuple(sorted(kept))
