"""Look-ups by name: what is there, and the error for a name that does not exist."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import rlnb
from rlnb import plugins
from rlnb.hooks.registry import manager


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
    manager().unregister(name="strict")


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
