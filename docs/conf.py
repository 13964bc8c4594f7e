"""The documentation site: ``make docs`` builds it without network.

Pages whose text stands elsewhere are written into this folder before each build, and git ignores them: the CLI
reference, the READMEs of the packages, the changelog, the guide for contributors and the notebooks.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import rlnb

DOCS = Path(__file__).parent
REPO = DOCS.parent
EXECUTED = REPO / "outputs" / "gallery"
"""Where ``make gallery`` puts the executed notebooks. The page of any other notebook has no outputs."""
PACKAGES = [*sorted(REPO.glob("plugins/*/README.md")), *sorted(REPO.glob("extensions/*/README.md"))]
LINKS = [
    (re.compile(r"\]\((?:\.\./)?(?:plugins|extensions)/([\w-]+)(?:/README\.md)?(#[\w-]+)?\)"), r"](/packages/\1.md\2)"),
    (re.compile(r"\]\((?:\.\./)?notebooks/(\w+)\.ipynb\)"), r"](/gallery/\1.ipynb)"),
    (re.compile(r"\]\((?:\.\./)*docs/"), "](/"),
    (re.compile(r"\]\((?:\.\./)?README\.md(#[\w-]+)?\)"), "](/index.md)"),
    (re.compile(r"\]\((?:\.\./)?CONTRIBUTING\.md(#[\w-]+)?\)"), r"](/contributing.md\1)"),
    (re.compile(r"\]\((?:\.\./)?benchmarks/RESULTS\.md\)"), "](/results.md)"),
    (re.compile(r"\]\((?:\.\./)?CHANGELOG\.md\)"), "](/changelog.md)"),
]
"""Links that hold in the repository, and the pages that they name on the site."""
NO_SEARCH = "---\nno-search: true\n---\n\n"
"""Beginning of a page that the search leaves out. The changelog and the measurements have every word, and would come
before the page that explains it."""

project = "rlnb"
author = "the rlnb authors"
copyright = author
release = version = rlnb.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = f"rlnb {release}"
exclude_patterns = ["_build"]
nb_execution_mode = "off"
nb_render_markdown_format = "myst"
# Every Plotly figure of an executed notebook has a PNG beside it, which the page shows.
suppress_warnings = ["mystnb.unknown_mime_type"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_numpy_docstring = False
napoleon_use_rtype = False
python_maximum_signature_line_length = 100


def _write(name: str, text: str) -> None:
    """Write a page, unless its text is the same, so that Sphinx reads again only what changed."""
    path = DOCS / name
    path.parent.mkdir(exist_ok=True)
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def _write_cli() -> None:
    typer = [
        sys.executable,
        "-m",
        "typer",
        "rlnb.cli.app",
        "utils",
        "docs",
        "--name",
        "rlnb",
        "--title",
        "Command line",
    ]
    _write("cli.md", subprocess.run(typer, check=True, capture_output=True, text=True).stdout)


def _write_pages() -> None:
    for readme in PACKAGES:
        _write(f"packages/{readme.parent.name}.md", readme.read_text(encoding="utf-8"))
    _write("changelog.md", NO_SEARCH + (REPO / "CHANGELOG.md").read_text(encoding="utf-8"))
    _write("contributing.md", (REPO / "CONTRIBUTING.md").read_text(encoding="utf-8"))


def _write_results() -> None:
    """Write the page of the measurements. Its first line is the file's own title."""
    _write("results.md", NO_SEARCH + (REPO / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8"))


def _copy_notebooks() -> None:
    (DOCS / "gallery").mkdir(exist_ok=True)
    for notebook in sorted(REPO.glob("notebooks/*.ipynb")):
        executed = EXECUTED / notebook.name
        shutil.copy2(executed if executed.is_file() else notebook, DOCS / "gallery" / notebook.name)


def _follow(app: object, name: str, text: list[str]) -> None:
    for link, page in LINKS:
        text[0] = link.sub(page, text[0])


def setup(app: object) -> None:
    _write_cli()
    _write_pages()
    _write_results()
    _copy_notebooks()
    app.connect("source-read", _follow)  # type: ignore[attr-defined]
