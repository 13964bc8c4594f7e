"""A simulator in a job: a stand-in worker that answers from another folder, and a launcher that has no queue."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil

from rlnb.launch.local import LocalLauncher
from rlnb.testing.runs import lives

WORKER = """
import faulthandler, os, signal, socket, sys, threading, time
from pathlib import Path
from rlnb import errors
from rlnb.protocol import requests
from rlnb.configs.card import AgentCard, AssetRoot, TaskCard
from rlnb.version import __version__
from rlnb.worker.requests import serve

def card(request, exchange):
    if request.task.id == "crash":
        print("about to crash", flush=True)
        os.abort()
    if request.task.id == "endless":
        print("an endless loop", flush=True)
        while True:
            pass
    if request.task.id == "error":
        raise errors.RlnbError(f"{request.task.source} has no env config")
    source = Path(request.task.source or "")
    text = source.read_text() if source.is_file() else ""
    helpers = {name: str(len((source.parent / name).read_bytes())) for name in request.task.files}
    more = {} if request.task.id != "train" else dict(agents=dict(rsl_rl=AgentCard()), versions=dict(rlnb=__version__))
    return TaskCard(task=text, num_envs=1, sources={str(source): text, **helpers}, asset_root=exchange.root, **more)

def preview(request, exchange):
    for name in ("first", "last"):
        path = Path(request.out) / f"{name}.npz"
        path.write_bytes(os.urandom(4) * (1 << 18))
        clip = requests.Clip(file=str(path), times_s=(0.0,), labels={}, ranges_m={}, added=False, seconds={})
        if name == "first":
            exchange.tell(clip)
    return clip

def view(request, exchange):
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(0.05)
    address = requests.ViewAddress(port=server.getsockname()[1])
    exchange.tell(address)
    while not exchange.side_calls.answer(lambda push: None):
        try:
            connection, _ = server.accept()
        except TimeoutError:
            continue
        connection.sendall(b"the view got " + connection.recv(1 << 16))
        connection.close()
    return address

faulthandler.register(signal.SIGUSR1)
serve.IDLE_S = 60.0
serve._load = lambda: AssetRoot(path=os.environ.get("RLNB_ASSET_ROOT", ""))
mine = {requests.Card: card, requests.Preview: preview, requests.View: view}
serve._HANDLERS = {**serve._HANDLERS, **mine}
sys.exit(serve.serve(Path(sys.argv[-1])))
"""
PYTHON = """
import os, runpy, sys
if sys.argv[1:4] == ["-P", "-m", "rlnb.worker"]:
    runpy.run_path({worker!r}, run_name="__main__")
else:
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
KERNEL = """
import sys
sys.path[:0] = {folders!r}
import rlnb
from far_node import Node
from rlnb.simulation.pool import pool
from rlnb.protocol import requests
process = pool.running({python!r}, None, {launcher})
process.request(requests.Ping())
print(process.job.folder.path, flush=True)
sys.stdin.read()
"""


class Node(LocalLauncher):
    """Starts the job on this machine, without its queue, as a launcher of a cluster would on a node."""


def interpreter(folder: Path) -> str:
    """Return the command of a Python whose worker is the stand-in."""
    (folder / "worker.py").write_text(WORKER)
    (folder / "python.py").write_text(PYTHON.format(worker=str(folder / "worker.py")))
    return f"{sys.executable} {folder / 'python.py'}"


def processes(job_dir: Path) -> list[psutil.Process]:
    """Return the processes of a job, and those below them."""
    found: set[psutil.Process] = set()
    for process in psutil.process_iter(["cmdline"]):
        argv = process.info["cmdline"] or ()
        if any(str(job_dir) in argument for argument in argv) and "rlnb.simulation.relay" not in argv:
            found.add(process)
            with contextlib.suppress(psutil.NoSuchProcess):  # it may end while it is looked at
                found |= {*process.children(recursive=True)}
    return [process for process in found if lives(process)]


def killed_kernels_job(launcher: str, python: str, root: Path, *plugins: Path) -> Path:
    """Start a kernel with a simulator in a job, and kill the kernel; return the folder of the job.

    Args:
        launcher: Expression that makes the launcher of the job.
        python: Command of the worker's interpreter.
        root: Folder of runs.
        plugins: Folders with further plugins.
    """
    folders = [str(folder) for folder in (Path(__file__).parent, *plugins)]
    program = KERNEL.format(folders=folders, launcher=launcher, python=python)
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "RLNB_ROOT": str(root)},
    ) as kernel:
        assert kernel.stdout is not None
        job_dir = Path(kernel.stdout.readline().decode().strip())
        assert processes(job_dir)
        kernel.kill()
    return job_dir


def until_gone(job_dir: Path, within_s: float) -> float:
    """Wait until no process of a job is left; return the seconds that it took."""
    begin_s = time.monotonic()
    while left := processes(job_dir):
        assert time.monotonic() - begin_s < within_s, left
        time.sleep(0.2)
    return time.monotonic() - begin_s
