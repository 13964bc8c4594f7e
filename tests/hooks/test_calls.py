"""Every hook of a plugin, with every way in which it can fail: the plugin is named, and the rest works."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import rlnb
from rlnb.cameras.grid import colorize
from rlnb.cli import app
from rlnb.curves import panels
from rlnb.hooks import hookspecs, plugins, registry
from rlnb.hooks.plugin import HookError
from rlnb.hooks.registry import REGISTRATION, manager
from rlnb.plugin import Command, Manifest

Install = Callable[..., None]
WAIT_S = 60.0
MANIFEST = Manifest(run_id="r", created="", task=rlnb.Task(id="Echo"), library="echo")
NAME = r"plugin 'broken' \(rlnb-broken 1\.0\)"
FAULTS = {
    "raises": ("raise ValueError('of all things')", "raised ValueError: of all things"),
    "wrong type": ("return 3", "returned int, which is not"),
    "exits": ("raise SystemExit(3)", r"called sys.exit\(3\)"),
}


@pytest.fixture(params=FAULTS)
def fault(request: pytest.FixtureRequest) -> tuple[str, str]:
    """The body of a hook that fails, and the pattern of its error."""
    return FAULTS[request.param]


@pytest.fixture
def broken(install: Install, fault: tuple[str, str]) -> Callable[[str], str]:
    """A function that installs a plugin with one hook, which fails, and returns the pattern of its error."""

    def install_with(hook: str) -> str:
        arguments = ", ".join(getattr(hookspecs, hook).__code__.co_varnames)
        install("broken", f"import rlnb\n\n\n@rlnb.plugin.hookimpl\ndef {hook}({arguments}):\n    {fault[0]}\n")
        return rf"{hook}\(\) of the {NAME} {fault[1]}"

    return install_with


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[rlnb.Run]:
    """A training that has ended, for tests that do not change it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rlnb.options, "root", tmp_path_factory.mktemp("of-module"))
        patch.setenv("RLNB_QUEUE", str(tmp_path_factory.mktemp("queue")))
        yield rlnb.train("Echo", library="echo", max_iterations=2).wait(WAIT_S)


Broken = Callable[[str], str]


@pytest.mark.parametrize("hook", REGISTRATION)
def test_a_plugin_that_registers_nothing_valid_is_left_out_of_all_hooks(
    install: Install, fault: tuple[str, str], hook: str
) -> None:
    panels_hook = "@rlnb.plugin.hookimpl\ndef rlnb_panels(run):\n    return []\n"
    install("broken", f"import rlnb\n\n\n@rlnb.plugin.hookimpl\ndef {hook}():\n    {fault[0]}\n\n\n{panels_hook}")
    with pytest.warns(UserWarning, match=rf"^The {NAME} is left out: {hook}\(\) {fault[1]}"):
        assert list(registry.call("rlnb_panels", run=None)) == []
    assert not manager().has_plugin("broken")
    assert {"echo", "rsl_rl"} <= {*plugins.libraries()}


def test_a_check_that_fails_is_a_problem_and_nothing_is_written(root: Path, broken: Broken) -> None:
    error = broken("rlnb_check")
    with pytest.raises(rlnb.CheckError, match=error) as caught:
        rlnb.train("Echo", library="echo", agent={"no_such": 1}, tags="abc")
    fixes = [problem.fix for problem in caught.value.problems]
    assert "Update or uninstall rlnb-broken." in fixes
    assert len(fixes) > 1, "the other problems are reported too"
    assert not root.exists()


def test_a_command_that_cannot_be_wrapped_refuses_the_run_and_leaves_nothing(root: Path, broken: Broken) -> None:
    error = broken("rlnb_wrap_command")
    with pytest.raises(HookError, match=rf"^{error}.* Update or uninstall rlnb-broken\.$"):
        rlnb.train("Echo", library="echo", max_iterations=1)
    assert [path for path in root.rglob("*") if path.is_file() or path.parent.name == "runs"] == []
    assert len(rlnb.runs()) == 0


def files_of(run: rlnb.Run) -> list[Path]:
    """Return the run's files, but those that its agent still removes or replaces as it ends."""
    return sorted(path for path in run.path.rglob("*") if not path.name.startswith("."))


def test_a_job_whose_command_cannot_be_wrapped_leaves_the_run_as_it_was(run: rlnb.Run, broken: Broken) -> None:
    error, before = broken("rlnb_wrap_command"), files_of(run)
    for job in (run.evaluate, lambda: run.resume(max_iterations=4)):
        with pytest.raises(HookError, match=f"^{error}"):
            job()
    assert files_of(run) == before


def test_an_env_that_cannot_be_configured_is_an_error_that_names_the_plugin(broken: Broken) -> None:
    error = broken("rlnb_configure_env")
    with pytest.raises(HookError, match=f"^{error}"):
        registry.require("rlnb_configure_env", env_cfg=object(), manifest=None)


@pytest.mark.parametrize("hook", ["rlnb_run_started", "rlnb_run_finished"])
def test_a_hook_that_follows_a_training_does_not_end_it(
    broken: Broken, hook: str, caplog: pytest.LogCaptureFixture
) -> None:
    error = broken(hook)
    with caplog.at_level(logging.WARNING):
        assert registry.observe(hook, run_dir=Path(), manifest=MANIFEST, result=None) is None
    (message,) = caplog.messages
    assert re.match(error, message)


def test_pictures_have_the_usual_colours_if_a_plugin_fails_which_is_said_once(
    broken: Broken, caplog: pytest.LogCaptureFixture
) -> None:
    broken("rlnb_colorize")
    registry._told.clear()
    frames = np.zeros((2, 4, 5, 3), np.float32)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert colorize(frames, "rgb").shape == frames.shape
    assert len(caplog.messages) == 1


def test_the_error_of_a_plugins_figures_takes_their_place(run: rlnb.Run, broken: Broken) -> None:
    error = broken("rlnb_panels")
    (bundle,) = panels.bundles([run])
    assert re.match(error, str(bundle["text/plain"]))


def test_a_hook_is_called_of_the_last_registered_plugin_first(install: Install) -> None:
    for name, value in (("aa", "['a']"), ("bb", "['b']")):
        code = f"@rlnb.plugin.hookimpl\ndef rlnb_wrap_command():\n    return rlnb.plugin.Command(argv={value})\n"
        install(name, f"import rlnb\n\n\n{code}")
    arguments = {"command": Command(argv=("c",)), "manifest": MANIFEST}
    answers = registry.call("rlnb_wrap_command", **arguments)
    assert [answer.value.argv for answer in answers if answer.value] == [["b"], ["a"]]
    assert registry.require("rlnb_wrap_command", **arguments).argv == ["b"]
    assert registry.versions_of("rlnb_wrap_command").keys() >= {"aa", "bb"}
    assert registry.versions_of("rlnb_wrap_command")["aa"] == "1.0"


ALL = len(FAULTS) * len(REGISTRATION) + 1


@pytest.mark.parametrize(
    ("argv", "count"),
    [
        (("runs", "--json"), 0),  # there are no runs, so no plugin is needed
        (("libraries", "--json"), ALL),
        (("launchers", "--json"), ALL),
        (("plugins",), ALL),
        (("doctor", "--json"), ALL),
    ],
)
def test_every_command_works_without_the_plugins_that_fail(
    tmp_path: Path, install: Install, argv: tuple[str, ...], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, (body, _) in enumerate(FAULTS.values()):
        for hook in REGISTRATION:
            code = f"import rlnb\n\nprint('1')\n\n\n@rlnb.plugin.hookimpl\ndef {hook}():\n    print('2')\n    {body}\n"
            install(f"{hook}_{number}", code)
    install("leaving", "import sys\nsys.exit(3)\n")
    monkeypatch.setattr(rlnb.options, "root", tmp_path)
    result = CliRunner().invoke(app.app, list(argv))
    assert result.exit_code == (1 if argv[0] == "doctor" else 0), result.output
    if "--json" in argv:
        json.loads(result.stdout)  # whatever the plugins print
    place = result.stdout if argv[0] in ("plugins", "doctor") else result.stderr
    assert place.count("left out: ") == count
