import contextlib
import os
import queue
import tempfile
import time

import pytest

import rlnb


@pytest.fixture(scope="module")
def echo_root(tmp_path_factory):
    """A root and a queue of this module's own, so that runs elsewhere on the machine are not waited for."""
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("root")
        patch.setenv("RLNB_ROOT", str(root))
        patch.setenv("RLNB_QUEUE", str(tmp_path_factory.mktemp("queue")))
        patch.setattr(rlnb.options, "root", root)
        patch.setattr(rlnb.options, "warm", False)
        yield root


SETTLE_S = 0.1


class Kernel:
    """A real kernel, driven as a front end does: every request names the cell it comes from."""

    def __init__(self, env):
        from jupyter_client.manager import KernelManager

        # Sockets in a folder of its own: a port that is free when it is chosen may be somebody else's a moment later.
        self._sockets = tempfile.TemporaryDirectory()
        self.manager = KernelManager(kernel_name="python3", transport="ipc", ip=f"{self._sockets.name}/kernel")
        self.manager.start_kernel(env=env)
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)
        self.messages = []

    def run(self, code, cell="cell-1", timeout_s=60):
        """Execute a cell; return what it printed."""
        content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False}
        message = self.client.session.msg("execute_request", content, metadata={"cellId": cell} if cell else {})
        self.client.shell_channel.send(message)
        first = len(self.messages)
        self.until(lambda m: m["content"].get("execution_state") == "idle" and _answers(m, message), timeout_s)
        self.reply(message["header"]["msg_id"], timeout_s)
        time.sleep(SETTLE_S)
        errors = [m for m in self.messages[first:] if m["msg_type"] == "error"]
        assert not errors, "\n".join(errors[0]["content"]["traceback"])
        return "".join(m["content"]["text"] for m in self.messages[first:] if m["msg_type"] == "stream")

    def until(self, wanted, timeout_s=60):
        """Return the first message that is wanted, of those that came and of those to come."""
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
        raise AssertionError(f"not seen within {timeout_s} s; the last was {self.messages[-1:]}")

    def send_comm(self, comm_id, data):
        """Say something to a widget, as its view in the browser would."""
        content = {"comm_id": comm_id, "data": data}
        self.client.shell_channel.send(self.client.session.msg("comm_msg", content))
        # ipykernel 7.3 may miss what comes while it sends a reply, until the next comes (ipython/ipykernel#1554).
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


@pytest.fixture
def notebook(tmp_path):
    """Write a notebook of code cells; return its path."""
    import nbformat

    def write(*cells):
        made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        made.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
        path = tmp_path / "written.ipynb"
        nbformat.write(made, path)
        return path

    return write
