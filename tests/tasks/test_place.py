"""Where a worker is."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

import rlnb
from rlnb.protocol.messages import place_of, place_of_error

STACKS = f'''Thread 0x1 (most recent call first):
  File "/other.py", line 1 in wait

Current thread 0x2 (most recent call first):
  File "/usr/lib/python3.12/json/decoder.py", line 353 in raw_decode
  File "{Path(rlnb.__file__).parent}/worker/acting.py", line 90 in actions
  File "/home/me/puck.py", line 31 in _reset_idx
  File "/venv/lib/python3.12/site-packages/isaaclab/envs/direct_rl_env.py", line 360 in step
'''


def test_the_innermost_line_of_the_users_own_code_is_named() -> None:
    assert place_of(STACKS) == "/home/me/puck.py, line 31, in _reset_idx"


def test_without_own_code_the_innermost_line_is_named() -> None:
    text = STACKS.replace("/home/me/", "/venv/lib/python3.12/site-packages/")
    assert place_of(text) == "/usr/lib/python3.12/json/decoder.py, line 353, in raw_decode"
    assert place_of("no stacks") == ""


def test_the_place_of_an_error_is_the_innermost_line_of_the_users_own_code(tmp_path: Path) -> None:
    file = tmp_path / "puck.py"
    file.write_text("import json\n\ndef reward():\n    return json.loads('{')\n\ndef step():\n    return reward()\n")
    with pytest.raises(json.JSONDecodeError) as raised:
        runpy.run_path(str(file))["step"]()
    traceback = raised.value.__traceback__
    assert traceback is not None
    place, own = place_of_error(raised.value.with_traceback(traceback.tb_next))  # without this test's own frame
    assert place == f"{file}, line 4, in reward"
    assert "return reward()" in own
    assert "return json.loads('{')" in own
    assert "decoder.py" not in own


def test_the_place_of_a_syntax_error_is_its_line(tmp_path: Path) -> None:
    with pytest.raises(SyntaxError) as raised:
        compile("x = 1\ndef broken(:\n", str(tmp_path / "puck.py"), "exec")
    place, own = place_of_error(raised.value)
    assert place == f"{tmp_path}/puck.py, line 2"
    assert own.endswith("SyntaxError: invalid syntax\n")


def test_an_error_of_libraries_has_no_place() -> None:
    assert place_of_error(ValueError("never raised")) == ("", "")
