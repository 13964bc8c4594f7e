"""The plugins by which the env of an evaluation may differ from that of its training."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.hooks.registry import registry
from rlnb.tasks import source
from rlnb.worker.jobs.context import open_job, plugin_differences

WAIT_S = 60.0


@pytest.fixture
def job(root: Path) -> Path:
    """Folder of the training of an echo run, which has ended."""
    run = rlnb.train("Echo", library="echo", max_iterations=1).wait(WAIT_S)
    return run.jobs[0].folder.path


@pytest.fixture
def here() -> Iterator[None]:
    """A plugin of this process that changes the env config, in version 2.0."""
    hook = staticmethod(rlnb.hookimpl(lambda env_cfg: None))
    rlnb.register(type("Plugin", (), {"rlnb_configure_env": hook}), "here")
    registry().plugins["here"].version = "2.0"
    yield
    registry().manager.unregister(name="here")


def record(job: Path, plugins: Any) -> None:
    """Write the plugins of the training into its record, as another process would have."""
    path = job / "started.json"
    values = json.loads(path.read_text())
    path.unlink()
    path.write_text(json.dumps({**values, "plugins": plugins}))


def test_a_plugin_is_named_if_it_is_missing_new_or_of_another_version(job: Path, here: None) -> None:
    expected: list[tuple[Any, list[str]]] = [
        ({"here": "2.0"}, []),
        (None, []),
        (
            {"gone": "1.0", "here": "2.0"},
            [
                "The plugin 'gone' 1.0 could change the env of the training. It is not installed here, or does not "
                "work, so the env may differ."
            ],
        ),
        (
            {"gone": "", "here": ""},
            [
                "The plugin 'gone' could change the env of the training. It is not installed here, or does not work, "
                "so the env may differ.",
                "The plugin 'here', which may change the env, had version unknown in the training, and 2.0 here.",
            ],
        ),
        ({}, ["The plugin 'here' 2.0 may change the env here, and was not part of the training."]),
        (
            {"here": "1.0"},
            ["The plugin 'here', which may change the env, had version 1.0 in the training, and 2.0 here."],
        ),
    ]
    for plugins, texts in expected:
        record(job, plugins)
        assert list(plugin_differences(open_job(job))) == texts


def test_a_training_without_a_simulator_records_no_plugin(job: Path) -> None:
    assert json.loads((job / "started.json").read_text())["plugins"] == {}
    assert plugin_differences(open_job(job)) == ()


def test_a_training_that_has_not_started_has_no_differences(job: Path, here: None) -> None:
    (job / "started.json").unlink()
    assert plugin_differences(open_job(job)) == ()


def test_a_copy_of_the_source_that_was_edited_is_a_difference(root: Path) -> None:
    source.write_module(rlnb.options.folders, "Echo", "x = 1\n", "mine.ipynb")
    run = rlnb.train("Echo", library="echo", max_iterations=1).wait(WAIT_S)
    opened = open_job(run.jobs[0].folder.path)
    assert plugin_differences(opened) == ()
    assert opened.module is not None
    opened.module.write_text("x = 2\n")
    (text,) = plugin_differences(opened)
    assert text.startswith(f"{opened.module} was edited after the training: its sha256 is ")
