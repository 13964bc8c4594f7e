"""The folder of an array."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from rlnb_dask.arrays.folder import ArrayFolder, ArrayRequest

import rlnb


def test_the_host_reads_what_the_kernel_wrote(tmp_path: Path) -> None:
    folder = ArrayFolder.create(tmp_path)
    request = ArrayRequest(launcher="slurm", settings={"walltime": "01:00:00"}, at_once=4, job_dirs=["/a", "/b"])
    folder.write_request(request)
    assert folder.path.parent == tmp_path / "arrays"
    assert ArrayFolder(folder.path).request() == request


def test_others_cannot_write_to_the_script_nor_to_the_list_of_jobs(tmp_path: Path) -> None:
    """Otherwise any user could change what runs on the nodes, as soon as the umask of a kernel lets everybody write."""
    before = os.umask(0)
    try:
        folder = ArrayFolder.create(tmp_path)
        folder.write_script("#!/bin/bash")
        folder.write_request(ArrayRequest(launcher="slurm", settings={}, at_once=None, job_dirs=["/a"]))
        folder.write_members(1, [Path("/a")])
        folder.write_id(1, "17")
    finally:
        os.umask(before)
    assert folder.script.read_text() == "#!/bin/bash"
    assert {path.name for path in folder.path.iterdir()} == {"element.sh", "array.json", "1.jobs", "1.id"}
    assert not [path for path in (folder.path, *folder.path.iterdir()) if path.stat().st_mode & 0o002]


def test_a_job_has_a_place_once_its_array_has_an_id(tmp_path: Path) -> None:
    folder = ArrayFolder.create(tmp_path)
    jobs = [tmp_path / name for name in "abcd"]
    for job in jobs:
        job.mkdir()
    folder.write_members(1, jobs[:2])
    assert folder.place(jobs[1]) is None
    folder.write_id(1, "17")
    folder.write_members(2, jobs[2:3])
    folder.write_id(2, "18")
    assert folder.place(jobs[1]) == ("17", 1)
    assert folder.place(jobs[2]) == ("18", 0)
    assert folder.place(jobs[3]) is None
    assert folder.place(tmp_path / "missing") is None


def test_what_another_user_may_have_put_beside_the_runs_is_no_array(tmp_path: Path) -> None:
    """A pipe must not block the list of runs, and a link or a file of someone else says nothing about this job."""
    job = tmp_path / "runs" / "first" / "jobs" / "0-train"
    job.mkdir(parents=True)
    folder = ArrayFolder.create(tmp_path)
    os.mkfifo(folder.members(1))
    (tmp_path / "elsewhere").write_text(f"{job}\n")
    folder.members(2).symlink_to(tmp_path / "elsewhere")
    folder.write_id(2, "17")
    assert folder.place(job) is None
    folder.write_members(3, [job])
    folder.write_id(3, "18")
    assert folder.place(job) == ("18", 0)
    if os.geteuid() == 0:
        os.chown(folder.path / "3.id", 65_534, 65_534)
        assert folder.place(job) is None


def test_a_handle_names_only_a_folder_beside_the_runs(tmp_path: Path) -> None:
    job = tmp_path / "runs" / "first" / "jobs" / "0-train"
    folder = ArrayFolder.create(tmp_path)
    assert ArrayFolder.of_handle({"array": str(folder.path)}, job) == folder
    assert ArrayFolder.of_handle({"array": f"/elsewhere/{folder.path.name}"}, job) == folder
    for name in ("/etc", "..", "", "a\n", "--user=ann", f"{folder.path.name}x"):
        with pytest.raises(rlnb.RlnbError, match="is not the name of an array's folder"):
            ArrayFolder.of_handle({"array": name}, job)


def test_an_empty_output_is_removed(tmp_path: Path) -> None:
    folder = ArrayFolder.create(tmp_path)
    (folder.path / "17.0.out").write_text("")
    (folder.path / "17.1.out").write_text("killed\n")
    folder.remove_empty_outputs()
    assert folder.output("17", 1) == "killed\n"
    assert not (folder.path / "17.0.out").exists()
    assert folder.output("17", 0) == ""
