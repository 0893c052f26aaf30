"""The sources of the site show all that they must show, and every notebook of the course runs."""

import json
import re
from operator import attrgetter
from pathlib import Path

import pytest

import posteriori as po
from tests.javascript.engines import node

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
LECTURES = sorted((DOCS / "course").glob("*.py"))
EXAMPLES = sorted((DOCS / "gallery").glob("*.py"))


@pytest.mark.prose
def test_the_reference_lists_every_public_name():
    page = (DOCS / "api" / "index.rst").read_text(encoding="utf-8")
    listed = set(re.findall(r"^   ([A-Za-z0-9_.]+)$", page, re.MULTILINE)) - {"command_line"}
    modules = ("comparison", "drop_in", "explain", "networks", "plotting")
    public = set(po.__all__) - set(modules)
    public |= {name for module in modules for name in getattr(po, module).__all__}
    assert public - {name.split(".")[-1] for name in listed} == set()
    for name in listed:
        attrgetter(name)(po)
        assert "." in name or name in public, name


@pytest.mark.prose
def test_the_reference_shows_the_help_of_every_command():
    from posteriori.cli.commands import _COMMANDS

    shown = re.findall(r"^```\{command-help\} (\S+)", (DOCS / "api" / "command_line.md").read_text(), re.MULTILINE)
    assert {command.__name__.replace("_", "-") for command in _COMMANDS} <= set(shown)


@pytest.mark.prose
@pytest.mark.parametrize("name", po.plotting.__all__)
def test_every_plotting_function_is_in_the_gallery(name):
    assert any(f"{name}(" in page.read_text(encoding="utf-8") for page in EXAMPLES)


@pytest.mark.prose
@pytest.mark.parametrize("page", [*LECTURES, *EXAMPLES], ids=lambda page: page.stem)
def test_a_page_has_a_title_and_a_sentence(page):
    head = re.match(r'(?:r)?"""\n(.+)\n(=+)\n\n\S', page.read_text(encoding="utf-8"))
    assert head, f"{page} begins with a docstring: title, line of =, text"
    assert len(head[1]) == len(head[2])


@pytest.mark.prose
@pytest.mark.parametrize("recipe", sorted((ROOT / "examples" / "extending").glob("*.py")), ids=lambda path: path.stem)
def test_a_recipe_is_on_the_site_and_on_the_page_of_contributors(recipe):
    name = recipe.relative_to(ROOT).as_posix()
    assert f"```{{literalinclude}} ../../{name}\n" in (DOCS / "develop" / "extending.md").read_text(encoding="utf-8")
    assert f"]({name})" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


@pytest.mark.prose
def test_the_page_of_contributors_is_one_page():
    assert len((ROOT / "CONTRIBUTING.md").read_bytes()) <= 6000, "move what is not for everybody to docs/develop/"


@pytest.mark.prose
def test_the_reference_begins_with_use_and_hides_internals(tmp_path):
    pytest.importorskip("numpydoc", reason="the extra `docs` is not installed")
    from sphinx.application import Sphinx

    (tmp_path / "conf.py").write_text(
        f"import sys\nsys.path.insert(0, {str(DOCS / '_extensions')!r})\ndefault_role = 'py:obj'\n"
        "extensions = ['sphinx.ext.autodoc', 'numpydoc', 'public_api']\nnumpydoc_show_class_members = False\n"
    )
    models = ("NaiveBayes", "GenerativeClassifier", "GenerativeRegressor", "JointModel")
    pages = [f".. autoclass:: posteriori.{name}\n   :members:\n   :inherited-members:\n" for name in models]
    (tmp_path / "index.rst").write_text("Models\n======\n\n" + "\n".join(pages))
    Sphinx(tmp_path, tmp_path, tmp_path / "site", tmp_path / "trees", "html", status=None, warning=None).build()
    site = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    for model in models:
        shown = re.findall(rf'<dt class="sig sig-object py" id="posteriori\.{model}\.(\w+)"', site)
        used = ("fit", "predict", "predict_proba", "predict_set", "explain", "score", "score_samples", "sample")
        used = [name for name in (*used, "partial_fit", "merge") if name in shown]
        assert shown[: len(used)] == used, model
        assert used[:2] == ["fit", "predict"], model
        methods = [name for name in shown[len(used) :] if callable(getattr(getattr(po, model), name, None))]
        assert methods == sorted(methods), model
        assert not [name for name in shown if name in ("recipe", "get_metadata_routing") or "request" in name], model


@pytest.mark.prose
@pytest.mark.parametrize("extension", ["'finding'", ""])
def test_a_keyword_leads_to_its_page_before_any_title(extension, tmp_path, monkeypatch):
    pytest.importorskip("sphinx", reason="the extra `docs` is not installed")
    node()
    from sphinx.application import Sphinx

    (tmp_path / "conf.py").write_text(
        f"import sys\nsys.path.insert(0, {str(DOCS / '_extensions')!r})\nproject = 'birds'\n"
        f"html_theme = 'basic'\nextensions = [{extension}]\n"
    )
    pages = {
        "index": "Birds\n=====\n\nOf all.\n\n.. toctree::\n\n   guide\n   measured\n",
        "guide": ".. meta::\n   :keywords: strange rows\n\nUnusual\n=======\n\nRows of low density.\n",
        "measured": "Strange rows, measured\n======================\n\nStrange rows.\n",
    }
    for name, text in pages.items():
        (tmp_path / f"{name}.rst").write_text(text)
    site = tmp_path / "site"
    Sphinx(tmp_path, tmp_path, site, tmp_path / "trees", "html", status=None, warning=None).build()
    monkeypatch.syspath_prepend(DOCS)
    import check_site

    faults = check_site.faults_of_search(site, sorted(site.glob("*.html")))
    faults += check_site.faults_of_llms(site)
    assert (faults == []) == bool(extension)
    if extension:
        (site / "guide.html").unlink()
        assert check_site.faults_of_llms(site) == ["llms.txt leads to guide.html, which is absent"]


FOR_TEACHING = {"full_joint"}


@pytest.mark.prose
def test_the_chart_of_models_has_an_end_for_every_model():
    text = (DOCS / "start" / "which_model.md").read_text(encoding="utf-8")
    ends = re.findall(r'<div role="listitem"><b>(.+?)</b>(.+)</div>', text)
    assert [question.endswith("?") for question, _ in ends] == [True] * 8 + [
        False
    ]  # the last is reached by eight times no
    first = [re.match(r'<a href="../guide/models/(\w+).html">(\w+)', answer) for _, answer in ends]
    assert len({link[1] for link in first}) == len(ends) == 9
    assert all(hasattr(po, link[2]) for link in first)
    linked = set(re.findall(r'href="../guide/models/(\w+).html"', text))
    assert linked == {page.stem for page in (DOCS / "guide" / "models").glob("*.md")} - FOR_TEACHING


@pytest.mark.parametrize("page", LECTURES, ids=lambda page: page.stem)
def test_a_notebook_of_the_course_runs_from_top_to_bottom(page, tmp_path):
    preprocessors = pytest.importorskip("nbconvert.preprocessors", reason="the extra `docs` is not installed")
    pytest.importorskip("sphinx_gallery", reason="the extra `docs` is not installed")
    pytest.importorskip("ipykernel", reason="the extra `docs` is not installed")
    import nbformat
    from sphinx_gallery.gen_gallery import DEFAULT_GALLERY_CONF
    from sphinx_gallery.notebook import jupyter_notebook
    from sphinx_gallery.py_source_parser import split_code_and_text_blocks

    cells = split_code_and_text_blocks(str(page))[1]
    written = jupyter_notebook(cells, {**DEFAULT_GALLERY_CONF, "first_notebook_cell": None}, str(tmp_path))
    notebook = nbformat.reads(json.dumps(written), as_version=4)
    preprocessors.ExecutePreprocessor(timeout=300, kernel_name="python3").preprocess(
        notebook, {"metadata": {"path": str(tmp_path)}}
    )
    assert any(cell.get("outputs") for cell in notebook.cells)


def searched_words(page):
    """Return the words of other fields by which the search finds a page."""
    head = re.match(r"---\n.*?keywords: \"(.+?)\"\n.*?---\n", page.read_text(encoding="utf-8"), re.DOTALL)
    return head[1].split(", ") if head else []


@pytest.mark.prose
@pytest.mark.parametrize("page", sorted((DOCS / "guide" / "tasks").glob("*.md")), ids=lambda page: page.stem)
def test_the_search_finds_a_task_by_words_of_other_fields(page):
    assert searched_words(page)


@pytest.mark.prose
@pytest.mark.parametrize(
    ("word", "page"),
    [
        ("what if", "explore.md"),
        ("demo", "explore.md"),
        ("multiclass", "guide/models/pool.md"),
        ("imbalance", "guide/tasks/label_shift.md"),
        ("imbalanced", "guide/tasks/label_shift.md"),
        ("anomaly", "guide/tasks/strange_rows.md"),
        ("anomaly detection", "guide/tasks/strange_rows.md"),
        ("missing values", "guide/tasks/missing_cells.md"),
        ("counterfactual", "guide/tasks/explain.md"),
        ("partial dependence", "guide/tasks/explain.md"),
        ("GridSearchCV", "guide/tasks/evaluate.md"),
    ],
)
def test_the_search_knows_the_words_of_users(word, page):
    assert word in searched_words(DOCS / page)


@pytest.mark.prose
def test_the_matrix_of_systems_is_that_of_the_workflows():
    page = (DOCS / "develop" / "checks.md").read_text(encoding="utf-8")
    table = page.partition("## Systems and Pythons")[2].partition("## ")[0]
    release = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    by_hand = re.search(r"^VERSIONS = (.+)$", (ROOT / ".ci" / "environments.py").read_text(), re.MULTILINE)[1]
    every, tested = (re.findall(r"3\.\d+", text) for text in (by_hand, re.search(r"python: \[(.+)\]", release)[1]))
    assert tested == [every[0], every[-1]]  # of the wheel, which serves all
    assert table.count(", ".join(every)) == 1
    assert table.count(f"| {', '.join(tested)} |") == 1
    workflows = [path.read_text(encoding="utf-8") for path in (ROOT / ".github" / "workflows").glob("*.yml")]
    runners = set(re.findall(r"\b(?:ubuntu|macos|windows)-[\w.-]+", "".join(workflows)))
    assert set(re.findall(r"`((?:ubuntu|macos|windows)-[\w.-]+)`", table)) == runners
