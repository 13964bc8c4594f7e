"""Whether a script is still the one that its run has recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlnb.node.supervisor import edited_script
from rlnb.records.layout import RunDir
from rlnb.storage.files import source_hash


@pytest.mark.parametrize(("text", "is_edited"), [("print(1)", False), ("print(2)", True), (None, False)])
def test_a_script_with_another_text_than_the_recorded_one_is_named(
    text: str | None, is_edited: bool, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    task = {"id": "train", "source": str(script), "source_sha256": source_hash(b"print(1)")}
    run = RunDir(tmp_path)
    run.manifest.write_text(json.dumps({"script": [str(script), "--seed", "1"], "task": task}))
    if text is not None:
        script.write_text(text)
    assert edited_script(run).startswith(f"{script} was edited") is is_edited


@pytest.mark.parametrize("manifest", [{}, {"script": []}, {"script": ["/no"], "task": 3}, {"script": 3, "task": {}}])
def test_a_run_without_a_script_has_none_that_was_edited(manifest: dict[str, object], tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    run.manifest.write_text(json.dumps(manifest))
    assert edited_script(run) == ""
