"""On macOS and Windows rlnb reads, watches and reports runs, and refuses with a sentence what needs Linux.

The stand-in is the foreign part: after the standard library and the third-party packages are imported, a process loses
the names that the other system does not have. rlnb is imported after that.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rlnb

MISSING = {
    "Darwin": ["os.pidfd_open", "os.sched_getaffinity"],
    "Windows": [
        *("os.pidfd_open", "os.sched_getaffinity", "os.getuid", "os.getgid", "signal.SIGKILL", "signal.SIGUSR1"),
        *("os.O_NONBLOCK", "os.O_NOFOLLOW", "os.O_DIRECTORY", "os.O_CLOEXEC"),
    ],
}
REPORT = "import jupyter_client.manager, nbconvert, papermill"
"""What a report needs of third parties."""
STAND_IN = """
import importlib, json, os, platform, signal, subprocess, sys
import anywidget, ctypes, matplotlib.pyplot, numpy, pandas, PIL.Image, plotly.graph_objects, pluggy, psutil
import rich.console, rich.live, rich.table
import logging, multiprocessing, tempfile, threading, scipy.stats, tsdownsample
import tensorboard.compat.proto.event_pb2
system, missing, root = json.loads(sys.argv[1])
for name in missing:
    module, _, attribute = name.partition(".")
    delattr(sys.modules[module], attribute)
if system == "Windows":
    sys.modules["fcntl"], os.environ["USERNAME"] = None, "ann"
platform.system = lambda: system
sys.platform = {"Darwin": "darwin", "Windows": "win32"}[system]
import rlnb
rlnb.options.root, rlnb.options.display = root, "static"


def refusal(call):
    try:
        call()
    except rlnb.RlnbError as error:
        return str(error)


"""


def on(system: str, root: Path, code: str, imports: str = "") -> dict[str, Any]:
    """Run code after rlnb was imported on another system, and after further imports of third-party packages."""
    argument = json.dumps([system, MISSING[system], str(root)])
    argv = [sys.executable, "-c", imports + STAND_IN + code, argument]
    process = subprocess.run(argv, capture_output=True, text=True, timeout=100)
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout.splitlines()[-1])


@pytest.fixture
def run(root: Path) -> rlnb.Run:
    return rlnb.train("Echo", library="echo", max_iterations=4).wait()


@pytest.mark.parametrize("system", MISSING)
def test_finished_runs_are_read_and_reported(run: rlnb.Run, root: Path, system: str) -> None:
    answers = on(
        system,
        root,
        f"""
run = rlnb.get_run({run.id!r})
run.tags.add("kept")
rlnb.watch(run)
print(json.dumps({{
    "state": run.state, "rows": len(run.metrics.frame("reward")), "tags": list(run.tags),
    "table": len(rlnb.runs(tag="kept").table()), "log": len(run.logs()), "best": run.checkpoints.best("reward").name,
    "groups": repr(rlnb.compare([run], "reward"))[:6], "report": str(rlnb.report(run, root + "/report.html")),
}}))
""",
        REPORT,
    )
    assert (answers["state"], answers["rows"], answers["table"]) == ("completed", 4, 1)
    assert answers["tags"] == ["kept"]
    assert answers["log"]
    assert answers["best"]
    assert run.id in Path(answers["report"]).read_text()


@pytest.mark.parametrize("system", MISSING)
def test_a_call_that_starts_a_worker_is_refused_with_a_fix(run: rlnb.Run, root: Path, system: str) -> None:
    answers = on(
        system,
        root,
        f"""
run = rlnb.get_run({run.id!r})
print(json.dumps({{
    "train": refusal(lambda: rlnb.train("Echo", library="echo")),
    "task": refusal(lambda: rlnb.train("Isaac-Cartpole-Direct")),
    "preview": refusal(lambda: rlnb.preview("Isaac-Cartpole-Direct")),
    "evaluate": refusal(lambda: run.evaluate(episodes=1)),
    "resume": refusal(lambda: run.resume(max_iterations=8)),
    "tensorboard": refusal(lambda: run.tensorboard()),
    "sweep": refusal(lambda: rlnb.sweep("Echo", "echo", space={{"seed": [1, 2]}}, n_trials=1, name="first")),
    "scaling": refusal(lambda: rlnb.studies.scaling_study("Echo", "echo", gpus=[1], num_envs=4)),
    "view": refusal(lambda: rlnb.view("Isaac-Cartpole-Direct")),
}}))
""",
    )
    for verb, message in answers.items():
        assert f"needs Linux, and this is {system}." in (message or ""), f"{verb}: {message}"
        assert "WSL 2" in message, verb
    assert len(run.jobs) == 1, "a refused job leaves no record"
    assert len(rlnb.runs()) == 1


@pytest.mark.parametrize("system", MISSING)
def test_a_run_for_pods_is_written_and_rendered(root: Path, system: str) -> None:
    answers = on(
        system,
        root,
        """
run = rlnb.train("Echo", library="echo", launcher=rlnb.injected(nodes=1))
print(json.dumps({"command": run.job_script(), "state": run.state}))
""",
    )
    assert "rlnb.pods" in answers["command"]
    assert answers["state"] == "queued"
