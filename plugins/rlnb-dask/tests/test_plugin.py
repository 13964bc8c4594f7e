"""The launchers of this plugin, as rlnb finds them."""

from __future__ import annotations

import subprocess
import sys

from rlnb_dask.plugin import LAUNCHERS
from rlnb_dask.queues.registry import QUEUES

from rlnb.hooks import plugins


def test_rlnb_finds_every_queue_and_the_users_own_cluster() -> None:
    assert {launcher.name for launcher in LAUNCHERS} == {"dask", *(queue.name for queue in QUEUES)}
    assert all(plugins.launcher(launcher.name) is launcher for launcher in LAUNCHERS)


def test_the_launchers_are_listed_without_dask() -> None:
    code = "import sys, rlnb_dask.plugin; print(*{'dask', 'distributed', 'dask_jobqueue'} & set(sys.modules))"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.split() == []
