"""What a cell shows of a 3D view, in a real kernel. The page's half is tested in tests/browser."""

import sys

import pytest

PROCESS = """
import json, os, sys
replies = int(sys.argv[-1])
card = {"task": "Demo", "cameras": {}, "presets": {}, "fields": {}, "assets": {}, "versions": {}}
def send(message):
    os.write(replies, json.dumps(message).encode() + b"\\n")
for line in sys.stdin:
    request = json.loads(line)
    with open(__file__ + ".asked", "a") as asked:
        asked.write(line)
    answer = {"id": request["id"], "ok": True, "value": card, "settled": True}
    if request["verb"] == "view":
        if request["seed"] == 13:
            answer |= {"ok": False, "kind": "rlnb", "error": "RlnbError: viser is not installed"}
        else:
            send({"id": request["id"], "meanwhile": {"port": 4711}})
            sys.stdin.readline()
    send(answer)
"""

WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def python(tmp_path):
    """Command of an interpreter whose worker is that process, which has no simulator."""
    (tmp_path / "process.py").write_text(PROCESS)
    return f"{sys.executable} {tmp_path / 'process.py'}"


def test_a_person_gets_a_widget_that_knows_the_port_and_a_program_gets_text(kernel, python):
    kernel.run(f"import rlnb\nscene = rlnb.view(rlnb.Task(id='<b>Demo</b>'), python={python!r})")
    kernel.run("scene")
    states = [m["content"]["data"]["state"] for m in kernel.messages if m["msg_type"] == "comm_open"]
    assert any(state.get("port") == 4711 and state["title"] == "<b>Demo</b>" for state in states)
    (shown,) = [m["content"]["data"] for m in kernel.messages if m["msg_type"] == "execute_result"]
    assert WIDGET in shown
    assert "<b>" not in shown["text/html"]
    kernel.run("scene", cell=None)
    last = [m["content"]["data"] for m in kernel.messages if m["msg_type"] == "execute_result"][-1]
    assert set(last) == {"text/plain", "text/html"}
    kernel.run("scene.close()")
