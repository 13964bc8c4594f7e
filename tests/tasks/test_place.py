"""Where a worker is."""

from __future__ import annotations

from pathlib import Path

import rlnb
from rlnb.tasks.place import place_of

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
