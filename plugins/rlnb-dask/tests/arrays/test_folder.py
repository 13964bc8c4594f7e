"""The folder of an array."""

from __future__ import annotations

import os
from pathlib import Path

from rlnb_dask.arrays.folder import ArrayFolder, ArrayRequest


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
    folder.write_members(1, [Path("/a"), Path("/b")])
    assert folder.place(Path("/b")) is None
    folder.write_id(1, "17")
    folder.write_members(2, [Path("/c")])
    folder.write_id(2, "18")
    assert folder.place(Path("/b")) == ("17", 1)
    assert folder.place(Path("/c")) == ("18", 0)
    assert folder.place(Path("/d")) is None


def test_an_empty_output_is_removed(tmp_path: Path) -> None:
    folder = ArrayFolder.create(tmp_path)
    (folder.path / "17.0.out").write_text("")
    (folder.path / "17.1.out").write_text("killed\n")
    folder.remove_empty_outputs()
    assert folder.output("17", 1) == "killed\n"
    assert not (folder.path / "17.0.out").exists()
    assert folder.output("17", 0) == ""
