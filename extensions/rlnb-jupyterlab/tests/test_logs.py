"""Logs are served in pieces that end at a line break."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from asking import asked, echo, refused
from rlnb_jupyterlab.watcher import key_of


async def test_a_log_is_served_in_pieces(jp_fetch: Any, root: Path) -> None:
    run = echo().wait(60)
    log = run.jobs[0].folder.log()
    log.write_text("one\ntwo\nthree\n")
    answer = await asked(jp_fetch, "runs", key_of(run), "logs", "0", log.name, params={"offset": "4"})
    assert (answer["text"], answer["offset"], answer["next"]) == ("two\nthree\n", 4, 14)
    end = await asked(jp_fetch, "runs", key_of(run), "logs", "0", log.name, params={"offset": "-6"})
    assert end["text"] == "three\n"


async def test_a_piece_of_a_long_log_is_bounded_and_ends_at_a_line_break(jp_fetch: Any, root: Path) -> None:
    run = echo().wait(60)
    run.jobs[0].folder.log().write_text("x" * 99 + "\n" + ("y" * 99 + "\n") * 9999)
    answer = await asked(jp_fetch, "runs", key_of(run), "logs", "0", "node0.log")
    assert 200_000 < len(answer["text"]) <= 256 * 1024
    assert answer["text"].endswith("y\n")


async def test_neither_a_pipe_nor_a_log_that_links_elsewhere_is_served(
    jp_fetch: Any, root: Path, tmp_path: Path
) -> None:
    run = echo().wait(60)
    (run.path / "media").mkdir(exist_ok=True)
    os.mkfifo(run.path / "media" / "a.png")
    assert stat.S_ISFIFO((run.path / "media" / "a.png").stat().st_mode)
    (tmp_path / "secret.txt").write_text("secret")
    log = run.jobs[0].folder.log()
    log.unlink()
    log.symlink_to(tmp_path / "secret.txt")
    answer = await asked(jp_fetch, "runs", key_of(run))
    assert not any(file["path"] == "media/a.png" for file in answer["files"])
    assert (await refused(jp_fetch, "runs", key_of(run), "files", "media", "a.png"))[0] == 404
    assert (await refused(jp_fetch, "runs", key_of(run), "logs", "0", log.name))[0] == 404
