"""Whether a training script is still the one that its run has recorded."""

from __future__ import annotations

from pathlib import Path

from rlnb.records.layout import RunDir
from rlnb.spec import Json
from rlnb.storage import files
from rlnb.storage.files import has_hash


def edited(run: RunDir) -> str:
    """Return a sentence if a run's script was edited since the run was made, e.g. while it waited in a queue.

    A script is executed at its own place, because it may import modules beside it.

    Args:
        run: Folder of the run.

    Returns:
        The sentence; empty if the script is the recorded one, cannot be read, or if the run has none.
    """
    manifest = files.read_json(run.manifest) or {}
    script, task = manifest.get("script"), manifest.get("task")
    if not isinstance(script, list) or not script or not isinstance(task, dict):
        return ""
    digest: Json = task.get("source_sha256")
    try:
        content = Path(str(script[0])).read_bytes()
    except OSError:
        return ""
    if not isinstance(digest, str) or has_hash(content, digest):
        return ""
    return f"{script[0]} was edited after this run was made, which has recorded the earlier text. Start a new run."
