"""A gateway like that of hosted notebooks: only nginx in front of the server can be reached, and only below a path."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

CONF = """
worker_processes 1;
error_log {folder}/error.log;
pid {folder}/nginx.pid;
events {{}}
http {{
  access_log {folder}/access.log;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  proxy_max_temp_file_size 0;  # its worker may not write below a test's folder, and would cut what is large
  map $http_upgrade $connection_upgrade {{ default upgrade; '' close; }}
  server {{
    listen 127.0.0.1:{port};
    location {prefix} {{
      proxy_pass {server};
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $connection_upgrade;
      proxy_read_timeout 600s;
      client_max_body_size 64m;
    }}
  }}
}}
"""


@contextlib.contextmanager
def gateway(folder: Path, url: str) -> Iterator[str]:
    """Put nginx in front of a server.

    Args:
        folder: Folder for nginx's files.
        url: URL of the server, with the path prefix.

    Yields:
        The URL behind the gateway.
    """
    folder.mkdir()
    scheme, rest = url.split("://")
    host, prefix = rest.split("/", 1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    conf = folder / "nginx.conf"
    conf.write_text(CONF.format(folder=folder, port=port, prefix=f"/{prefix}", server=f"{scheme}://{host}"))
    nginx = subprocess.Popen(["nginx", "-p", str(folder), "-c", str(conf), "-g", "daemon off;"])
    try:
        deadline = time.monotonic() + 10
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            assert nginx.poll() is None, (folder / "error.log").read_text()
            assert time.monotonic() < deadline, "nginx does not answer"
            time.sleep(0.05)
        yield f"{scheme}://127.0.0.1:{port}/{prefix}"
    finally:
        nginx.terminate()
        nginx.wait(10)
