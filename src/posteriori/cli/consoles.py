"""A console of rich, apart from `terminal`: rich takes long to import."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from posteriori.cli.terminal import without_controls


class SafeConsole(Console):
    """A console of rich that shows the controls of what is printed, and styles it."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Yield the pieces of what is printed; only rich's own may control the terminal."""
        for one in super().render(renderable, options):
            yield one if one.control else Segment(without_controls(one.text), one.style)
