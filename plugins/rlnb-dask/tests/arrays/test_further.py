"""The runs of an array that go on in a further array."""

from __future__ import annotations

from pathlib import Path

from rlnb_dask.arrays.further import FurtherJobs

import rlnb


def test_a_job_that_goes_on_is_kept_with_the_handle_of_this_process(tmp_path: Path) -> None:
    launcher = rlnb.slurm(nodes=2, walltime="01:00:00")
    further = FurtherJobs(launcher, "/shared/arrays/1")
    handle = further.submit(None, tmp_path)
    assert [job.path for job in further.jobs] == [tmp_path]
    assert handle == {**further.own_handle(), "array": "/shared/arrays/1"}
    assert (further.name, further.nodes, further.settings) == ("slurm", 2, launcher.settings)
    assert launcher.alive(handle, tmp_path), "the host of the array is that of the job"
