"""The text of Slurm's commands for arrays, and of its answers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from rlnb_dask.arrays.slurm import SlurmArrays, states

FOLDER = Path("/root of runs/arrays/1")
QUEUE = SlurmArrays()


def submitted(at_once: int | None) -> list[str]:
    script, members = FOLDER / "element.sh", FOLDER / "1.jobs"
    return [*QUEUE.submit_argv(script, members, name="rlnb-1", count=40, at_once=at_once, outputs=FOLDER)]


def test_the_limit_is_part_of_the_array() -> None:
    output = f"{FOLDER}/%A.%a.out"
    assert submitted(4) == [
        *("sbatch", "--parsable", "--job-name=rlnb-1", "--array=0-39%4", f"--output={output}", f"--error={output}"),
        *(f"{FOLDER}/element.sh", f"{FOLDER}/1.jobs"),
    ]
    assert submitted(None)[3] == "--array=0-39"


def test_the_id_is_that_of_the_array() -> None:
    assert QUEUE.id_of("17\n") == "17"
    assert QUEUE.id_of("17;east\n") == "17"


def test_elements_are_removed_with_one_command() -> None:
    assert QUEUE.remove_argv("17", [3, 0, 1, 7]) == ["scancel", "--", "17_[0-1,3,7]"]
    assert QUEUE.element("17", 3) == "17_3"


def test_the_states_are_those_of_squeue() -> None:
    answer = "0 RUNNING (None)\n12 PENDING (JobArrayTaskLimit)\n"
    assert states(answer) == {0: "RUNNING", 12: "PENDING (JobArrayTaskLimit)"}
    assert states("N/A PENDING (Resources)\n\n") == {}
    assert QUEUE.waits("PENDING (JobArrayTaskLimit)")
    assert not QUEUE.waits("COMPLETING")


def test_an_element_that_its_node_could_not_start_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = "JobId=20 ArrayJobId=17 ArrayTaskId=3 JobState=CANCELLED StartTime=100 EndTime=108 NodeList=node1"
    node = "NodeName=node1 State=IDLE+DRAIN Reason=Prolog error [root@108]"
    (tmp_path / "scontrol").write_text(f"#!/bin/sh\n[ $3 = job ] && echo '{job}' || echo '{node}'\n")
    (tmp_path / "sacct").write_text("#!/bin/sh\nexit 1\n")
    for name in ("scontrol", "sacct"):
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert QUEUE.final("17", 3) == "launch failed (node1: Prolog error)"
    assert not QUEUE.unwanted(QUEUE.final("17", 3))
    assert QUEUE.unwanted("CANCELLED (node1: bad disk)")
    assert QUEUE.unwanted("CANCELLED")
