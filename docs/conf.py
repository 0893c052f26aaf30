"""Configuration of the documentation site: `make docs` builds it into build/site, without network."""

import os
import sys
import tomllib
from pathlib import Path

os.environ.setdefault(
    "OPENBLAS_NUM_THREADS", "1"
)  # examples run in several processes
os.environ.setdefault("OMP_NUM_THREADS", "1")

HERE = Path(__file__).parent
sys.path[:0] = [
    str(HERE / "_extensions"),
    str(HERE.parent),
]  # the second for experiments/, whose tables pages quote

from public_api import USED_FIRST  # noqa: E402

import posteriori  # noqa: E402

project = "posteriori"
author = "the posteriori developers"
copyright = "the posteriori developers, BSD-3-Clause"
version = release = posteriori.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "finding",
    "layers",
    "live_explorer",
    "mathml",
    "public_api",
]
templates_path = ["_templates"]
exclude_patterns = [
    "_extensions",
    "_templates",
    "course",
    "gallery",
    "auto_*/**/*.ipynb",
    "auto_*/**/*.codeobj.json",
]
suppress_warnings = ["config.cache"]
nitpicky = False

# Markdown pages
myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 4

# Copy buttons: the code without prompts and output
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos"
copybutton_copy_empty_lines = False  # of what is printed
# The button has a name of its own; a <title> in its picture would be one more title of the page.
copybutton_image_svg = (
    '<svg aria-hidden="true" viewBox="0 0 24 24" width="44" height="44" fill="none" stroke="currentColor" '
    'stroke-width="1.5"><rect x="8" y="8" width="12" height="12" rx="2"/><path d="M16 8V6a2 2 0 0 0-2-2H6a2 2 0 0 '
    '0-2 2v8a2 2 0 0 0 2 2h2"/></svg>'
)

# Reference
autosummary_generate = True
autosummary_context = {"used_first": USED_FIRST}
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
default_role = "py:obj"
add_module_names = False
toc_object_entries_show_parents = "hide"

# Examples: the pages of the course and of the gallery are Python files, run when the site is built
sphinx_gallery_conf = {
    "examples_dirs": ["course", "gallery"],
    "gallery_dirs": ["auto_course", "auto_gallery"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "api/backreferences",
    "doc_module": ("posteriori",),
    "reference_url": {"posteriori": None},
    "inspect_global_variables": True,
    "capture_repr": ("_repr_html_", "__repr__"),
    "matplotlib_animations": False,
    "remove_config_comments": True,
    "download_all_examples": True,
    "show_memory": False,
    "write_computation_times": False,  # its tables load scripts from the network
    "min_reported_time": 0,
    "default_thumb_file": str(HERE / "pictures" / "penguins.png"),
    "thumbnail_size": (400, 280),
    "nested_sections": False,
    "plot_gallery": "True",
    "reset_modules": ("gallery_style.reset",),
    "parallel": int(os.environ.get("POSTERIORI_DOCS_JOBS", "2")),
}

for name in ("course", "gallery"):  # pages whose source was removed or renamed
    for page in (HERE / f"auto_{name}").glob("*.rst"):
        if page.stem != "index" and not (HERE / name / f"{page.stem}.py").exists():
            page.unlink()

# Theme
html_theme = "pydata_sphinx_theme"
html_title = "posteriori"
html_static_path = ["_static"]
html_favicon = "_static/icon.svg"
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "posteriori"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "navigation_depth": 2,
    "show_toc_level": 2,
    "navbar_end": ["release", "theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "back_to_top_button": False,
}
_PROJECT = tomllib.loads((HERE.parent / "pyproject.toml").read_text("utf-8"))[
    "project"
]
# The header links to the repository if pyproject.toml has its address.
html_context = {
    "repository": _PROJECT.get("urls", {}).get("Repository"),
    "default_mode": "auto",  # without it, the theme complains of an invalid mode
}
html_sidebars = {"index": [], "start/**": ["sidebar-nav-bs"]}
