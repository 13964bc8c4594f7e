"""What the messages of a simulator say about it."""

from __future__ import annotations

from rlnb.protocol.messages import Ended, Hangs, Hosted, Pulse, Ready, Stacks, Usage, Waiting
from rlnb.simulation.process import Condition

STACKS = """Current thread 0x1 (most recent call first):
  File "/home/me/puck.py", line 31 in _reset_idx
"""


def test_a_simulator_in_a_job_waits_then_starts_and_is_busy_in_a_place() -> None:
    condition = Condition("slurm")
    assert (str(condition), condition.hosted) == ("the simulator's job on slurm waits", False)
    condition.note(Waiting(waits="PENDING (Resources)"))
    assert str(condition) == "the simulator's job on slurm waits: PENDING (Resources)"
    condition.note(Hosted(host="node3"))
    assert str(condition) == "the simulator is starting"
    condition.note(Ready(pid=7))
    condition.note(Stacks(stacks=STACKS, end_bytes=40))
    assert str(condition) == "the simulator is busy in /home/me/puck.py, line 31, in _reset_idx"
    assert condition.log_bytes == 40


def test_the_newest_values_and_the_reason_of_the_end_are_kept() -> None:
    condition = Condition()
    for message in (Pulse(log_bytes=9), Usage(memory_bytes=5), Ended(ended="Aborted"), Hangs(hangs="It hangs."), None):
        condition.note(message)
    assert condition.log_bytes == 9
    assert condition.usage == Usage(memory_bytes=5)
    assert (condition.reason, condition.last_output) == ("It hangs.", "Aborted")
