"""Each entry of the registry has a launcher class of that name."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from rlnb_dask.queues.registry import QUEUES

import rlnb
from rlnb.hooks import plugins
from rlnb.launchers import LauncherType


@pytest.mark.parametrize("queue", QUEUES, ids=lambda queue: queue.name)
def test_each_name_gives_the_launcher_of_that_name(queue: LauncherType) -> None:
    launcher = plugins.make_launcher(queue.name, {"walltime": "01:00:00"})
    assert launcher.name == queue.name
    assert repr(launcher) == f"rlnb.{queue.name}(walltime='01:00:00')"


@pytest.mark.parametrize("queue", QUEUES, ids=lambda queue: queue.name)
def test_a_misspelt_setting_is_refused_with_a_suggestion(queue: LauncherType) -> None:
    with pytest.raises(rlnb.CheckError, match=r"'partitoin' is not a setting of .*Did you mean 'partition'"):
        plugins.make_launcher(queue.name, {"partitoin": "gpu"})


def test_the_panel_gets_the_tables_of_every_queue() -> None:
    process = subprocess.run(
        [sys.executable, "-m", "rlnb", "launchers", "--json"], capture_output=True, text=True, check=True
    )
    tables = {launcher["name"]: launcher["tables"] for launcher in json.loads(process.stdout)}
    for queue in QUEUES:
        assert [table["title"] for table in tables[queue.name]] == [table.title for table in queue.tables]
    assert tables["slurm"][0]["argv"][0] == "squeue"
    assert tables["local"] == []
