"""The text of Grid Engine's commands for arrays, and of its answers."""

from __future__ import annotations

from pathlib import Path

from rlnb_dask.arrays.sge import SgeArrays, states

FOLDER = Path("/runs/arrays/1")
QUEUE = SgeArrays()
ANSWER = """job-ID  prior   name       user         state submit/start at     queue                ja-task-ID
-----------------------------------------------------------------------------------------------------------------
     12 0.55500 rlnb       ann          r     11/26/2026 08:00:01 all.q@node0                        1 1
     12 0.55500 rlnb       ann          r     11/26/2026 08:00:01 all.q@node1                        1 2
     12 0.55500 rlnb       ann          qw    11/26/2026 08:00:00                                    1 3
     12 0.55500 rlnb       ann          Eqw   11/26/2026 08:00:00                                    1 4
     13 0.55500 rlnb       ann          r     11/26/2026 08:00:00 all.q@node1                        1
     14 0.55500 rlnb       ann          r     11/26/2026 08:00:00 all.q@node1                        1 5
"""


def test_elements_are_counted_from_one() -> None:
    argv = QUEUE.submit_argv(FOLDER / "element.sh", FOLDER / "1.jobs", count=40, at_once=4, outputs=FOLDER)
    assert argv == [
        *("qsub", "-terse", "-t", "1-40", "-tc", "4", "-o", "/runs/arrays/1/$JOB_ID.$TASK_ID.out"),
        *("/runs/arrays/1/element.sh", "/runs/arrays/1/1.jobs"),
    ]
    assert QUEUE.id_of("12.1-40:1\n") == "12"
    assert QUEUE.element("12", 0) == "12.1"
    assert QUEUE.remove_argv("12", [0, 1, 4]) == ["qdel", "12", "-t", "1-2,5"]


def test_the_states_are_those_of_the_array() -> None:
    assert states("12", ANSWER) == {0: "r", 1: "r", 2: "qw", 3: "Eqw"}
    assert QUEUE.waits("qw")
    assert not QUEUE.waits("r")
    assert QUEUE.fault("12", "qw") == ""
