"""The terminal page of cv for numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from posteriori.cli.tables import console, label_text, print_members

if TYPE_CHECKING:
    from posteriori.facts.model import Facts


def print_number_cv(facts: Facts) -> None:
    """Print the cross-validated scores of models, or of the members and of the pool."""
    out = console()
    folds = f"{facts['folds']}-fold cross-validation"
    out.print(f"{facts['table']}: {facts['rows']:,} rows, {folds} of {label_text(facts['target'])}\n")
    print_members(out, facts["models"])
