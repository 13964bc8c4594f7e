"""A host inside a job of a queue."""

from __future__ import annotations

from rlnb_dask.own_job import forget_own_job


def test_a_host_inside_a_slurm_job_does_not_pass_on_its_limits() -> None:
    environ = {"SLURM_MEM_PER_NODE": "2048", "SLURM_JOB_ID": "7", "SLURM_CONF": "/etc/slurm.conf", "HOME": "/home/ann"}
    forget_own_job(environ)
    assert environ == {"SLURM_CONF": "/etc/slurm.conf", "HOME": "/home/ann"}


def test_a_host_in_no_job_keeps_the_users_own_variables() -> None:
    environ = {"SLURM_CLUSTERS": "large"}
    forget_own_job(environ)
    assert environ == {"SLURM_CLUSTERS": "large"}
