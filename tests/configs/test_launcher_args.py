"""The arguments of Isaac Lab's launcher that a task may pass on."""

from __future__ import annotations

import importlib.util
import inspect
import re
from typing import Any

import pytest

from rlnb.configs import launcher_args
from rlnb.configs.launcher_args import ARGUMENTS, REFUSED

OWN = {"kit_visualizer", "device_explicit", "visualizer_intent"}
"""Arguments that Isaac Lab passes to its own functions."""


def texts(values: object) -> list[str]:
    return [f"{problem.what} {problem.fix}" for problem in launcher_args.check(values)]


@pytest.mark.parametrize("name", ARGUMENTS)
def test_the_example_of_each_argument_is_valid(name: str) -> None:
    assert launcher_args.check({name: ARGUMENTS[name].example}) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kit_args", ["--enable", "my.extension"]),
        ("experience", ""),
        ("experience", 3),
        ("livestream", 3),
        ("livestream", True),
        ("livestream", "2"),
        ("require_kit", 1),
        ("limit_cpu_threads", 0),
        ("width", 1280.0),
        ("max_visible_envs", -1),
        ("verbose", "yes"),
    ],
)
def test_a_value_of_another_type_or_range_is_refused_with_an_example(name: str, value: Any) -> None:
    (text,) = texts({name: value})
    assert f"launcher argument {name}={value!r} is not {ARGUMENTS[name].takes}." in text
    assert f'launcher_args={{"{name}": ' in text


def test_an_unknown_name_gets_the_closest_one_and_the_list() -> None:
    (text,) = texts({"kit_arg": ""})
    assert text.startswith("Isaac Lab's launcher has no argument 'kit_arg'. Did you mean 'kit_args'?")
    assert "Use one of: kit_args, experience, livestream" in text


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("device", "rlnb.train(device=...)"),
        ("distributed", "rlnb.train(nproc_per_node=...)"),
        ("physics", "rlnb.task(physics=...)"),
        ("deterministic", "rlnb.train(deterministic=True)"),
        ("visualizer", "rlnb.view(task)"),
        ("video", "run.play()"),
    ],
)
def test_an_argument_that_rlnb_sets_names_the_way_of_rlnb(name: str, way: str) -> None:
    (text,) = texts({name: "cpu"})
    assert f"launcher argument {name!r} is not an argument of a task." in text
    assert way in text


def test_all_problems_are_reported_at_once() -> None:
    assert len(texts({"kit_arg": "", "device": "cpu", "livestream": 5, "verbose": True})) == 3
    assert texts(["kit_args"]) == [
        'launcher_args=[\'kit_args\'] is not a mapping. launcher_args={"kit_args": "--enable my.extension"}'
    ]


@pytest.mark.isaaclab
@pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here")
def test_every_argument_of_the_installed_isaac_lab_is_passed_on_or_refused() -> None:
    import argparse

    from isaaclab.app import sim_launcher
    from isaaclab_physx.app import kit_launcher

    parser = argparse.ArgumentParser(add_help=False)
    kit_launcher.KitLauncher.add_launcher_args(parser)
    source = inspect.getsource(kit_launcher) + inspect.getsource(sim_launcher)
    names = {
        *(action.dest for action in parser._actions),
        *kit_launcher._SIM_APP_CONFIG_KEYS,
        *re.findall(r'args\.get\("(\w+)"', source),
    }
    assert names - OWN == {*ARGUMENTS, *REFUSED}
    for action in parser._actions:
        argument = ARGUMENTS.get(action.dest)
        if argument is not None:
            kind = action.type if isinstance(action.type, type) else bool
            assert type(argument.example) is kind, action.dest
            assert all(argument.valid(choice) for choice in action.choices or ())
