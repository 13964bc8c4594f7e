"""``rlnb.simulator``: which simulator it is."""

from __future__ import annotations

import pytest
from far_node import Node

import rlnb
from rlnb.interactive.simulator import Simulator
from rlnb.simulation import placement


def test_without_a_simulator_there_is_no_state_no_job_and_no_memory() -> None:
    for handle in (Simulator(None, "/nowhere"), Simulator(None, "/nowhere", Node())):
        assert (handle.state, handle.job, handle.pid, handle.requests, handle.log) == ("none", "", None, 0, None)
        assert handle.memory_gib == handle.gpu_memory_gib == 0.0
        assert repr(handle) == "Simulator(none; the next request starts one)"


def test_what_is_no_launcher_is_refused_and_the_local_one_is_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(rlnb.RlnbError, match=r"'slurm' is not a launcher for the simulator\. Use one of"):
        rlnb.simulator("slurm")  # type: ignore[arg-type]
    monkeypatch.setattr(rlnb.options, "simulator", rlnb.local())
    assert placement.chosen() is None
    node = Node()
    monkeypatch.setattr(rlnb.options, "simulator", node)
    assert placement.chosen() is node
