"""A complete HTML document that can be saved, and that notebooks show in a frame."""

from __future__ import annotations

import html
import os
from dataclasses import dataclass
from pathlib import Path

from posteriori.atomic_write import write_whole


@dataclass(frozen=True)
class HtmlPage:
    """A complete HTML document.

    Attributes
    ----------
    title : str
    html : str
        The document. It loads nothing.
    """

    title: str
    html: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file atomically: an interrupted write leaves no partial file.

        Parameters
        ----------
        path : path
            Usually ending in ``.html``.

        Raises
        ------
        OSError
            The folder does not exist or is not writable, or the path is a folder.
        """
        write_whole(Path(path), self.html.encode("utf-8", "replace"))

    def _repr_html_(self) -> str:
        """Return the page in a frame, so that its style and the style of the notebook do not mix."""
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" title="{html.escape(self.title)}" '
            'style="width:100%;height:80vh;border:1px solid #ddd"></iframe>'
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.title!r}, {len(self.html):,} characters; save(path) writes it)"
