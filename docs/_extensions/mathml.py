"""Render formulas as MathML, which browsers draw themselves: no script, no font server, no network."""

import re

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)


def written_out(tex: str) -> str:
    """Write out what TeX infers and the converter does not: digits of fractions, sides of large brackets, alignment."""
    tex = re.sub(
        r"\\([td]?frac)\s*([0-9A-Za-z])\s*([0-9A-Za-z])(?![A-Za-z])",
        r"\\\1{\2}{\3}",
        tex,
    )
    tex = re.sub(r"\\([bB]igg?)(?=[(\[]|\\\{)", r"\\\1l", tex)
    tex = re.sub(r"\\([bB]igg?)(?=[)\]]|\\\})", r"\\\1r", tex)
    if "\\begin{" in tex or ("\\\\" not in tex and "&" not in tex):
        return tex
    return f"\\begin{{aligned}}{tex}\\end{{aligned}}"


def with_spaced_functions(mathml: str) -> str:
    """Add the thin space of TeX after a function whose argument has no brackets: log p."""
    space = '<mspace width="0.1667em"></mspace>'
    return re.sub(r"<mo>&ApplyFunction;</mo>(?=\s*<m(?!o))", space, mathml)


def to_mathml(node: nodes.Element, *, block: bool) -> str:
    """Return a formula as MathML. A formula that cannot be read is a warning, which ends the build."""
    tex = written_out(node.astext().strip())
    try:
        return with_spaced_functions(latex2mathml.tex2mathml(tex, as_block=block))
    except (MathError, SyntaxError, ValueError) as error:
        logger.warning("formula %r: %s", tex, error, location=node)
        return f"<code>{tex}</code>"


def visit_inline(translator, node):
    """Write a formula within a line."""
    translator.body.append(
        f'<span class="formula">{to_mathml(node, block=False)}</span>'
    )
    raise nodes.SkipNode


def visit_block(translator, node):
    """Write a formula of its own; a wide one scrolls in its frame, so that the page does not."""
    translator.body.append(
        f'<div class="formula">{to_mathml(node, block=True)}</div>'
    )
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer and choose it."""
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(visit_inline, None),
        block_renderers=(visit_block, None),
    )
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
