"""A real JupyterHub with two users, who share an account of this machine and have homes and runs of their own."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from lab import write_page_config

PASSWORD = "hub-of-a-test"
USERS = ("ann", "bob")
PREFIX = "/hub-of-lab/"
"""Base URL of the hub. The pages of a user are below ``/hub-of-lab/user/ann/``."""
PROXY = os.environ.get("RLNB_HUB_PROXY") or shutil.which("configurable-http-proxy") or ""
"""Command of the proxy, which npm installs: ``npm install configurable-http-proxy``."""
_START_S = 90.0
_CONFIG = """
c.JupyterHub.bind_url = "http://127.0.0.1:{port}{prefix}"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{hub}"
c.JupyterHub.db_url = "sqlite:///{folder}/hub.sqlite"
c.JupyterHub.cookie_secret_file = "{folder}/cookie_secret"
c.JupyterHub.cleanup_servers = True
c.ConfigurableHTTPProxy.command = "{proxy}"
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api}"
c.ConfigurableHTTPProxy.pid_file = "{folder}/proxy.pid"
c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = "{password}"
c.Authenticator.allowed_users = {users!r}
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = "{folder}/{{username}}"
c.Spawner.cmd = ["{python}", "-m", "jupyterhub.singleuser"]
c.Spawner.args = [
    "--allow-root",
    "--LabApp.expose_app_in_browser=True",
    "--ServerApp.jpserver_extensions={{'rlnb_jupyterlab': True}}",
]
c.Spawner.env_keep = {env!r}
c.Spawner.environment = {{
    "HOME": lambda spawner: "{folder}/" + spawner.user.name,
    "IPYTHONDIR": lambda spawner: "{folder}/" + spawner.user.name + "/.ipython",
    "RLNB_ROOT": lambda spawner: "{folder}/" + spawner.user.name + "/rlnb-runs",
    "RLNB_QUEUE": lambda spawner: "{folder}/" + spawner.user.name + "/queue",
    "JUPYTER_CONFIG_DIR": lambda spawner: "{folder}/" + spawner.user.name + "/.jupyter",
}}
c.Spawner.http_timeout = c.Spawner.start_timeout = 90
"""


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@contextlib.contextmanager
def hub(folder: Path, env: dict[str, str]) -> Iterator[str]:
    """Serve a hub, and yield its URL with the path prefix. Each user's home is ``folder/NAME``."""
    port, hub_port, api = _free_ports(3)
    kept = sorted({*env, "PATH", "PYTHONPATH", "JUPYTER_PATH", "LANG", "CUDA_VISIBLE_DEVICES"})
    config = folder / "jupyterhub_config.py"
    config.write_text(
        _CONFIG.format(
            port=port,
            hub=hub_port,
            api=api,
            prefix=PREFIX,
            folder=folder,
            proxy=PROXY,
            password=PASSWORD,
            users=set(USERS),
            python=sys.executable,
            env=kept,
        )
    )
    for name in USERS:
        write_page_config(folder / name / ".jupyter")
    with open(folder / "hub.log", "wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterhub", "-f", str(config)],
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **env, "CONFIGPROXY_AUTH_TOKEN": PASSWORD},
            cwd=folder,
        )
    url = f"http://127.0.0.1:{port}{PREFIX}"
    try:
        deadline = time.monotonic() + _START_S
        while True:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}hub/login", timeout=2):
                break
            assert server.poll() is None, (folder / "hub.log").read_text()
            assert time.monotonic() < deadline, (folder / "hub.log").read_text()
            time.sleep(0.3)
        yield url
    finally:
        server.terminate()  # it ends the users' servers and the proxy too
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
