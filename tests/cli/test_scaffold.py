"""``rlnb plugins new``: new packages are clean and work without changes. The slow tests run the packages' own tests."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import inspect
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import rlnb
import rlnb.backend
from rlnb.cli import app, plugins
from rlnb.cli.plugins import KINDS, make_plugin
from rlnb.machine.packages import editable_line
from rlnb.testing import LauncherConformance, LibraryConformance

REPO = Path(__file__).parents[2]
NAMES = ("x", "my-lib", "a" * plugins.LONGEST)
"""Names that make the lines of a new package as short and as long as possible."""
HOOKS = {"library": "rlnb_libraries", "tasks": "rlnb_tasks", "launcher": "rlnb_launchers"}
MOST_LINES = 150
"""Largest number of lines of a new library."""
OURS = {"rlnb.testing"}
"""Modules of rlnb that a plugin's tests may import, in addition to its public names."""

Invoke = Callable[..., Result]


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Return a function that runs a command in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    runner = CliRunner()
    return lambda *argv: runner.invoke(app.app, [str(argument) for argument in argv])


# -- the package -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a package of every kind and name, as ``<name>/<kind>``."""
    folder = tmp_path_factory.mktemp("packages")
    for name in NAMES:
        for kind in KINDS:
            make_plugin(name, kind, folder / name / kind)
    return folder


def test_new_packages_are_clean_under_short_and_long_names(packages: Path) -> None:
    for command in (["check"], ["format", "--check", "--diff"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--no-cache", str(packages)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_the_names_are_filled_in_and_every_module_is_python(packages: Path, kind: str) -> None:
    folder = packages / "my-lib" / kind
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert {"README.md", "pyproject.toml", *(f"src/rlnb_my_lib/{n}.py" for n in ("__init__", "plugin", "backend"))} < {
        *files
    }
    assert any(name.startswith("tests/test_") for name in files)
    for name in files:
        text = (folder / name).read_text()
        assert text
        assert not any(mark in name + text for mark in ("{{", "{%", ".jinja"))
        if name.endswith(".py"):
            compile(text, name, "exec")


def test_a_new_library_is_short(packages: Path) -> None:
    files = [path for path in (packages / "my-lib" / "library" / "src").rglob("*.*") if path.is_file()]
    assert sum(len(path.read_text().splitlines()) for path in files) <= MOST_LINES


@pytest.mark.parametrize("kind", KINDS)
def test_the_entry_points_lead_to_the_hooks_of_the_kind(packages: Path, kind: str) -> None:
    project = tomllib.loads((packages / "my-lib" / kind / "pyproject.toml").read_text())["project"]
    assert project["name"] == "rlnb-my-lib"
    assert project["entry-points"]["rlnb"] == {"my_lib": "rlnb_my_lib.plugin"}
    assert ("isaaclab.tasks" in project["entry-points"]) == (kind == "tasks")
    code = f"import rlnb_my_lib.plugin as plugin; print(plugin.{HOOKS[kind]}())"
    source = packages / "my-lib" / kind / "src"
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    for word in {
        "library": ("Library(name='my_lib'", "'rlnb_my_lib.backend:MyLibBackend'", "'rlnb_my_lib:agent.yaml'"),
        "tasks": ("Task(id='My-Lib-Cartpole'", "'rlnb_my_lib.backend:success'"),
        "launcher": ("LauncherType(name='my_lib'", "'rlnb_my_lib.backend:MyLibLauncher'"),
    }[kind]:
        assert word in done.stdout
        module, colon, attribute = word.strip("'").partition(":")
        if attribute.endswith(".yaml"):
            assert (source / module / attribute).is_file()
        elif colon:
            text = (source / f"{module.replace('.', '/')}.py").read_text()
            defined = [n.name for n in ast.parse(text).body if isinstance(n, ast.ClassDef | ast.FunctionDef)]
            assert attribute in defined


@pytest.mark.parametrize("kind", KINDS)
def test_new_packages_use_public_names_only(packages: Path, kind: str) -> None:
    faces = (rlnb, rlnb.backend, rlnb.launchers, rlnb.plugin, rlnb.results, rlnb.studies)
    names = {module.__name__: module.__all__ for module in faces}
    private = []
    for path in (packages / "my-lib" / kind).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "rlnb":
                allowed = node.module in OURS or all(one.name in names.get(node.module or "", []) for one in node.names)
                private += [] if allowed else [ast.unparse(node)]
            elif isinstance(node, ast.Import):
                private += [name.name for name in node.names if name.name.startswith("rlnb.")]
            elif isinstance(node, ast.Attribute) and (owner := ast.unparse(node.value)) in names:
                allowed = f"{owner}.{node.attr}" in names or node.attr in (*names[owner], "my_lib")
                private += [] if allowed else [ast.unparse(node)]
    assert not private


@pytest.mark.parametrize("kind", KINDS)
def test_the_tests_of_a_new_package_do_not_load_the_pytest_plugin_of_dash(packages: Path, kind: str) -> None:
    tool = tomllib.loads((packages / "my-lib" / kind / "pyproject.toml").read_text())["tool"]
    assert tool["pytest"]["ini_options"]["addopts"] == "-p no:dash"


def test_the_options_of_the_kit_are_in_the_tests_of_a_new_library_and_in_the_guide(packages: Path) -> None:
    options = {name for cls in LibraryConformance.__mro__ for name in inspect.get_annotations(cls)}
    assert {"unlogged", "optimiser", "iterations", "agent"} < options
    text = (packages / "my-lib" / "library" / "tests" / "test_conformance.py").read_text()
    lines = (REPO / "docs" / "plugins.md").read_text().splitlines()
    table = "\n".join(line for line in lines if line.startswith("| `"))
    for name in options:
        assert re.search(rf"\b{name} = ", text), name
        assert re.search(rf"`{name} = ", table) or name == "library", name
    assert "def inputs(self, observations)" in text
    assert "`def inputs(self, observations)`" in table


# -- the command -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["my-lib", "my_lib"])
def test_it_prints_the_next_commands(invoke: Invoke, name: str) -> None:
    result = invoke("plugins", "new", name, "--kind", "library")
    assert result.exit_code == 0, result.output
    folder = Path("rlnb-my-lib").absolute()
    assert result.stdout.splitlines() == [editable_line(folder, "test"), f"{sys.executable} -m pytest {folder}"]
    assert (folder / "pyproject.toml").is_file()


def test_an_empty_folder_is_filled_and_quoted(invoke: Invoke, tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    result = invoke("plugins", "new", "my-lib", "--kind", "tasks", "--out", folder)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [editable_line(folder, "test"), f"{sys.executable} -m pytest '{folder}'"]


def test_the_list_of_plugins_still_works(invoke: Invoke) -> None:
    assert "rlnb-echo" in invoke("plugins").stdout
    assert invoke("plugins", "nwe").exit_code == 2


@pytest.mark.parametrize(
    ("name", "kind", "texts"),
    [
        ("3lib", "library", ["'3lib' is not a valid plugin name", "rlnb plugins new my-plugin"]),
        ("My Lib", "tasks", ["'My Lib' is not a valid plugin name", "rlnb plugins new my-lib --kind tasks"]),
        ("../up", "tasks", ["'../up' is not a valid plugin name", "rlnb plugins new up"]),
        ("my--lib", "tasks", ["'my--lib' is not a valid plugin name", "rlnb plugins new my-lib"]),
        ("class", "library", ["'class' is not a valid plugin name"]),
        ("rlnb-lib", "library", ["'rlnb-lib' is not a valid plugin name", "rlnb plugins new lib"]),
        (
            "a" * (plugins.LONGEST + 1),
            "library",
            ["is not a valid plugin name", f"at most {plugins.LONGEST} characters"],
        ),
        ("a" * 5000, "library", ["is not a valid plugin name", "cannot be a folder: File name too long"]),
        ("", "library", ["'' is not a valid plugin name"]),
        (
            "echo",
            "library",
            ["The name 'echo' belongs to the package rlnb-echo. Names in use: ", "pip uninstall rlnb-echo"],
        ),
        ("local", "launcher", ["The name 'local' belongs to rlnb."]),
        ("script", "library", ["The name 'script' belongs to rlnb."]),
        ("train", "launcher", ["rlnb.train is rlnb's own", "rlnb plugins new my-train --kind launcher"]),
        ("worker", "launcher", ["rlnb.worker is rlnb's own"]),
        ("my-lib", "libary", ["No kind of plugin named 'libary'. There are: ", "Did you mean 'library'?"]),
    ],
)
def test_bad_arguments_are_reported_and_nothing_is_written(
    invoke: Invoke, tmp_path: Path, name: str, kind: str, texts: list[str]
) -> None:
    result = invoke("plugins", "new", "--kind", kind, "--", name)
    assert result.exit_code == 2
    for text in texts:
        assert text in result.stderr
    assert "Traceback" not in result.output
    assert list(tmp_path.iterdir()) == []


def test_all_problems_are_reported_at_once(invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "copier" else find(name))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").touch()
    result = invoke("plugins", "new", "skrl", "--kind", "what", "--out", "full")
    assert result.exit_code == 2
    for text in (
        "4 problems",
        "The name 'skrl' belongs to",
        "'what'",
        "full exists and is not empty",
        "[plugins]'",
    ):
        assert text in result.stderr
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine.txt"]


def test_an_existing_file_is_not_used_as_the_folder(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "rlnb-my-lib").touch()
    assert "rlnb-my-lib exists and is not a folder" in invoke("plugins", "new", "my-lib", "--kind", "tasks").stderr


def test_a_folder_that_cannot_be_created_is_reported_with_its_parent(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = invoke("plugins", "new", "my-lib", "--kind", "tasks", "--out", "file/below")
    assert result.exit_code == 2
    assert f"file/below cannot be created: {tmp_path / 'file'} is not a writable folder" in result.stderr


# -- tests of new packages -------------------------------------------------------------------------------------------


def uv(*argv: str) -> None:
    """Run uv from the environment's own folder, or else from PATH."""
    path = Path(sys.executable).with_name("uv")
    subprocess.run([str(path) if path.exists() else "uv", *argv], check=True, capture_output=True, text=True)


def run_its_tests(
    kind: str, tmp_path: Path, *options: str, change: Callable[[Path], None] | None = None
) -> subprocess.CompletedProcess[str]:
    """Make a plugin, install it into a separate folder, and run its tests with that folder and this environment.

    Args:
        kind: Kind of the plugin.
        tmp_path: Folder for the plugin.
        *options: Further options for pytest.
        change: ``function(folder)`` that changes the new package.
    """
    before = sorted(dist.name for dist in importlib.metadata.distributions())
    folder = make_plugin("made-here", kind, tmp_path / "package")
    if change is not None:
        change(folder)
    site = tmp_path / "site"
    uv("pip", "install", "--quiet", "--no-deps", "--python", sys.executable, "--target", str(site), str(folder))
    assert sorted(dist.name for dist in importlib.metadata.distributions()) == before
    environment = {**os.environ, "PYTHONPATH": str(site), "RLNB_ROOT": str(tmp_path / "rlnb-runs")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:dash", "-p", "no:cacheprovider", *options, str(folder)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )


def assert_passed(done: subprocess.CompletedProcess[str], count: int) -> None:
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert f" {count} passed" in done.stdout


KIT = sum(name.startswith("test_") for name in dir(LibraryConformance))
LAUNCHER_KIT = sum(name.startswith("test_") for name in dir(LauncherConformance))
needs_isaaclab = [
    pytest.mark.isaaclab,
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "count"),
    [
        pytest.param("launcher", LAUNCHER_KIT + 2),
        pytest.param("tasks", 4, marks=[*needs_isaaclab, pytest.mark.timeout(900)]),
        pytest.param("library", KIT, marks=[*needs_isaaclab, pytest.mark.timeout(1800)]),
    ],
)
def test_a_new_package_passes_its_own_tests(tmp_path: Path, kind: str, count: int) -> None:
    assert_passed(run_its_tests(kind, tmp_path), count)


@pytest.mark.slow
def test_a_launcher_that_reports_every_job_as_alive_fails_its_tests(tmp_path: Path) -> None:
    def break_it(folder: Path) -> None:
        path = folder / "src" / "rlnb_made_here" / "backend.py"
        text = path.read_text()
        assert text.count("return False") == 1
        path.write_text(text.replace("return False", "return True").replace("agent.create_time() ==", "True or"))
        (path,) = (folder / "tests").glob("test_*.py")
        text = path.read_text()
        assert text.count("    cut_short =") == 1
        path.write_text(text.replace("    cut_short =", "    lost_s = 15.0\n    cut_short ="))

    test = "test_a_run_with_killed_agents_is_lost_and_leaves_no_process"
    done = run_its_tests("launcher", tmp_path, "-k", test, change=break_it)
    assert done.returncode == 1
    assert f"::{test}" in done.stdout
    assert "1 failed" in done.stdout


@pytest.mark.slow
def test_the_wheel_has_every_file_of_the_package_and_the_quickstart(tmp_path: Path) -> None:
    uv("build", "--quiet", "--wheel", "--out-dir", str(tmp_path), str(REPO))
    (wheel,) = tmp_path.glob("*.whl")
    members = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("rlnb/")}
    files = {str(path.relative_to(REPO)) for path in (REPO / "rlnb").rglob("*") if path.is_file()}
    expected = {name for name in files if "__pycache__" not in name}
    assert any(name.startswith("rlnb/cli/templates/library/") for name in members)
    assert members == expected | {"rlnb/notebook/01_quickstart.ipynb"}
