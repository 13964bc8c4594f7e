"""Servers that run next to the kernel: how they start, are replaced, and end with the program that started them."""

from __future__ import annotations

import socket
import subprocess
import sys
import urllib.request

import pytest

import rlnb
from rlnb.display.server import Sidecar

LATE = """
import http.server, sys, time
port = int(sys.argv[1])
print(f"Listening on http://127.0.0.1:{port}/", file=sys.stderr, flush=True)
time.sleep(1)
if sys.argv[2] == "listen":
    http.server.HTTPServer(("127.0.0.1", port), http.server.SimpleHTTPRequestHandler).serve_forever()
"""


def test_a_server_that_prints_its_address_before_it_listens_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    server = Sidecar("the late server", [sys.executable, "-c", LATE, port, "listen"])
    urllib.request.urlopen(server.url, timeout=5).close()
    server.close()
    with pytest.raises(rlnb.RlnbError, match="the late server did not start"):
        Sidecar("the late server", [sys.executable, "-c", LATE, port, "leave"])


QUICK = """
import http.server, sys
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
print(f"Listening on http://127.0.0.1:{server.server_port}/", file=sys.stderr, flush=True)
server.serve_forever()
"""


def test_a_server_that_ends_at_once_is_reported_with_its_last_lines():
    with pytest.raises(
        rlnb.RlnbError, match=r"the bad server did not start. Its last lines of output:\n  no such page"
    ):
        Sidecar("the bad server", [sys.executable, "-c", "import sys; sys.exit('no such page')"])


def test_rerunning_a_cell_closes_the_server_of_its_previous_run(kernel):
    kernel.run("from rlnb.display.server import Sidecar", cell="cell-0")
    start = f"import sys\nprint(Sidecar('the quick server', [sys.executable, '-c', {QUICK!r}]).port)"
    first, second = int(kernel.run(start)), int(kernel.run(start))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", first), timeout=5)
    socket.create_connection(("127.0.0.1", second), timeout=5).close()


def test_a_server_ends_with_its_program(tmp_path):
    code = (
        "import sys\nfrom rlnb.display.server import Sidecar\n"
        f"server = Sidecar('the quick server', [sys.executable, '-c', {QUICK!r}])"
    )
    program = subprocess.run(
        [sys.executable, "-c", f"{code}\nprint(server.port)"], capture_output=True, text=True, cwd=tmp_path, timeout=60
    )
    assert program.returncode == 0, program.stderr
    with socket.socket() as client:
        assert client.connect_ex(("127.0.0.1", int(program.stdout))) != 0, "the server outlived its program"


# -- frame -----------------------------------------------------------------------------------------------------------


WIDGET = "application/vnd.jupyter.widget-view+json"


def test_a_notebook_gets_a_widget_with_the_port_and_a_program_gets_text(kernel, viewer):
    kernel.run(f"import rlnb\nscene = rlnb.view(rlnb.Task(id='<b>Demo</b>'), python={viewer!r})")
    kernel.run("scene")
    states = [m["content"]["data"]["state"] for m in kernel.messages if m["msg_type"] == "comm_open"]
    assert any(state.get("port") == 4711 and state["title"] == "<b>Demo</b> in 3D" for state in states)
    (shown,) = [m["content"]["data"] for m in kernel.messages if m["msg_type"] == "execute_result"]
    assert WIDGET in shown
    assert "<b>" not in shown["text/html"]
    kernel.run("scene", cell=None)
    last = [m["content"]["data"] for m in kernel.messages if m["msg_type"] == "execute_result"][-1]
    assert set(last) == {"text/plain", "text/html"}
    kernel.run("scene.close()")
