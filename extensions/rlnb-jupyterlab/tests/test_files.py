"""Only a run's own files are served, and files that a page may not show are sent as downloads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from asking import asked, echo, refused
from rlnb_jupyterlab.watcher import key_of


@pytest.mark.parametrize(
    "path",
    [
        "../../../../../etc/passwd",
        "..%2f..%2f..%2fetc%2fpasswd",
        "/etc/passwd",
        "media/../manifest.json",
        "manifest.json/..",
    ],
)
async def test_a_path_that_leaves_the_run_folder_is_refused(jp_fetch: Any, root: Path, path: str) -> None:
    run = echo().wait(60)
    (run.path / "media").mkdir(exist_ok=True)
    code, _ = await refused(jp_fetch, "runs", key_of(run), "files", path)
    assert code in (400, 403, 404)


async def test_links_out_of_the_run_are_neither_listed_nor_served(jp_fetch: Any, root: Path, tmp_path: Path) -> None:
    run = echo().wait(60)
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    (run.path / "media").mkdir(exist_ok=True)
    (run.path / "media" / "link.txt").symlink_to(secret)
    (run.path / "folder").symlink_to(tmp_path)
    answer = await asked(jp_fetch, "runs", key_of(run))
    assert not any("link.txt" in file["path"] or "secret" in file["path"] for file in answer["files"])
    for path in (("media", "link.txt"), ("folder", "secret.txt")):
        assert (await refused(jp_fetch, "runs", key_of(run), "files", *path))[0] == 404


@pytest.mark.parametrize("name", ["jobs/0-train/command.json", "jobs/0-train/node0.log", ".hidden"])
async def test_records_and_hidden_files_are_not_served(jp_fetch: Any, root: Path, name: str) -> None:
    run = echo().wait(60)
    (run.path / ".hidden").write_text("x")
    code, _ = await refused(jp_fetch, "runs", key_of(run), "files", *name.split("/"))
    assert code == 404


async def test_a_file_that_a_page_may_not_show_is_downloaded(jp_fetch: Any, root: Path) -> None:
    run = echo().wait(60)
    (run.path / "media").mkdir(exist_ok=True)
    (run.path / "media" / "a.svg").write_text("<svg onload='alert(1)'/>")
    answer = await jp_fetch("rlnb", "runs", key_of(run), "files", "media", "a.svg")
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="a.svg"'


async def test_the_name_of_a_download_is_plain(jp_fetch: Any, root: Path) -> None:
    run = echo().wait(60)
    (run.path / "media").mkdir(exist_ok=True)
    name = 'a";filename="évil.exe'
    (run.path / "media" / name).write_text("")
    answer = await jp_fetch("rlnb", "runs", key_of(run), "files", "media", name)
    assert answer.headers["Content-Disposition"] == 'attachment; filename="a__filename___vil.exe"'
