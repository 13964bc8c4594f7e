"""The host of an array: all submissions, one after the other."""

from __future__ import annotations

import pytest
from rlnb_dask.arrays.folder import ArrayFolder, ArrayRequest
from rlnb_dask.arrays.host import ArrayHost

from rlnb.launchers import DetachedJob


@pytest.mark.usefixtures("fast", "fake")
def test_the_host_ends_with_the_last_element_and_removes_empty_outputs(
    folder: ArrayFolder, jobs: list[DetachedJob]
) -> None:
    (folder.path / "17.0.out").write_text("")
    (folder.path / "17.1.out").write_text("Segmentation fault\n")
    paths = [str(job.path) for job in jobs]
    settings = {"walltime": "01:00:00"}
    folder.write_request(ArrayRequest(launcher="slurm", settings=settings, at_once=2, job_dirs=paths))
    ArrayHost(folder).run()
    results = [DetachedJob(job.path).result for job in jobs]
    assert [result.error.partition(" is FAILED")[2] for result in results if result] == [
        ", and it has printed nothing",
        ". The last line of its output: Segmentation fault",
        ", and it has printed nothing",
    ]
    assert not (folder.path / "17.0.out").exists()
    assert folder.place(jobs[2].path) == ("17", 2)
