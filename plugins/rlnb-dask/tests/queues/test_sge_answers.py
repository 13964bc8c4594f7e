"""The answers of Grid Engine's commands, as text."""

from __future__ import annotations

import pytest
from rlnb_dask.queues import sge_answers

# Outputs of Son of Grid Engine 8.1.9.
JOBS = """<?xml version='1.0'?>
<job_info  xmlns:xsd="http://arc.liv.ac.uk/repos/darcs/sge/source/dist/util/resources/schemas/qstat/qstat.xsd">
  <queue_info>
    <job_list state="running">
      <JB_job_number>6</JB_job_number>
      <JB_name>rlnb</JB_name>
      <state>r</state>
      <queue_name>main@vm</queue_name>
    </job_list>
  </queue_info>
  <job_info>
    <job_list state="pending">
      <JB_job_number>16</JB_job_number>
      <JB_name>rlnb-20261126-081713-a1b2-1</JB_name>
      <state>Eqw</state>
    </job_list>
  </job_info>
</job_info>
"""
IN_ERROR = """job_number:                 16
error reason          1:      11/26/2026 08:17:13 [0:7286]: error: can't chdir to /nowhere: No such file or directory
scheduling info:            Job is in error state
"""
WAITS = """job_type:                   NONE
scheduling info:            queue instance "main@vm" dropped because it is disabled
                            All queues dropped because of overload or full
"""
ACCOUNT = """==============================================================
qname        main
hostname     vm
jobnumber    1
failed       {failed}
exit_status  {status}
"""


def test_the_states_and_the_ids_of_jobs_are_read() -> None:
    assert sge_answers.states_of(JOBS) == {"6": "r", "16": "Eqw"}
    assert sge_answers.ids_of(JOBS) == {"rlnb": "6", "rlnb-20261126-081713-a1b2-1": "16"}


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (IN_ERROR, "error: can't chdir to /nowhere: No such file or directory"),
        (WAITS, 'queue instance "main@vm" dropped because it is disabled'),
        ("job_number:                 16\n", ""),
    ],
)
def test_the_cause_of_a_wait_is_read(text: str, cause: str) -> None:
    assert sge_answers.cause_of(text) == cause


@pytest.mark.parametrize(
    ("failed", "status", "state"),
    [
        ("0    ", "127                 ", "done (exit status 127)"),
        ("100 : assumedly after job", "137                 ", "killed (SIGKILL)"),
        (
            "37  : qmaster enforced h_rt, h_cpu, or h_vmem limit",
            "137",
            "ended by Grid Engine (qmaster enforced h_rt, h_cpu, or h_vmem limit)",
        ),
        ("25  : rescheduling", "0", "ended by Grid Engine (rescheduling)"),
        ("8   : in prolog", "0", "launch failed (vm: in prolog)"),
        ("7   : before prolog", "0", "launch failed (vm: before prolog)"),
        ("15  : in epilog", "0", "ended by Grid Engine (in epilog)"),
    ],
)
def test_the_account_of_a_job_is_read(failed: str, status: str, state: str) -> None:
    assert sge_answers.account_of(ACCOUNT.format(failed=failed, status=status)) == state
    assert sge_answers.account_of("error: job id 5 not found") is None


def test_an_error_state_is_the_nodes_fault_if_its_prolog_has_failed() -> None:
    prolog = IN_ERROR.replace("error: can't chdir to /nowhere: No such file or directory", "exit_status of prolog = 1")
    assert sge_answers.error_state_of(sge_answers.cause_of(prolog)) == "launch failed (exit_status of prolog = 1)"
    assert sge_answers.error_state_of(sge_answers.cause_of(IN_ERROR)).startswith("stuck in the queue (error: can't")
