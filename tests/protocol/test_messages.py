"""The lines of JSON on the pipes of the warm simulator."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import pytest

import rlnb
from rlnb import errors
from rlnb.errors import CheckError, Problem, RlnbError
from rlnb.protocol import messages, requests
from rlnb.protocol.code_location import location_of_error, location_of_stacks, text_of_error
from rlnb.protocol.messages import (
    Adopted,
    Adoption,
    Answer,
    Failure,
    Hangs,
    Meanwhile,
    Message,
    Ready,
    Returned,
    Silent,
)
from rlnb.spec import Task

PROBLEMS = (Problem(what="num_envs=0", fix="num_envs=4"), Problem(what="1 problem"))


@pytest.mark.parametrize(
    "message",
    [
        Ready(rlnb="0.2.0"),
        Meanwhile(id=1, meanwhile={"port": 4711}),
        Answer(id=1, value=None),
        Answer(id=1, value={"error": "of the user's own making", "meanwhile": 1}),
        Failure(id=2, error="no", kind="CheckError", subject="task", problems=PROBLEMS, detail="Traceback"),
        Silent(silent="/log"),
        Hangs(hangs="The worker hangs."),
        Adopted(),
    ],
    ids=lambda message: type(message).__name__,
)
def test_a_message_survives_its_line(message: Message) -> None:
    line = messages.line(message)
    assert line.count(b"\n") == 1
    assert messages.message(line) == message


def test_the_lines_of_the_agent_are_read() -> None:
    assert messages.message(b'{"hangs": "It hangs."}') == Hangs(hangs="It hangs.")
    assert messages.message(b'{"silent": "/log"}') == Silent(silent="/log")
    assert messages.message(b'{"adopted": true}') == Adopted()
    assert messages.message(b'{"returned": true, "pid": 7}') == Returned(pid=7)
    assert b'"adopt"' in messages.line(Adoption(adopt="/job")), "the agent recognizes an adoption by this key"


def test_unknown_lines_and_unknown_keys_of_a_newer_rlnb_are_ignored() -> None:
    assert messages.message(b'{"progress": 0.5}') is None
    assert messages.message(b'{"id": 1, "value": 2, "ok": true}') == Answer(id=1, value=2)


def test_a_call_carries_its_request() -> None:
    request = requests.Card(task=Task(id="Demo"))
    call = messages.call(7, request)
    assert (call.id, call.verb) == (7, "card")
    assert messages.request_of(call) == request
    assert json.loads(messages.line(call))["payload"]["task"]["id"] == "Demo"


@pytest.mark.parametrize("kind", [RlnbError, errors.NotFoundError, errors.RunError, errors.WorkerError])
def test_an_error_of_rlnb_keeps_its_class_and_message(kind: type[RlnbError]) -> None:
    error = messages.error_of(messages.failure(1, kind("the reason: 2 problems")))
    assert (type(error), str(error)) == (kind, "the reason: 2 problems")


@pytest.mark.parametrize("subject", ["task Demo", "a: b: 2 problems"])
def test_a_check_error_keeps_its_problems(subject: str) -> None:
    before = CheckError(subject, PROBLEMS)
    error = messages.error_of(messages.failure(1, before))
    assert isinstance(error, CheckError)
    assert (error.problems, str(error)) == (PROBLEMS, str(before))


def test_any_other_error_becomes_a_worker_error() -> None:
    for kind in ("", "Problem", "Iterable", "OfTomorrow"):
        error = messages.error_of(Failure(id=1, error="ValueError: no", kind=kind, detail="Traceback of it"))
        assert type(error) is errors.WorkerError
        assert str(error) == "ValueError: no\n\nTraceback of it"


# -- place -----------------------------------------------------------------------------------------------------------


STACKS = f'''Thread 0x1 (most recent call first):
  File "/other.py", line 1 in wait

Current thread 0x2 (most recent call first):
  File "/usr/lib/python3.12/json/decoder.py", line 353 in raw_decode
  File "{Path(rlnb.__file__).parent}/worker/acting.py", line 90 in actions
  File "/home/me/puck.py", line 31 in _reset_idx
  File "/venv/lib/python3.12/site-packages/isaaclab/envs/direct_rl_env.py", line 360 in step
'''


def test_the_innermost_line_of_the_users_own_code_is_named() -> None:
    assert location_of_stacks(STACKS) == "/home/me/puck.py, line 31, in _reset_idx"


def test_without_own_code_the_innermost_line_is_named() -> None:
    text = STACKS.replace("/home/me/", "/venv/lib/python3.12/site-packages/")
    assert location_of_stacks(text) == "/usr/lib/python3.12/json/decoder.py, line 353, in raw_decode"
    assert location_of_stacks("no stacks") == ""


def test_the_place_of_an_error_is_the_innermost_line_of_the_users_own_code(tmp_path: Path) -> None:
    file = tmp_path / "puck.py"
    file.write_text("import json\n\ndef reward():\n    return json.loads('{')\n\ndef step():\n    return reward()\n")
    with pytest.raises(json.JSONDecodeError) as raised:
        runpy.run_path(str(file))["step"]()
    traceback = raised.value.__traceback__
    assert traceback is not None
    place, own = location_of_error(raised.value.with_traceback(traceback.tb_next))  # without this test's own frame
    assert place == f"{file}, line 4, in reward"
    assert own.replace("~", "^").splitlines() == [  # Python 3.13 marks the arguments of a call
        "  from line 7, in step: return reward()",
        "    return json.loads('{')",
        "           ^^^^^^^^^^^^^^^",
    ]


def test_only_the_last_calls_that_led_to_an_error_are_shown(tmp_path: Path) -> None:
    file, other = tmp_path / "puck.py", tmp_path / "again.py"
    file.write_text("def fall(depth):\n    return fall(depth - 1) if depth else missing\n")
    other.write_text("def first(fall):\n    return fall(0)\n")
    fall = runpy.run_path(str(file))["fall"]
    with pytest.raises(NameError) as raised:
        fall(50)
    _, own = location_of_error(raised.value)
    assert own.count("  from line 2, in fall:") == 2
    with pytest.raises(NameError) as raised:
        runpy.run_path(str(other))["first"](fall)
    _, own = location_of_error(raised.value)
    assert f"  from {other}, line 2, in first: return fall(0)\n" in own, "another file is named"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param(
            "import json\n    json.dumbs({})",
            "has no attribute 'dumbs'. Did you mean: 'dumps'?",
            marks=pytest.mark.skipif(sys.version_info < (3, 12), reason="Python 3.11 has no names to suggest"),
        ),
        (
            f"raise TypeError({'no, but expected one of:' + chr(10) + ' * (Tensor)' * 5 + chr(10) * 5!r})",
            "TypeError: no",
        ),
        (f"raise ValueError({chr(10) + 'Bad shape:' + chr(10) * 2 + '  got 3'!r})", "ValueError: Bad shape:"),
        ("raise KeyError", "KeyError"),
    ],
)
def test_an_error_of_own_code_is_short_and_has_the_name_that_python_suggests(
    tmp_path: Path, body: str, words: str
) -> None:
    file = tmp_path / "puck.py"
    file.write_text(f"def reward():\n    {body}\n")
    reward = runpy.run_path(str(file))["reward"]
    try:
        reward()
    except (AttributeError, TypeError, ValueError, KeyError) as exc:
        failure = messages.failure(1, exc)
    first, *rest = str(messages.error_of(failure)).splitlines()
    assert first.startswith(f"{file}, line ")
    assert first.endswith(words)
    assert len(rest) <= 4


def test_of_a_long_error_the_last_lines_are_kept_too() -> None:
    """Such as one of TorchScript, which has a traceback in its text."""
    exc = RuntimeError(
        "The operation failed.\nTraceback:\n  File x\n\n    a + b\n    ~ HERE\nRuntimeError: 3 is not 4\n"
    )
    assert text_of_error(exc) == ("RuntimeError: The operation failed.\n...\n    ~ HERE\nRuntimeError: 3 is not 4")


def test_the_place_of_a_syntax_error_is_its_line(tmp_path: Path) -> None:
    with pytest.raises(SyntaxError) as raised:
        compile("x = 1\ndef broken(:\n", str(tmp_path / "puck.py"), "exec")
    place, own = location_of_error(raised.value)
    assert place == f"{tmp_path}/puck.py, line 2"
    assert own.endswith("SyntaxError: invalid syntax\n")


def test_an_error_of_libraries_has_no_place() -> None:
    assert location_of_error(ValueError("never raised")) == ("", "")
