"""Fixtures for all tests: a separate root and queue, a real kernel, and a small disk."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

import rlnb
from rlnb.machine import cuda, gpus

STARTERS = ("launch", "training", "tests")
"""Folders whose tests start runs on every Python: they start, resume, evaluate, cancel and kill. The tests of other
folders need runs for what does not depend on the Python."""

LEAVE_S = 30.0
"""Seconds within which the processes of a run must end after the test. They end shortly after writing the result."""

VIEWER = """
import json, os, sys
replies = os.open(sys.argv[-1], os.O_WRONLY)
card = {"task": "Demo"}
def send(message):
    os.write(replies, json.dumps(message).encode() + b"\\n")
for line in sys.stdin:
    request = json.loads(line)
    with open(__file__ + ".asked", "a") as asked:
        asked.write(line)
    answer = {"id": request["id"], "value": card}
    if request["verb"] == "view":
        if request["payload"]["seed"] == 13:
            answer = {"id": request["id"], "kind": "RlnbError", "error": "viser is not installed"}
        else:
            commands = {"base_velocity": {"lin_vel_x": [-1.0, 1.0]}}
            send({"id": request["id"], "meanwhile": {"port": 4711, "commands": commands}})
            while (line := sys.stdin.readline()) and json.loads(line)["verb"] in ("push", "hold"):
                with open(__file__ + ".asked", "a") as asked:
                    asked.write(line)
                send({"id": json.loads(line)["id"], "value": None})
            answer["value"] = {"port": 4711}
    send(answer)
"""


ISAACLAB_SH = """#!/bin/sh
# Like isaaclab.sh and the python.sh of Isaac Sim: two processes stand between the caller and Python.
test "$1" = -p || exit 2
shift
echo '[INFO] Using Python: "{python}"'
code="import subprocess, sys; sys.exit(subprocess.run([sys.executable, *sys.argv[1:]]).returncode)"
"{python}" -c "$code" "$@"
exit $?
"""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need runs but do not test how runs start: ``make test-kernels`` leaves them out."""
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if item.path.parent.name not in STARTERS and not {"root", "echo_root"}.isdisjoint(fixtures):
            item.add_marker("one_python")


@pytest.fixture
def isaaclab_sh(tmp_path: Path) -> str:
    """Return the command of a stand-in for ``isaaclab.sh -p``, which passes only stdin, stdout and stderr on."""
    script = tmp_path / "isaaclab.sh"
    script.write_text(ISAACLAB_SH.format(python=sys.executable))
    script.chmod(0o755)
    return f"{script} -p"


ISAACLAB_2_3 = Path(__file__).parent / "rig" / "isaaclab_2_3"
"""A training script in the form of Isaac Lab 2.3's, and stand-ins for the packages that it imports."""


@pytest.fixture
def isaaclab_2_3(tmp_path: Path) -> str:
    """Return the command of a stand-in for the ``isaaclab.sh -p`` of Isaac Lab 2.3, under a real Python 3.11."""
    python = _python_3_11()
    if python is None:
        pytest.skip("Python 3.11 is not installed")
    script = tmp_path / "2.3" / "isaaclab.sh"
    script.parent.mkdir()
    packages = ISAACLAB_2_3 / "packages"
    script.write_text(
        f'#!/bin/sh\ntest "$1" = -p || exit 2\nshift\necho "[INFO] Using python from: {python}"\n'
        f'PYTHONPATH="{packages}" "{python}" "$@"\n'
    )
    script.chmod(0o755)
    return f"{script} -p"


def _python_3_11() -> str | None:
    """Return the path of a Python 3.11 on this machine; None if there is none."""
    of_make = Path(__file__).parents[1] / ".venv-3.11" / "bin" / "python"
    for candidate in (sys.executable, str(of_make), "python3.11"):
        line = "import sys; assert sys.version_info[:2] == (3, 11); print(sys.executable)"
        env = {**os.environ, "PYENV_VERSION": "3.11"}
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            return subprocess.check_output(
                [candidate, "-c", line], env=env, text=True, stderr=subprocess.DEVNULL
            ).strip()
    return None


@pytest.fixture
def viewer(tmp_path: Path) -> str:
    """Return the command of a fake worker without a simulator, which answers that it serves a 3D view on port 4711."""
    (tmp_path / "process.py").write_text(VIEWER)
    return f"{sys.executable} {tmp_path / 'process.py'}"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Provide a fresh root and queue without a warm simulator, and check that the test leaves no process."""
    folder = tmp_path / "rlnb-runs"
    monkeypatch.setenv("RLNB_ROOT", str(folder))
    monkeypatch.setenv("RLNB_QUEUE", str(tmp_path / "queue"))
    monkeypatch.setattr(rlnb.options, "root", folder)
    monkeypatch.setattr(rlnb.options, "warm", False)
    yield folder
    if not folder.exists():  # so no process has a path below it, and looking through all processes takes time
        return
    _, left = psutil.wait_procs(_agents_and_workers(folder), timeout=LEAVE_S)
    for process in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    assert not left, f"the test left processes behind, which were killed: {left}"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Provide a function that mounts a tmpfs of a size in KiB. Mounting needs root."""
    disk = tmp_path / "disk"

    def mount(size_kib: int) -> Path:
        disk.mkdir()
        argv = ["mount", "-t", "tmpfs", "-o", f"size={size_kib}k", "tmpfs", str(disk)]
        if subprocess.run(argv, capture_output=True, check=False).returncode:
            pytest.skip("a small disk cannot be mounted without root")
        return disk

    yield mount
    if disk.is_mount():
        subprocess.run(["umount", "-l", str(disk)], check=True)


def _agents_and_workers(root: Path) -> list[psutil.Process]:
    """Return the agents and workers of this root's runs, whose command lines contain a folder below the root."""
    return [
        process
        for process in psutil.process_iter(["cmdline", "status"])
        if process.info["status"] != psutil.STATUS_ZOMBIE
        and any(part.startswith(f"{root}/") for part in process.info["cmdline"] or ())
    ]


@pytest.fixture(scope="module")
def echo_root(tmp_path_factory):
    """Provide a root and a queue for the module, so that its runs do not wait for others on this machine."""
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("root")
        patch.setenv("RLNB_ROOT", str(root))
        patch.setenv("RLNB_QUEUE", str(tmp_path_factory.mktemp("queue")))
        patch.setattr(rlnb.options, "root", root)
        patch.setattr(rlnb.options, "warm", False)
        yield root


@pytest.fixture
def copied(root: Path) -> Callable[[list[rlnb.Run]], list[rlnb.Run]]:
    """Provide a function that copies runs of the module into the test's own root, where the test may change them."""

    def copy(runs: list[rlnb.Run]) -> list[rlnb.Run]:
        for run in runs:
            psutil.wait_procs(_agents_and_workers(run.path), timeout=LEAVE_S)  # they write until they end
        return [rlnb.Run(shutil.copytree(run.path, root / "runs" / run.path.name, symlinks=True)) for run in runs]

    return copy


SETTLE_S = 0.1
"""Seconds to wait for messages that follow a reply."""


class Kernel:
    """A real kernel, driven like by a front end: every request names its cell."""

    def __init__(self, env, kernel_name="python3"):
        from jupyter_client.manager import KernelManager

        # IPC sockets, since another process may take a TCP port between its choice and its use.
        self._sockets = tempfile.TemporaryDirectory()
        self.manager = KernelManager(kernel_name=kernel_name, transport="ipc", ip=f"{self._sockets.name}/kernel")
        self.manager.start_kernel(env=env)
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)
        self.messages = []

    def run(self, code, cell="cell-1", timeout_s=60, metadata=None):
        """Execute a cell and return its printed output. ``metadata`` takes the place of the cell's id."""
        content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False}
        metadata = metadata if metadata is not None else {"cellId": cell} if cell else {}
        message = self.client.session.msg("execute_request", content, metadata=metadata)
        self.client.shell_channel.send(message)
        first = len(self.messages)
        self.until(lambda m: m["content"].get("execution_state") == "idle" and _answers(m, message), timeout_s)
        self.reply(message["header"]["msg_id"], timeout_s)
        time.sleep(SETTLE_S)
        errors = [m for m in self.messages[first:] if m["msg_type"] == "error"]
        assert not errors, "\n".join(errors[0]["content"]["traceback"])
        return "".join(m["content"]["text"] for m in self.messages[first:] if m["msg_type"] == "stream")

    def until(self, wanted, timeout_s=60):
        """Return the first message, received or yet to come, for which ``wanted`` is true."""
        for message in self.messages:
            if wanted(message):
                return message
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            try:
                message = self.client.get_iopub_msg(timeout=0.5)
            except queue.Empty:
                continue
            self.messages.append(message)
            if wanted(message):
                return message
        raise AssertionError(f"no such message within {timeout_s} s; the last one was {self.messages[-1:]}")

    def send_comm(self, comm_id, data):
        """Send a message to a widget, like its view in the browser."""
        content = {"comm_id": comm_id, "data": data}
        self.client.shell_channel.send(self.client.session.msg("comm_msg", content))
        # ipykernel 7.3 may miss a message that arrives during a reply, until the next one (ipython/ipykernel#1554).
        if not any(self.reply(self.client.kernel_info(), timeout_s=5.0) for _ in range(10)):
            raise AssertionError("the kernel does not answer")

    def reply(self, request_id, timeout_s):
        """Wait for the reply to a request; return whether it came in time."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            with contextlib.suppress(queue.Empty):
                if self.client.get_shell_msg(timeout=0.5)["parent_header"].get("msg_id") == request_id:
                    return True
        return False

    def stop(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self._sockets.cleanup()


def _answers(message, request):
    return message["parent_header"].get("msg_id") == request["header"]["msg_id"]


@pytest.fixture
def kernel(root, tmp_path):
    started = Kernel({**os.environ, "IPYTHONDIR": str(tmp_path / "ipython")})
    yield started
    started.stop()


OTHER_SHELL = Path(__file__).parent / "rig" / "other_shell.py"


@pytest.fixture
def kernel_with_shell(root, tmp_path, monkeypatch):
    """Provide a function that starts a kernel whose shell has a class of that name."""
    started = []

    def start(name):
        spec = tmp_path / "jupyter" / "kernels" / name.lower()
        spec.mkdir(parents=True)
        argv = [sys.executable, str(OTHER_SHELL), name, "-f", "{connection_file}"]
        (spec / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": name, "language": "python"}))
        monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
        started.append(Kernel({**os.environ, "IPYTHONDIR": str(tmp_path / "ipython")}, spec.name))
        return started[-1]

    yield start
    for one in started:
        one.stop()


@pytest.fixture
def notebook(tmp_path):
    """Provide a function that writes a notebook of code cells and returns its path."""
    import nbformat

    def write(*cells):
        made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        made.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
        path = tmp_path / "written.ipynb"
        nbformat.write(made, path)
        return path

    return write


@pytest.fixture(scope="session")
def driver_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile a stand-in for NVIDIA's driver library; return its folder."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler for the stand-in for libcuda")
    folder = tmp_path_factory.mktemp("driver")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", folder / cuda.LIBRARY, Path(__file__).with_name("libcuda.c")], check=True
    )
    return folder


@pytest.fixture
def machine(driver_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that gives this machine a driver and GPUs, whose UUIDs end with the given digits."""
    driver = tmp_path / "driver"
    driver.touch()

    def have(uuids: str, visible: str | None = None, *, order: str | None = None, error: int | None = None) -> None:
        gpus._answers.clear()
        monkeypatch.setattr(cuda, "FILES", (str(driver),))
        monkeypatch.setenv("LD_LIBRARY_PATH", str(driver_library))
        monkeypatch.setenv("FAKE_GPUS", uuids)
        monkeypatch.setenv("FAKE_LOG", str(tmp_path / "calls"))
        for name, value in {
            "CUDA_VISIBLE_DEVICES": visible,
            "CUDA_DEVICE_ORDER": order,
            "FAKE_ERROR": error,
        }.items():
            if value is None:
                monkeypatch.delenv(name, raising=False)
            else:
                monkeypatch.setenv(name, str(value))

    return have
