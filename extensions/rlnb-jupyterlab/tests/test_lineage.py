"""The lineage of a run in its tab."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from asking import HOSTILE, asked, echo, refused
from rlnb_jupyterlab.watcher import key_of

import rlnb


async def test_the_tab_of_a_run_has_its_lineage_with_a_key_for_each_run(jp_fetch: Any, root: Path) -> None:
    first = echo(name="walk").wait(60)
    assert (await asked(jp_fetch, "runs", key_of(first), "lineage"))["lines"] == []
    second = echo(init_from=first, seed=7).wait(60)
    rlnb.Runs([first]).archive().apply()
    lineage = await asked(jp_fetch, "runs", key_of(second), "lineage")
    assert [(line["key"], line["depth"], line["title"], line["state"]) for line in lineage["lines"]] == [
        (key_of(first), 0, "walk", "completed"),
        (key_of(second), 1, second.id, "completed"),
    ]
    assert lineage["lines"][1]["facts"] == ["initialised with model_2.json", "seed 7"]
    assert (lineage["older"], lineage["hidden"]) == (False, 0)
    shutil.rmtree(first.path)
    gone = (await asked(jp_fetch, "runs", key_of(second), "lineage"))["lines"][0]
    assert (gone["key"], gone["id"], gone["state"], gone["reward"]) == ("", first.id, "", None)
    assert await refused(jp_fetch, "runs", "0" * 20, "lineage") == (
        404,
        {"message": "The run no longer exists.", "fix": "Refresh the list."},
    )


async def test_forged_origins_are_text(jp_fetch: Any, root: Path, made: Any) -> None:
    made(1, like=HOSTILE, parent="../../../etc/passwd", inputs={HOSTILE: "/etc/passwd"})
    (run,) = rlnb.runs()
    lines = (await asked(jp_fetch, "runs", key_of(run), "lineage"))["lines"]
    assert [line["key"] for line in lines] == ["", key_of(run)]
    assert lines[0]["title"] == HOSTILE.replace("\u202e", "\\u202e")
    assert "initialised with ../../../etc/passwd" in json.dumps(lines[1]["facts"])
