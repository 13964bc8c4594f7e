"""One hook of one plugin: what it raises, and what it returns."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from pluggy import HookImpl

import rlnb
from rlnb.errors import InterruptedRequest
from rlnb.hooks.answers import LISTS, Answer, answer_of
from rlnb.hooks.plugin import Plugin
from rlnb.launchers import LauncherType, QueueTable, Resources
from rlnb.plugin import AssetPack, Command, Input, Library, Manifest, Problem

PLUGIN = Plugin(name="x", distribution="rlnb-x", version="1.0")
FRAMES = np.zeros((2, 4, 5, 1), np.float32)
FINE = Library(name="a", backend="b:C")


def answer(hook: str, function: Callable[..., Any], **arguments: Any) -> Answer:
    flags = {"wrapper": False, "hookwrapper": False, "optionalhook": False, "tryfirst": False, "trylast": False}
    options: Any = {**flags, "specname": None}
    implementation = HookImpl(None, "x", function, options)
    return answer_of(hook, implementation, PLUGIN, **arguments)


def test_a_list_may_be_any_iterable_and_becomes_a_tuple() -> None:
    def generator() -> Iterator[Library]:
        yield FINE

    for function in (lambda: [FINE], lambda: (FINE,), generator):
        assert answer("rlnb_libraries", function).value == (FINE,)
    assert answer("rlnb_panels", lambda: None).value == ()


def test_a_function_gets_the_arguments_that_it_takes() -> None:
    problems = [Problem(what="seed 7")]
    taken = answer("rlnb_check", lambda seed: problems if seed == 7 else [], seed=7, manifest=None)
    assert taken.value == tuple(problems)
    assert answer("rlnb_check", list, seed=7).value == ()


def test_the_public_name_of_each_type_is_that_of_the_type() -> None:
    for kind, name in LISTS.values():
        owner, _, attribute = name.rpartition(".")
        assert issubclass(getattr(importlib.import_module(owner), attribute), kind)


@pytest.mark.parametrize(
    ("hook", "value", "text"),
    [
        *((hook, 3, f"returned int, which is not a list of {name}") for hook, (_, name) in LISTS.items()),
        ("rlnb_libraries", None, "returned None, which is not a list of rlnb.plugin.Library"),
        ("rlnb_check", None, "returned None, which is not a list of rlnb.plugin.Problem"),
        ("rlnb_check", "no", "returned str, which is not a list of rlnb.plugin.Problem"),
        ("rlnb_check", ["no"], "returned a list with a str, which is not a list of rlnb.plugin.Problem"),
        ("rlnb_libraries", FINE, "returned Library, which is not a list of rlnb.plugin.Library"),
        (
            "rlnb_libraries",
            [Library(name="a", backend="b")],
            "returned a Library in which backend='b' is not 'm",
        ),
        (
            "rlnb_libraries",
            [Library(name="", backend="b:C")],
            "returned a Library in which name='' is empty",
        ),
        (
            "rlnb_libraries",
            [Library(name="a", backend="b:C", metrics=3, checkpoint_pattern="(")],  # type: ignore[arg-type]
            "returned a Library in which metrics=3 is not Mapping[str, str] and checkpoint_pattern='(': missing )",
        ),
        (
            "rlnb_libraries",
            [Library(name="a", backend="b:C", metric_names={"reward": "mine", "a/b": "a tag", "kl": "in nats"})],
            "returned a Library in which metric_names has 'reward', which is a name of rlnb's own and metric_names has "
            "'a/b', which is not a name of letters, digits and underscores",
        ),
        (
            "rlnb_libraries",
            [Library(name="a", backend="b:C", simulator=False, exports=("onnx",))],
            "returned a Library in which exports=('onnx',) needs a simulator, since only policies of Isaac Lab's envs",
        ),
        (
            "rlnb_libraries",
            [Library(name="a", backend="b:C", roles="m:f")],
            "returned a Library in which roles='m:f' needs distributed=True",
        ),
        (
            "rlnb_libraries",
            [Library(name="a", backend="b:C", stock_checkpoints=("[",))],
            "returned a Library in which stock_checkpoints='[': unterminated character set",
        ),
        (
            "rlnb_libraries",
            [Library(name="a", backend="b:C", checkpoint_pattern="x")],
            "returned a Library in which checkpoint_pattern='x' has no group for the iteration",
        ),
        (
            "rlnb_libraries",
            [Library(name="a", backend="b:C", checkpoint_iteration=lambda number: number - 1)],  # type: ignore[arg-type]
            "returned a Library in which checkpoint_iteration(1, 1) raised TypeError: ",
        ),
        (
            "rlnb_libraries",
            [Library(name="a", backend="b:C", checkpoint_iteration=lambda number, horizon: f"{number}")],  # type: ignore[arg-type]
            "returned a Library in which checkpoint_iteration(1, 1) is '1', not a number",
        ),
        (
            "rlnb_libraries",
            [Library(name="a", backend="b:C", checkpoint_iteration=lambda number, horizon: horizon / number)],
            "returned a Library in which checkpoint_iteration(0, 1) raised ZeroDivisionError: ",
        ),
        (
            "rlnb_libraries",
            [Library(name="a", backend="b:C", checkpoint_iteration="m:f")],  # type: ignore[arg-type]
            "returned a Library in which checkpoint_iteration='m:f' is not Callable[[int, int], float]",
        ),
        (
            "rlnb_libraries",
            [Library(name="a", backend="b:C", checkpoint_companions=("{stem}.npz", "{stem}.buffer.pkl"))],
            "returned a Library in which checkpoint_companions has '{stem}.buffer.pkl', which is not the name of a "
            ".npz or .safetensors file with {stem}",
        ),
        (
            "rlnb_libraries",
            [Library(name="a", backend="b:C", checkpoint_is_folder=True)],
            "returned a Library in which checkpoint_glob='**/*.pt' names folders at any depth",
        ),
        (
            "rlnb_libraries",
            [Library(name="a", backend="b:C", checkpoint_glob="*.npz", checkpoint_companions=("{stem}.npz",))],
            "returned a Library in which checkpoint_companions has '{stem}.npz', which also names the checkpoints of "
            "checkpoint_glob='*.npz'",
        ),
        (
            "rlnb_libraries",
            [Library(name="a", backend="b:C", inputs={"t": Input(kind="polcy")})],  # type: ignore[arg-type]
            "returned a Library in which kind='polcy' is not Literal['policy', 'rollouts', 'file', 'folder'] in the "
            "input 't'",
        ),
        *(
            (
                "rlnb_libraries",
                [Library(name="a", backend="b:C", checkpoint_glob=glob)],
                f"returned a Library in which checkpoint_glob={glob!r} is not a pattern of paths below the logs",
            )
            for glob in ("/etc/*", "../*.pt", "a/../../*.pt", "", "a**/*.pt", "*.pt\0")
        ),
        *(
            (
                "rlnb_libraries",
                [Library(name="a", backend="b:C", requires=(text,))],
                f"returned a Library in which requires has {text!r}, which is not a requirement of pip",
            )
            for text in (">>>x", "", "-r /etc/passwd", "a b")
        ),
        *(
            (
                "rlnb_libraries",
                [Library(name=name, backend="b:C")],
                f"returned a Library in which name={name!r} is not",
            )
            for name in ("../../x", "-x", "a b", "a/b", ".", "x\n")
        ),
        (
            "rlnb_libraries",
            [Library(name="a", backend="b:C", hidden=("(",))],
            "returned a Library in which hidden has '(': missing )",
        ),
        (
            "rlnb_launchers",
            [LauncherType(name="../x", factory="b:c")],
            "returned a LauncherType in which name='../x' is not a name of letters",
        ),
        (
            "rlnb_launchers",
            [LauncherType(name="x", factory="b:c", tables=(QueueTable(title="jobs", argv=()),))],
            "returned a LauncherType in which the table 'jobs' names no program",
        ),
        (
            "rlnb_asset_packs",
            [AssetPack(name="../x", version="1", build="b:c", files={"../../a": "MIT"})],
            "returned a AssetPack in which name='../x' is not a name of letters, digits, dots, underscores and hyphens "
            "and files has '../../a', which is not a path below the folder",
        ),
        ("rlnb_tasks", [rlnb.Task(id="-x")], "returned a Task in which id='-x' is not the id of a task"),
        ("rlnb_tasks", [rlnb.Task(id="")], "returned a Task in which id='' is empty"),
        ("rlnb_wrap_command", ["sh"], "returned list, which is not an rlnb.plugin.Command or None"),
        ("rlnb_wrap_command", Command(argv=()), "returned a Command in which argv=() names no program"),
        (
            "rlnb_wrap_command",
            Command(argv="sh"),  # type: ignore[arg-type]
            "returned a Command in which argv='sh' is not tuple[str, ...]",
        ),
        ("rlnb_configure_env", {}, "returned dict, which is not None, since its result is not used"),
        ("rlnb_run_started", 3, "returned int, which is not None, since its result is not used"),
        ("rlnb_run_finished", 3, "returned int, which is not None, since its result is not used"),
        ("rlnb_colorize", [], "returned list, which is not an array of uint8 of shape (2, 4, 5, 3)"),
        ("rlnb_colorize", FRAMES, "returned float32 of shape (2, 4, 5, 1), which is not an array of uint8"),
    ],
)
def test_a_value_of_a_wrong_type_is_an_error_that_names_plugin_hook_and_type(hook: str, value: Any, text: str) -> None:
    failed = answer(hook, lambda: value, frames=FRAMES)
    assert failed.value is None
    assert str(failed.error).startswith(f"{hook}() of the plugin 'x' (rlnb-x 1.0) {text}")
    assert str(failed.error).endswith(". Update or uninstall rlnb-x.")


@pytest.mark.parametrize(
    ("hook", "value"),
    [
        ("rlnb_wrap_command", Command(argv=("sh",))),
        ("rlnb_wrap_command", None),
        ("rlnb_configure_env", None),
        ("rlnb_colorize", np.zeros((2, 4, 5, 3), np.uint8)),
    ],
)
def test_a_value_of_the_right_type_is_returned_as_it_is(hook: str, value: Any) -> None:
    assert answer(hook, lambda: value, frames=FRAMES).value is value


def test_an_exception_has_its_place_and_stays_the_cause() -> None:
    def fails() -> None:
        raise ValueError("no")

    def leaves() -> None:
        raise SystemExit(3)

    failed = answer("rlnb_check", fails)
    place = f"({__file__}, line {fails.__code__.co_firstlineno + 1})"
    assert failed.error is not None
    assert failed.error.what == f"rlnb_check() of the plugin 'x' (rlnb-x 1.0) raised ValueError: no {place}"
    assert isinstance(failed.error.__cause__, ValueError)
    assert failed.problem == Problem(what=f"{failed.error.what}.", fix="Update or uninstall rlnb-x.")
    assert "called sys.exit(3)" in str(answer("rlnb_check", leaves).error)


def test_an_exception_that_no_handler_of_exceptions_sees_is_an_error_of_the_plugin_too() -> None:
    """Such as pytest's ``skip``, and an exit from a coroutine."""

    class Skipped(BaseException):
        pass

    def fails() -> None:
        raise Skipped("not here")

    assert "raised Skipped: not here" in str(answer("rlnb_check", fails).error)


def test_a_hook_that_changes_what_it_may_only_read_is_an_error_with_the_names() -> None:
    manifest = Manifest(
        run_id="r",
        created="",
        task=rlnb.Task(id="Echo"),
        library="echo",
        resources=Resources(),
        agent={"a": 1},
    )

    def changes(manifest: Manifest) -> list[Problem]:
        manifest.agent["b"] = 2  # type: ignore[index]
        object.__setattr__(manifest, "seed", -1)
        return []

    def reads(manifest: Manifest) -> list[Problem]:
        return [Problem(what=str(manifest.seed))]

    assert answer("rlnb_check", reads, manifest=manifest).error is None
    changed = str(answer("rlnb_check", changes, manifest=manifest).error)
    assert "changed manifest.seed, manifest.agent, which it may only read" in changed.replace(
        "manifest.agent, manifest.seed", "manifest.seed, manifest.agent"
    )


def test_an_exception_without_a_text_is_an_error_of_its_hook() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError

    def fails() -> None:
        raise Mute

    assert "rlnb_check() of the plugin 'x' (rlnb-x 1.0) raised Mute: <" in str(answer("rlnb_check", fails).error)


def test_a_generator_that_fails_on_the_way_is_an_error_of_its_hook() -> None:
    def problems() -> Iterator[Problem]:
        yield Problem(what="one")
        raise ValueError("no")

    assert "raised ValueError: no" in str(answer("rlnb_check", problems).error)


@pytest.mark.parametrize("exception", [KeyboardInterrupt, InterruptedRequest])
def test_an_interrupt_of_the_user_is_no_error_of_the_plugin(exception: type[BaseException]) -> None:
    def interrupted() -> None:
        raise exception

    with pytest.raises(exception):
        answer("rlnb_check", interrupted)
