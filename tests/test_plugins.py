"""Finding plugins: duplicates, broken plugins, and names that do not exist."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import rlnb
from rlnb import plugins

TWIN = "twin"


@pytest.fixture
def twin() -> Iterator[type]:
    """Register a plugin that provides the same library and task as the echo plugin."""

    class Twin:
        @staticmethod
        @rlnb.hookimpl
        def rlnb_libraries() -> list[rlnb.Library]:
            return [rlnb.Library(name="echo", backend="twin:Echo")]

        @staticmethod
        @rlnb.hookimpl
        def rlnb_tasks() -> list[rlnb.Task]:
            return [rlnb.Task(id="Echo")]

    rlnb.register(Twin, TWIN)
    yield Twin
    plugins.manager().unregister(name=TWIN)


def install(site: Path, name: str, code: str, entry: str = "") -> dict[str, str]:
    """Install a plugin into a site folder, and return environment variables with which a process finds it."""
    info = site / f"rlnb_{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: rlnb-{name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[rlnb]\n{entry or name} = rlnb_{name}\n")
    (site / f"rlnb_{name}.py").write_text(code)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])}


def test_a_library_that_two_plugins_provide_is_an_error_that_names_both(twin: type) -> None:
    with pytest.raises(rlnb.RlnbError, match=r"library named 'echo': \w+ and \w+") as caught:
        plugins.libraries()
    assert TWIN in str(caught.value)
    assert str(caught.value).count("echo") == 2


def test_a_task_that_two_plugins_provide_is_an_error_that_names_both(twin: type) -> None:
    with pytest.raises(rlnb.RlnbError, match="task named 'Echo'") as caught:
        plugins.tasks()
    assert TWIN in str(caught.value)


@pytest.mark.parametrize("code", ["import no_such_module", "def rlnb_check(:", "1 / 0"])
def test_a_broken_plugin_warns_with_its_traceback_and_the_others_survive(tmp_path: Path, code: str) -> None:
    env = install(tmp_path, "broken", code)
    script = "import rlnb; from rlnb import plugins; print(*plugins.libraries())"
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    assert "echo" in done.stdout.split()
    assert "The rlnb plugin 'broken' did not load" in done.stderr
    assert "Traceback (most recent call last)" in done.stderr
    assert "rlnb_broken.py" in done.stderr


def test_two_packages_with_the_same_plugin_name_are_reported(tmp_path: Path) -> None:
    install(tmp_path, "one", "", entry="same")
    env = install(tmp_path, "two", "1 / 0", entry="same")
    script = "import rlnb; from rlnb import plugins; print(plugins.manager().get_plugin('same').__name__)"
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "rlnb_one"
    assert "named 'same': rlnb_one and rlnb_two. The second is left out; uninstall one." in done.stderr


def test_an_installed_plugin_is_found_by_its_entry_point(tmp_path: Path) -> None:
    code = (
        "import rlnb\n\n\n@rlnb.hookimpl\ndef rlnb_libraries():\n"
        "    return [rlnb.Library(name='fine', backend='rlnb_fine:Backend')]\n"
    )
    env = install(tmp_path, "fine", code)
    script = "from rlnb import plugins; print(plugins.library('fine').backend)"
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "rlnb_fine:Backend"


def test_the_error_for_an_unknown_library_lists_the_installed_ones() -> None:
    with pytest.raises(rlnb.NotFoundError) as caught:
        plugins.library("ecko")
    assert str(caught.value).startswith("No RL library named 'ecko'. Installed: echo")
    assert str(caught.value).endswith("Did you mean 'echo'?")


def test_the_error_for_an_unknown_launcher_lists_the_installed_ones() -> None:
    with pytest.raises(rlnb.NotFoundError) as caught:
        plugins.launcher("locale")
    assert str(caught.value).startswith("No launcher named 'locale'. Installed: ")
    assert str(caught.value).endswith("Did you mean 'local'?")


def test_without_a_close_name_there_is_no_suggestion() -> None:
    with pytest.raises(rlnb.NotFoundError) as caught:
        plugins.library("zzzzzz")
    assert "Did you mean" not in str(caught.value)


@pytest.mark.parametrize("reference", ["no_such_package:Thing", "json:no_such_function", "json"])
def test_the_error_for_a_broken_reference_names_the_reference_and_the_interpreter(reference: str) -> None:
    with pytest.raises(rlnb.RlnbError) as caught:
        plugins.load(reference)
    assert repr(reference) in str(caught.value)
    assert sys.executable in str(caught.value)
    assert caught.value.__cause__ is not None


def test_a_reference_reaches_into_classes() -> None:
    assert plugins.load("pathlib:Path.cwd")() == Path.cwd()


def test_a_plugin_launcher_with_the_name_of_an_rlnb_launcher_is_an_error() -> None:
    class Usurper:
        @staticmethod
        @rlnb.hookimpl
        def rlnb_launchers() -> list[rlnb.LauncherType]:
            return [rlnb.LauncherType(name="local", factory="elsewhere:Launcher")]

    rlnb.register(Usurper, "usurper")
    try:
        with pytest.raises(rlnb.RlnbError, match="local"):
            plugins.launchers()
    finally:
        plugins.manager().unregister(name="usurper")


class Strict:
    """A launcher whose constructor fails for a string."""

    def __init__(self, *, nodes: int = 1) -> None:
        self.nodes = nodes + 0


@pytest.fixture
def strict() -> Iterator[None]:
    class Bringing:
        @staticmethod
        @rlnb.hookimpl
        def rlnb_launchers() -> list[rlnb.LauncherType]:
            return [rlnb.LauncherType(name="strict", factory=f"{__name__}:Strict")]

    rlnb.register(Bringing, "strict")
    yield
    plugins.manager().unregister(name="strict")


def test_a_launcher_is_made_from_settings_and_from_a_manifest() -> None:
    launcher = plugins.make_launcher("local", {"max_running": 3})
    assert launcher.settings == {"max_running": 3, "walltime_s": None}
    manifest = rlnb.Manifest(
        run_id="r",
        created="2026-01-01T00:00:00+00:00",
        task=rlnb.Task(id="T"),
        library="echo",
        launcher_settings=launcher.settings,
    )
    assert plugins.launcher_of(manifest).settings == launcher.settings


def test_every_unknown_setting_of_a_launcher_is_a_problem() -> None:
    with pytest.raises(rlnb.CheckError) as caught:
        plugins.make_launcher("injected", {"node": 2, "gpus": 1})
    assert [problem.what for problem in caught.value.problems] == [
        "'node' is not a setting of injected. Did you mean 'nodes'?",
        "'gpus' is not a setting of injected.",
    ]
    with pytest.raises(rlnb.CheckError, match=r"'locale' is not a launcher\. Did you mean 'local'"):
        plugins.make_launcher("locale", {})


def test_an_exception_of_a_launcher_becomes_a_problem_unless_it_is_an_rlnb_error(strict: None) -> None:
    with pytest.raises(rlnb.CheckError, match=r"strict\(nodes='two'\) could not be made: TypeError: ") as caught:
        plugins.make_launcher("strict", {"nodes": "two"})
    assert caught.value.problems[0].fix == "Use the settings of help(rlnb.strict)."
    with pytest.raises(rlnb.RlnbError, match=r"^max_running=0 is not a positive whole number"):
        plugins.make_launcher("local", {"max_running": 0})


def test_a_script_is_a_library_without_a_plugin() -> None:
    assert plugins.library("script") is plugins.SCRIPT
    assert "script" not in plugins.libraries()
