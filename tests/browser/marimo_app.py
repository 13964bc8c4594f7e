"""A real marimo server in a real Chromium, without a network."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from lab import Lab, browser

CELL = """
@app.cell
def _({takes}):
{body}
    return ({gives})


"""
_START_S = 60.0
TEXT_FALLBACKS = """() => {
  const texts = [...document.querySelectorAll(".output-area, .output, [data-testid='cell-output'], marimo-anywidget")]
    .map((output) => output.textContent);
  return texts.filter((text) => /<(PIL|IPython|rlnb)[.\\w]* |Preview\\(|Widget\\(|Unsupported/.test(text));
}"""
"""Outputs with the text of an object, or marimo's note that it cannot show a widget."""
DEEP = """
  const all = (root) => [...root.querySelectorAll("*")].flatMap((e) => e.shadowRoot ? [e, ...all(e.shadowRoot)] : [e]);
"""
"""A function of the page that lists all elements, also those inside of widgets."""


def write_marimo(path: Path, *cells: tuple[str, str, str]) -> None:
    """Write a notebook of marimo.

    Args:
        path: Path of the file.
        cells: The body of each cell, the names that it takes from others, and those that it gives to others.
    """
    text = "import marimo\n\napp = marimo.App()\n\n"
    for body, takes, gives in cells:
        indented = "\n".join(f"    {line}" if line else "" for line in body.strip().splitlines())
        text += CELL.format(body=indented, takes=takes, gives=f"{gives}," if gives else "")
    path.write_text(text + 'if __name__ == "__main__":\n    app.run()\n')


@contextlib.contextmanager
def marimo(notebook: Path, mode: Literal["run", "edit"], env: dict[str, str]) -> Iterator[Lab]:
    """Serve a notebook as an app (``run``) or in the editor (``edit``), and open a browser on it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    argv = [sys.executable, "-m", "marimo", "-y", "-q", mode, "--headless", "--no-token"]
    argv += ["--host", "127.0.0.1", "--port", str(port), str(notebook)]
    folder = notebook.parent
    # Its settings and its cache are the user's, and must not be.
    own = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / ".config"), "XDG_CACHE_HOME": str(folder / ".cache")}
    with open(folder / "server.log", "wb") as log:
        server = subprocess.Popen(argv, stdout=log, stderr=subprocess.STDOUT, env={**os.environ, **own, **env})
    url = f"http://127.0.0.1:{port}/"
    try:
        deadline = time.monotonic() + _START_S
        while True:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}health", timeout=2):
                break
            assert server.poll() is None, (folder / "server.log").read_text()
            assert time.monotonic() < deadline, (folder / "server.log").read_text()
            time.sleep(0.2)
        with browser(folder) as page:
            opened = Lab(page, url, "")
            page.goto(url, wait_until="domcontentloaded")
            yield opened
    finally:
        server.terminate()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
