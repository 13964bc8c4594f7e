"""Calls and commands with values that Hypothesis makes up: a result, an RlnbError with its fix, or a usage error.

Few in ``make test``. ``RLNB_ODD=all`` makes 5,000 calls and 500 commands.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

pytest.importorskip("hypothesis")
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_odd_calls import ODD, TRAIN, VERBS, outcome
from typer.testing import CliRunner

import rlnb
from rlnb.cli import app

WAIT_S = 60.0
LIMIT_S = 5.0
ALL = os.environ.get("RLNB_ODD") == "all"
CALLS, COMMANDS = (5000, 500) if ALL else (150, 40)
FUZZ = settings(
    database=None,
    deadline=None,
    derandomize=not ALL,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=30),
    st.binary(max_size=9),
    st.complex_numbers(),
    st.dates(),
    st.sampled_from(ODD),
)
VALUES = st.recursive(
    PLAIN, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=9), inner, max_size=3))
)
WORDS = st.one_of(
    st.text(max_size=20),
    st.integers().map(str),
    st.floats().map(str),
    st.sampled_from(
        ["a=b", "[/x]", "--", "-5", "../..", "nan", "x" * 9000, "{run}", "echo", "local", "slurm(nodes=0)"]
    ),
)
OPTIONS: dict[str, tuple[str, ...]] = {
    "train": (
        *("--max-iterations", "--seed", "--num-envs", "--device", "--init-from", "--keep", "--nproc-per-node"),
        *("--launcher", "--launcher-set", "--set", "--agent", "--agent-config", "--presets", "--physics", "--tag"),
    ),
    "resume": ("--max-iterations", "--checkpoint"),
    "show": (),
    "logs": ("-n",),
    "cancel": (),
    "evaluate": ("--episodes", "--num-envs", "--seed", "--checkpoint"),
    "export": ("--format", "--checkpoint"),
    "plugins new": ("--kind",),
    "runs prune": ("--path", "--task", "--library", "--state", "--tag", "--keep"),
}
"""Commands that start no simulator, and their options."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[rlnb.Run]:
    """A completed run of the echo library."""
    patch = pytest.MonkeyPatch()
    folder = tmp_path_factory.mktemp("fuzz")
    patch.setenv("RLNB_QUEUE", str(folder / "queue"))
    patch.setenv("RLNB_ROOT", str(folder / "root"))
    patch.setattr(rlnb.options, "root", folder / "root")
    patch.setattr(rlnb.options, "warm", False)
    patch.chdir(folder)
    yield rlnb.train("Echo", library="echo", max_iterations=3).wait(WAIT_S)
    for other in rlnb.runs():
        other.cancel()
    patch.undo()


@settings(FUZZ, max_examples=CALLS // 2)
@given(name=st.sampled_from(TRAIN), value=VALUES)
def test_a_check_of_a_training_ends_with_problems_or_none(run: rlnb.Run, name: str, value: Any) -> None:
    if name == "library" and not value:  # the library's choice would need a simulator
        return
    before = os.listdir(run.path.parent)
    problems = outcome(lambda: rlnb.check(None if name == "script" else "Echo", **{"library": "echo", name: value}))
    assert isinstance(problems, list | rlnb.RlnbError)
    assert os.listdir(run.path.parent) == before


@settings(FUZZ, max_examples=CALLS // 2)
@given(verb=st.sampled_from(VERBS), value=VALUES)
def test_a_verb_ends_with_a_result_or_with_an_error_of_rlnb(run: rlnb.Run, verb: Any, value: Any) -> None:
    outcome(lambda: verb(run, value))


@settings(FUZZ, max_examples=COMMANDS)
@given(command=st.sampled_from(sorted(OPTIONS)), words=st.data())
def test_a_command_ends_with_a_result_or_with_a_sentence(run: rlnb.Run, command: str, words: Any) -> None:
    arguments = command.split()
    for option in words.draw(
        st.lists(st.sampled_from(OPTIONS[command]), max_size=3) if OPTIONS[command] else st.just([])
    ):
        arguments += [option, words.draw(WORDS)]
    subject = words.draw(st.one_of(st.just(run.id), WORDS))
    arguments += ["Echo", "--library=echo", "--detach"] if command == "train" else [subject]
    begin_s = time.monotonic()
    done = CliRunner().invoke(app.app, arguments)
    assert time.monotonic() - begin_s < LIMIT_S + (WAIT_S if command in ("evaluate", "resume", "export") else 0.0)
    assert done.exit_code in (0, 1, 2), arguments
    assert done.exception is None or isinstance(done.exception, SystemExit), (arguments, done.exception)
    assert done.exit_code == 0 or done.output.strip(), arguments
    assert "Traceback" not in done.output


def test_the_commands_are_those_of_rlnb() -> None:
    for command, options in OPTIONS.items():
        done = CliRunner().invoke(app.app, [*command.split(), "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
        assert done.exit_code == 0
        assert [option for option in options if option not in done.output] == []
