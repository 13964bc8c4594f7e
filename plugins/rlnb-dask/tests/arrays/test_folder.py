"""The folder of an array."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from rlnb_dask.arrays.folder import ArrayFolder, ArrayRequest
from users import ANN, EVE, as_root, as_user, given, link, shared_root

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


SUBMIT = """
from pathlib import Path
from rlnb_dask.arrays.folder import ArrayFolder
try:
    folder = ArrayFolder.create(Path.cwd())
    folder.write_script("mine")
    print(folder.path)
    job = Path.cwd() / "runs" / "first" / "jobs" / "0-train"
    assert ArrayFolder.of_handle({"array": f"/elsewhere{folder.path}"}, job) == folder
except rlnb.RlnbError as exc:
    print(exc)
"""
IMPORT = "import rlnb_dask.arrays.folder"


@as_root
@pytest.mark.parametrize("kind", ["nothing", "folder", "open folder", "link"])
def test_no_other_user_can_replace_a_script(kind: str) -> None:
    """An honest user who was the first to make the folder does not stop others either."""
    with shared_root() as shared:
        arrays, trap = shared / "arrays", shared.parent / "eve"
        arrays.rmdir()
        given(trap, EVE).chmod(0o777)
        if kind == "link":
            link(arrays, trap)
        elif kind != "nothing":
            given(arrays, EVE).chmod(0o777 if kind == "open folder" else 0o755)
        path = Path(as_user(ANN, SUBMIT, shared, before=IMPORT).strip())
        assert path.parent == shared / "runs" / f".arrays-{ANN}"
        assert not arrays.exists() or not [*arrays.iterdir()]
        assert (path / "element.sh").read_text() == "mine"
        for folder in (path, path.parent):
            assert (folder.stat().st_uid, folder.stat().st_mode & 0o022) == (ANN, 0)


@as_root
def test_an_administrator_can_make_the_folder_of_arrays_for_all() -> None:
    with shared_root() as shared:
        assert as_user(ANN, SUBMIT, shared, before=IMPORT).startswith(f"{shared}/arrays/2")


@as_root
def test_a_user_who_takes_the_place_of_anothers_arrays_gets_none() -> None:
    with shared_root() as shared:
        (shared / "arrays").rmdir()
        given(shared / "runs" / f".arrays-{ANN}", EVE).chmod(0o777)
        printed = as_user(ANN, SUBMIT, shared, before=IMPORT)
        assert f".arrays-{ANN} can be changed by others than you. Ask its owner" in printed
        assert not [*(shared / "runs" / f".arrays-{ANN}").iterdir()]


def test_an_empty_output_is_removed(tmp_path: Path) -> None:
    folder = ArrayFolder.create(tmp_path)
    (folder.path / "17.0.out").write_text("")
    (folder.path / "17.1.out").write_text("killed\n")
    folder.remove_empty_outputs()
    assert folder.output("17", 1) == "killed\n"
    assert not (folder.path / "17.0.out").exists()
    assert folder.output("17", 0) == ""
