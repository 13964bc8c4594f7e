"""The causes of interruptions."""

from __future__ import annotations

from rlnb_dask import causes

INFO = "2026-11-26 08:15:28,847 - distributed.dask_worker - INFO - "
UNREACHED = f"{INFO}Waiting to connect to:   tls://10.0.0.1:4321\n{INFO}Timed out starting worker\n{INFO}End worker\n"


def test_nodes_that_never_reached_this_machine_are_counted() -> None:
    line = causes.unreached(UNREACHED, 1, 2)
    assert line.startswith("1 of 2 nodes never reached this machine at tls://10.0.0.1:4321. Check the firewall")
    assert "host_interface" in line
    assert causes.unreached(UNREACHED, 2, 2) == ""
    assert causes.unreached(f"{INFO}End worker", 1, 2) == ""
    assert causes.unreached("RuntimeError: Worker failed to start.", 0, 1) != ""


def test_reports_of_dasks_worker_are_no_cause() -> None:
    assert causes.without_reports(f"{INFO}Start worker\nNo such file\n{INFO}End worker") == "No such file"


def test_the_queues_cause_replaces_a_guess() -> None:
    guess = "node 1 (n7) is lost: it is down, or its queue has ended the job"
    assert causes.with_cause(guess, "Slurm's job 7 was preempted") == "node 1 (n7) is lost: Slurm's job 7 was preempted"
    assert causes.with_cause(guess, "") == guess
    assert causes.with_cause("node 1 is lost: a, b", "b") == "node 1 is lost: a, b"
