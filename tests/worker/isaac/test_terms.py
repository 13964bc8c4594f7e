"""Changes to configs and code that need a new env, and changes for which a manager is rebuilt."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rlnb.worker.isaac import terms

MODULE = """
import dataclasses
import functools
import math
from typing import Any

SCALE = 2.0

def helper(x):
    return SCALE * math.cos(x)

def upright(env):
    return helper(env)

def fell(env):
    return env < 0

def shake(env):
    return env

LIMIT = 1.0

def bound(env, limit=LIMIT):
    return limit

class Base:
    def height(self):
        return 1

class Lifted(Base):
    def __call__(self, env):
        return self.height()

def made(scale):
    def term(env):
        return scale
    return term

TERM = made(2)
PARTIAL = functools.partial(bound, limit=2.0)

@dataclasses.dataclass
class Term:
    func: Any
    weight: float = 1.0
    mode: str = "reset"
    params: dict = dataclasses.field(default_factory=dict)

@dataclasses.dataclass
class Rewards:
    upright: Any = dataclasses.field(default_factory=lambda: Term(upright))
    bound: Any = dataclasses.field(default_factory=lambda: Term(bound))
    lifted: Any = dataclasses.field(default_factory=lambda: Term(Lifted))
    made: Any = dataclasses.field(default_factory=lambda: Term(TERM))
    partial: Any = dataclasses.field(default_factory=lambda: Term(PARTIAL))

@dataclasses.dataclass
class Terminations:
    fell: Any = dataclasses.field(default_factory=lambda: Term(fell))

@dataclasses.dataclass
class Events:
    mass: Any = dataclasses.field(default_factory=lambda: Term(shake, mode="startup"))
    push: Any = dataclasses.field(default_factory=lambda: Term(shake, mode="interval"))

@dataclasses.dataclass
class Commands:
    velocity: Any = dataclasses.field(default_factory=lambda: Term(None))

@dataclasses.dataclass
class Cfg:
    decimation: int = 2
    observe: Any = helper
    rewards: Any = dataclasses.field(default_factory=Rewards)
    terminations: Any = dataclasses.field(default_factory=Terminations)
    events: Any = dataclasses.field(default_factory=Events)
    commands: Any = dataclasses.field(default_factory=Commands)
"""

count = iter(range(1000))


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def module(*edits: tuple[str, str]) -> ModuleType:
        text = MODULE
        for before, after in edits:
            assert before in text
            text = text.replace(before, after)
        name = f"{terms.OWN}edited_{next(count)}"
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        made = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, made)
        spec.loader.exec_module(made)
        return made

    return module


def between(before: Any, after: Any) -> tuple[str, ...] | None:
    return terms.changed(terms.fingerprints(before), terms.fingerprints(after))


def test_a_module_that_was_only_loaded_again_needs_no_change(load: Any) -> None:
    assert between(load().Cfg(), load(("SCALE = 2.0", "\n\nSCALE = 2.0  # the same")).Cfg()) == ()


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (("Term(upright)", "Term(upright, weight=3.0)"), ("rewards",)),
        (("return helper(env)", "return helper(env) - 1"), ("rewards",)),
        (("LIMIT = 1.0", "LIMIT = 2.0"), ("rewards",)),  # a default, bound when the function was made
        (("return 1", "return 2"), ("rewards",)),  # of a base class
        (("TERM = made(2)", "TERM = made(3)"), ("rewards",)),
        (("limit=2.0)", "limit=3.0)"), ("rewards",)),
        (("return env < 0", "return env < 1"), ("terminations", "rewards")),  # rewards may name terminations
        (('mode="interval"', 'mode="reset"'), ("events",)),
        (("Term(None)", "Term(None, weight=2.0)"), ("commands",)),
    ],
)
def test_a_changed_term_or_its_function_is_swapped(load: Any, edit: tuple[str, str], expected: tuple[str, ...]) -> None:
    assert between(load().Cfg(), load(edit).Cfg()) == expected


@pytest.mark.parametrize(
    "edit",
    [
        ("decimation: int = 2", "decimation: int = 4"),
        ("SCALE = 2.0", "SCALE = 3.0"),  # an observation uses it too
        ("return SCALE * math.cos(x)", "return SCALE * math.sin(x)"),
        ('Term(shake, mode="startup")', 'Term(shake, mode="startup", weight=2.0)'),  # the event has already acted
        ('Term(shake, mode="interval")', 'Term(Lifted, mode="interval")'),  # a class captures the env when it is built
        ("    velocity: Any", "    pose: Any"),  # observations may refer to a command by name
    ],
)
def test_any_other_change_needs_a_new_env(load: Any, edit: tuple[str, str]) -> None:
    assert between(load().Cfg(), load(edit).Cfg()) is None


def test_a_value_that_only_a_term_uses_is_swapped_with_it(load: Any) -> None:
    alone = ("observe: Any = helper", "observe: Any = fell")
    assert between(load(alone).Cfg(), load(alone, ("SCALE = 2.0", "SCALE = 3.0")).Cfg()) == ("rewards",)


def test_an_override_counts_as_an_edit(load: Any) -> None:
    module = load()
    heavier, slower = module.Cfg(), module.Cfg()
    heavier.rewards.upright.weight = 5.0
    slower.decimation = 8
    assert between(module.Cfg(), heavier) == ("rewards",)
    assert between(module.Cfg(), slower) is None


def test_with_a_curriculum_every_edit_needs_a_new_env(load: Any) -> None:
    """A curriculum keeps references to the configs of the terms that it changes."""
    module = load()
    before, after = module.Cfg(), module.Cfg()
    for cfg in (before, after):
        cfg.curriculum = module.Terminations()
    assert between(before, after) == ()
    after.rewards.upright.weight = 5.0
    assert between(before, after) is None


def test_a_config_without_terms_needs_a_new_env_for_every_change() -> None:
    @dataclasses.dataclass
    class Direct:
        decimation: int = 2

    assert between(Direct(), Direct()) == ()
    assert between(Direct(), Direct(decimation=3)) is None
