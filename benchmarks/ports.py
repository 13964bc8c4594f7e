"""What every port that rlnb opens answers to another user of this machine. Run as root.

    python benchmarks/ports.py

TensorBoard, the 3D view, Optuna's dashboard, a JupyterLab with a kernel, and a training with two ranks run at once.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from results import record

import rlnb

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "rig"))

from other_user import OTHER_UID

START_S = 120.0
ASK = """
import os, socket, sys
"localhost".encode("idna")
os.setuid(int(sys.argv[1]))
for address in sys.argv[2:]:
    host, port = address.rsplit(":", 1)
    try:
        asked = socket.create_connection((host, int(port)), timeout=5)
        asked.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
        asked.settimeout(3)
        print(address, repr(asked.recv(200)))
    except TimeoutError:
        print(address, "silent")
    except OSError:
        print(address, "refused")
"""


def listening(mark: str) -> Iterator[tuple[str, str]]:
    """Yield the address and the command of each port on which a marked process listens."""
    for process in psutil.process_iter():
        try:
            if process.environ().get("RLNB_PORTS") != mark:
                continue
            for connection in process.connections("tcp"):
                if connection.status == psutil.CONN_LISTEN:
                    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(connection.laddr.ip, connection.laddr.ip)
                    yield f"{host}:{connection.laddr.port}", " ".join(process.cmdline())[:90]
        except psutil.Error:
            continue


def verdict(answer: str) -> str:
    """Return what an answer means."""
    if answer in ("refused", "b''"):
        return "closed"
    if answer.startswith("b'HTTP"):
        return "open" if " 200 " in answer[:20] else "asks for a login"
    if "\\xff" in answer[:8]:
        return "ZeroMQ, signed with the kernel's key"
    return answer


def main() -> None:
    """Open everything, ask every port as another user, and record the ports that answer."""
    mark = secrets.token_hex(8)
    folder = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    os.environ.update(RLNB_PORTS=mark, RLNB_ROOT=str(folder / "rlnb"), OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="")
    rlnb.options.root = folder / "rlnb"
    lab = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--port=0", f"--notebook-dir={folder}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    kernel = subprocess.Popen([sys.executable, "-m", "ipykernel_launcher"], stdout=subprocess.DEVNULL)
    run = rlnb.train("Echo", library="echo", max_iterations=3, warm=False).wait(START_S)
    sweep = rlnb.sweep("Echo", "echo", space={"agent.goal": (0.0, 1.0)}, n_trials=1, name="ports", max_iterations=3)
    sweep.wait(START_S)
    ranks = rlnb.train(
        "Echo", library="echo", max_iterations=2000, nproc_per_node=2, agent={"iteration_s": 0.1}, warm=False
    )
    pages = [run.tensorboard(), sweep.dashboard(), rlnb.view("Isaac-Cartpole-Direct", num_envs=2, device="cpu")]
    deadline = time.monotonic() + START_S
    while ranks.state != "running" and time.monotonic() < deadline:
        time.sleep(0.2)
    ports = dict(listening(mark))
    asked = subprocess.run(
        [sys.executable, "-c", ASK, str(OTHER_UID), *ports], capture_output=True, text=True, check=True
    )
    answers = dict(line.split(" ", 1) for line in asked.stdout.splitlines())
    for address, command in ports.items():
        print(f"{address:24} {verdict(answers[address]):40} {command}")
    ranks.cancel()
    for page in pages:
        page.close()
    for process in (lab, kernel):
        process.terminate()
    bad = [ports[address] for address, answer in answers.items() if verdict(answer) not in GOOD]
    record(
        "what the ports that rlnb opens answer to another user",
        f"{len(ports)} ports: {len(ports) - len(bad)} close, ask for a login or are signed; others: {bad or 'none'}",
        "no port answers without a token",
        not bad,
    )


GOOD = ("closed", "asks for a login", "ZeroMQ, signed with the kernel's key")

if __name__ == "__main__":
    main()
