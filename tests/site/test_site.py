"""The documentation site: it builds without a warning, has every public name, and its links hold."""

from __future__ import annotations

import html.parser
import json
import re
import subprocess
import sys
import tomllib
import urllib.parse
from pathlib import Path

import pytest
import yaml

import rlnb
import rlnb.testing
import rlnb.tracking
from rlnb.hooks import plugins

REPO = Path(__file__).parents[2]
DOCS = REPO / "docs"
MODULES = {
    module.__name__: module
    for module in (
        rlnb,
        rlnb.backend,
        rlnb.launchers,
        rlnb.plugin,
        rlnb.results,
        rlnb.studies,
        rlnb.testing,
        rlnb.tracking,
    )
}
NOT_DOCUMENTED = {"rlnb.__version__", "rlnb.results.Manifest", "rlnb.results.Result"}
"""The last two are those of ``rlnb.plugin``."""
SEARCHED = {
    "from scratch": "scratch",
    "NewtonCfg": "scratch",
    "CNN": "scratch",
    "rename": "watching",
    "ONNX": "exports",
    "colleague": "hosted",
    "best run": "watching",
}
"""Words that people search for, each with the page that answers them."""
PYPROJECT = tomllib.loads((REPO / "pyproject.toml").read_text())


class Page(html.parser.HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.anchors.add(value or "")
            elif name in ("href", "src"):
                self.links.append(value or "")


def broken(site: Path) -> list[str]:
    """Return the links of a site that name no file, or no anchor in it."""
    pages = {path: Page(path) for path in site.rglob("*.html")}
    missing = []
    for path, page in pages.items():
        for link in page.links:
            url = urllib.parse.urlsplit(link)
            if url.scheme or url.netloc:
                continue
            target = (path.parent / urllib.parse.unquote(url.path)).resolve() if url.path else path
            anchor = urllib.parse.unquote(url.fragment)
            known = pages[target].anchors if target in pages else set[str]()
            if not target.exists() or (anchor and target in pages and anchor not in known):
                missing.append(f"{path.relative_to(site)}: {link}")
    return missing


def found(site: Path, words: str) -> set[str]:
    """Return the pages that the site's search finds: those with all words, in the text or in a title."""
    search = pytest.importorskip("sphinx.search.en")
    text = (site / "searchindex.js").read_text(encoding="utf-8").strip()
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    language, pages = search.SearchEnglish({}), set(index["docnames"])
    for word in words.lower().split():
        if word not in language.stopwords:
            of_word = [index[kind].get(language.stem(word), []) for kind in ("terms", "titleterms")]
            pages &= {index["docnames"][n] for each in of_word for n in (each if isinstance(each, list) else [each])}
    return pages


def test_the_site_builds_without_a_warning_and_has_every_public_name(tmp_path: Path) -> None:
    inventory = pytest.importorskip("sphinx.util.inventory")
    argv = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going", "--builder", "html"]
    argv += ["--doctree-dir", str(tmp_path / "trees"), str(DOCS), str(tmp_path / "site")]
    build = subprocess.run(argv, capture_output=True, text=True, timeout=250)
    assert build.returncode == 0, build.stderr
    entries = inventory.InventoryFile.loads((tmp_path / "site" / "objects.inv").read_bytes(), uri="")
    documented = {name for kind in entries.data if kind.startswith("py:") for name in entries.data[kind]}
    public = {f"{module}.{name}" for module, members in MODULES.items() for name in members.__all__}
    launchers = {f"rlnb.{name}" for name in plugins.launchers() if name != "pods"}
    assert not (public | launchers) - documented - NOT_DOCUMENTED
    assert broken(tmp_path / "site") == []
    api = (tmp_path / "site" / "api").glob("*.html")
    split = [page.name for page in api if ">Type<span" in page.read_text()]
    assert split == [], "napoleon takes the text before a colon in an attribute's first line for its type"
    commands = re.sub("<[^>]+>", "", (tmp_path / "site" / "cli.html").read_text())
    for command in ("train", "runs prune", "assets mirror", "plugins new", "doctor"):
        assert f"rlnb {command}" in commands
    pages = {words: found(tmp_path / "site", words) for words in SEARCHED}
    assert {words: page for words, page in SEARCHED.items() if page not in pages[words]} == {}
    assert not {"changelog", "results"} & {page for some in pages.values() for page in some}


def test_the_figure_of_the_layers_is_that_of_the_contract() -> None:
    figure, position = (DOCS / "layers.svg").read_text(), 0
    for layer in PYPROJECT["tool"]["importlinter"]["contracts"][0]["layers"]:
        for name in layer.split(" | "):
            assert f">{name}</text>" in figure[position:], f"{name} is missing, or in another layer"
        position = max(figure.index(f">{name}</text>", position) for name in layer.split(" | "))


def test_the_environment_for_conda_installs_what_the_makefile_installs() -> None:
    environment = yaml.safe_load((REPO / "environment.yml").read_text())
    (listed,) = [entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict)]
    options = [line.split() for line in listed]
    assert ["--constraint", "constraints.txt"] in options
    folders = [text.partition("[") for option, text in options if option == "--editable"]
    editable = {folder: extras.rstrip("]") for folder, _, extras in folders}
    packages = {".", *(str(path.parent.relative_to(REPO)) for path in REPO.glob("[pe]*s/*/pyproject.toml"))}
    assert {*editable} == packages
    extras = PYPROJECT["project"]["optional-dependencies"]
    assert {*editable["."].split(",")} <= {*extras}
    assert {"isaaclab", "dask", "report", "lab", "view"} <= {*editable["."].split(",")}
    assert f"python={PYPROJECT['tool']['mypy']['python_version']}" in environment["dependencies"]


@pytest.mark.slow
def test_the_environment_for_conda_resolves(tmp_path: Path) -> None:
    environment = yaml.safe_load((REPO / "environment.yml").read_text())
    (listed,) = [entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict)]
    requirements = tmp_path / "requirements.txt"
    # conda puts such a file beside environment.yml, and pip reads paths in it from there.
    requirements.write_text("\n".join(listed).replace("constraints.txt", str(REPO / "constraints.txt")) + "\n")
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    uv = Path(sys.executable).with_name("uv")
    python = tmp_path / "venv" / "bin" / "python"
    argv = [str(uv), "pip", "install", "--dry-run", "--python", str(python), "--requirement", str(requirements)]
    answer = subprocess.run(argv, cwd=REPO, capture_output=True, text=True, timeout=250)
    assert answer.returncode == 0, answer.stderr
    # uv names a package with its version once it has built its metadata.
    assert re.search(rf"rlnb(==[\w.]+ \(from| @) {re.escape(REPO.as_uri())}", answer.stderr), answer.stderr
    assert "isaaclab==3.0.0" in answer.stderr
