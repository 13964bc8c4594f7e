"""The hooks: they check whether W&B follows a run, and start and end the process that does. No import is heavy."""

from __future__ import annotations

import os
from pathlib import Path

from rlnb.plugin import Manifest, Problem, hookimpl
from rlnb.tracking import Tracker

ONLINE, OFFLINE = "wandb", "wandb-offline"
"""Tags of a run that W&B follows."""
WANDB = Tracker(
    name="W&B",
    tags=(ONLINE, OFFLINE),
    module="rlnb_wandb.tracker",
    packages=("rlnb-wandb", "wandb"),
    fix="Install rlnb-wandb for {python}, from where rlnb was installed; it brings wandb.",
)


@hookimpl
def rlnb_check(manifest: Manifest) -> list[Problem]:
    """Check the worker's interpreter, where W&B runs. Import wandb, which takes seconds, only to find an API key."""
    if not any(tag in manifest.tags for tag in WANDB.tags):
        return []
    has_key = OFFLINE in manifest.tags or "WANDB_API_KEY" in os.environ
    code = "" if has_key else "import wandb; wandb.login(verify=False)"
    return WANDB.check(manifest, code=code, fix=f'Run `wandb login`, set WANDB_API_KEY, or use tags=["{OFFLINE}"].')


@hookimpl
def rlnb_run_started(run_dir: Path, manifest: Manifest) -> None:
    WANDB.start(run_dir, manifest, *(["offline"] if OFFLINE in manifest.tags else []))


@hookimpl
def rlnb_run_finished() -> None:
    WANDB.finish()
