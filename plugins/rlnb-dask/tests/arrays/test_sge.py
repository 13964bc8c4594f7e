"""The text of Grid Engine's commands for arrays, and of its answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from rlnb_dask.arrays.sge import SgeArrays, states

import rlnb

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
    argv = QUEUE.submit_argv(
        FOLDER / "element.sh", FOLDER / "1.jobs", name="rlnb-1", count=40, at_once=4, outputs=FOLDER
    )
    assert argv == [
        *("qsub", "-terse", "-N", "rlnb-1", "-t", "1-40", "-tc", "4", "-o", "/runs/arrays/1/$JOB_ID.$TASK_ID.out"),
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


def programs(folder: Path, monkeypatch: pytest.MonkeyPatch, **scripts: str) -> None:
    """Put scripts in place of Grid Engine's commands."""
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_the_end_of_an_element_is_that_of_the_accounting_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = 'case "$*" in "-j 12 -t 3") printf "jobnumber 12\\nfailed 0\\nexit_status 3\\n" ;; *) exit 1 ;; esac'
    programs(tmp_path, monkeypatch, qacct=entry)
    state = QUEUE.final("12", 2)
    assert state == "done (exit status 3)"
    assert QUEUE.unwanted(state)
    assert QUEUE.unwanted("done (exit status 0)"), "its script has ended before the agent"
    assert QUEUE.final("12", 1) == ""
    assert not QUEUE.unwanted("killed (SIGKILL)"), "a deletion looks like a node that was taken away"


def test_an_array_is_known_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = "<job_list><JB_job_number>12</JB_job_number><JB_name>rlnb-1</JB_name></job_list>"
    programs(tmp_path, monkeypatch, qstat=f"echo '<job_info>{job}</job_info>'")
    assert QUEUE.submitted("rlnb-1") == "12"
    assert QUEUE.submitted("rlnb-2") == ""
    programs(tmp_path, monkeypatch, qstat="echo '<job_info>'")
    assert QUEUE.submitted("rlnb-1") is None, "the answer was cut off"


def test_the_cause_of_an_error_state_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = "error reason          4:      11/26/2026 08:17:13 [0:7286]: error: can't chdir to /nowhere"
    programs(tmp_path, monkeypatch, qstat=f'echo "{line}"')
    assert QUEUE.fault("12", "Eqw") == ("Grid Engine has put it into its error state: error: can't chdir to /nowhere")


def test_waiting_elements_have_the_cause_of_the_array(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cause = 'queue instance "main@n1" dropped because it is disabled by an Error'
    script = f"""case "$*" in "-g d") cat <<'END'
{ANSWER}
END
;; *) echo 'scheduling info:            {cause}' ;; esac"""
    programs(tmp_path, monkeypatch, qstat=script)
    elements = QUEUE.look("12")
    assert elements == {0: "r", 1: "r", 2: f"qw ({cause})", 3: "Eqw"}
    assert QUEUE.waits(elements[2])
    assert QUEUE.fault("12", elements[2]) == "", "only the state has a letter for an error"
    assert rlnb.sge().waits(f"12.3 {elements[2]}") == f"12.3 qw ({cause})"
