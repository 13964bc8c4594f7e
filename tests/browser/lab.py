"""A real JupyterLab in a real Chromium, driven like a user: open a notebook, run cells, read the outputs."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), ""
)
BASE_URL = "/hosted/user-1/"
"""Base URL with a path prefix, as in a hosted notebook."""
TRIES = 6
LEAVE_S = 10.0
_OFFLINE = "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
_FLAGS = (
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    f"--host-resolver-rules={_OFFLINE}",
)
_IDLE = """() => {
  const lab = window.jupyterapp, panel = lab && lab.shell.currentWidget;
  const kernel = panel && panel.sessionContext && panel.sessionContext.session && panel.sessionContext.session.kernel;
  return kernel && kernel.status === "idle";
}"""
_STARTED = """(number) => {
  const cell = window.jupyterapp.shell.currentWidget.content.widgets[number];
  return cell.model.executionCount !== null || cell.model.executionState === "running";
}"""
_DONE = """(number) => {
  const cell = window.jupyterapp.shell.currentWidget.content.widgets[number];
  return cell.model.executionCount !== null && cell.model.executionState !== "running";
}"""


def in_browser(*modules: str, timeout: float = 400) -> list[pytest.MarkDecorator]:
    """Return the marks of tests that need a Chromium and these modules, and skip without them."""
    return [
        pytest.mark.browser,
        pytest.mark.slow,
        pytest.mark.timeout(timeout),
        pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium here"),
        *(
            pytest.mark.skipif(importlib.util.find_spec(name) is None, reason=f"{name} is not installed here")
            for name in ("playwright", *modules)
        ),
    ]


class Lab:
    """JupyterLab in a browser.

    Args:
        page: Playwright's page.
        url: URL of the server, without the token.
        token: Token of the server.
    """

    def __init__(self, page: Any, url: str, token: str) -> None:
        self.page, self.url, self.token = page, url, token
        self.problems: list[str] = []
        """What the page said went wrong, and every request that went elsewhere."""
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("request", self._note)

    def _note(self, request: Any) -> None:
        if not request.url.startswith((self.url.split("/", 3)[0] + "//127.0.0.1", "data:", "blob:", "ws://127.0.0.1")):
            self.problems.append(f"requested {request.url}")

    def open(self, notebook: str, timeout_s: float = 90.0, mode: str = "doc") -> None:
        """Open a notebook alone (``doc``), in JupyterLab (``lab``) or in Notebook 7, and wait for its kernel."""
        place = f"notebooks/{notebook}" if mode == "notebook" else f"{mode}/tree/{notebook}"
        self.page.goto(f"{self.url}{place}?token={self.token}&reset", wait_until="domcontentloaded")
        self.page.wait_for_selector(".jp-Notebook", timeout=1000 * timeout_s)
        self.page.wait_for_function(_IDLE, timeout=1000 * timeout_s)

    def run(self, number: int, timeout_s: float = 120.0) -> None:
        """Run a cell and wait for it."""
        self.start(number)
        self.page.wait_for_function(_DONE, arg=number, timeout=1000 * timeout_s)

    def start(self, number: int) -> None:
        """Run a cell. A command is lost while the page is still loading, so it is repeated."""
        from playwright.sync_api import TimeoutError as NotYet

        for _ in range(TRIES):
            self.page.evaluate(
                """(number) => {
                  window.jupyterapp.shell.currentWidget.content.activeCellIndex = number;
                  window.jupyterapp.commands.execute("notebook:run-cell");
                }""",
                number,
            )
            with contextlib.suppress(NotYet):
                self.page.wait_for_function(_STARTED, arg=number, timeout=5000)
                return
        raise AssertionError(f"cell {number} does not start")

    def text(self, number: int) -> str:
        """Return the text output of a cell."""
        outputs = self.page.evaluate(
            "(number) => window.jupyterapp.shell.currentWidget.content.widgets[number].model.outputs.toJSON()", number
        )
        return "".join(str(output.get("text", "")) for output in outputs)

    def save(self) -> None:
        """Save the notebook."""
        self.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")

    def screenshot(self, path: Path) -> Path:
        """Write a screenshot."""
        self.page.screenshot(path=str(path))
        return path


@contextlib.contextmanager
def browser(folder: Path) -> Iterator[Any]:
    """Open a Chromium that reaches this machine only, and yield Playwright's page. Its profile is in the folder."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            str(folder / ".chromium"),
            executable_path=CHROMIUM,
            headless=True,
            args=list(_FLAGS),
            viewport={"width": 1400, "height": 1000},
        )
        yield context.pages[0] if context.pages else context.new_page()
        context.close()


@contextlib.contextmanager
def pages(count: int) -> Iterator[list[Any]]:
    """Open a Chromium that reaches this machine only, and yield pages that share no cookies."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=list(_FLAGS))
        yield [chromium.new_context(viewport={"width": 1400, "height": 1000}).new_page() for _ in range(count)]
        chromium.close()


def write_page_config(folder: Path) -> None:
    """Write settings of JupyterLab below a folder of configuration that keep dialogs and news off its pages."""
    # dash, which Isaac Lab brings, requests a build of JupyterLab. Its dialog takes the focus; the news cover the page.
    config = folder / "labconfig" / "page_config.json"
    config.parent.mkdir(parents=True)
    quiet = {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}
    config.write_text(json.dumps({"buildCheck": False, "buildAvailable": False, **quiet}))


@contextlib.contextmanager
def lab(
    folder: Path, env: dict[str, str] | None = None, *more: str, app: Literal["jupyterlab", "notebook"] = "jupyterlab"
) -> Iterator[Lab]:
    """Serve a folder of notebooks by JupyterLab or Notebook 7, and open a browser on it."""
    with server(folder, env, *more, app=app) as (url, token), browser(folder) as page:
        yield Lab(page, url, token)


@contextlib.contextmanager
def server(
    folder: Path, env: dict[str, str] | None = None, *more: str, app: Literal["jupyterlab", "notebook"] = "jupyterlab"
) -> Iterator[tuple[str, str]]:
    """Serve a folder of notebooks by JupyterLab or Notebook 7, and yield the URL and the token."""
    token = secrets.token_hex(16)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    argv = [sys.executable, "-m", app, "--no-browser", "--allow-root", f"--port={port}"]
    argv += [
        f"--{'LabApp' if app == 'jupyterlab' else 'JupyterNotebookApp'}.expose_app_in_browser=True",
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.base_url={BASE_URL}",
        f"--ServerApp.root_dir={folder}",
    ]
    argv += [
        f"--IdentityProvider.token={token}",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        *more,
    ]
    write_page_config(folder / ".jupyter")
    with open(folder / "server.log", "wb") as log:
        process = subprocess.Popen(
            argv,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {}), "JUPYTER_CONFIG_DIR": str(folder / ".jupyter")},
        )
    url = f"http://127.0.0.1:{port}{BASE_URL}"
    try:
        _wait_for(url, token, folder / "server.log")
        yield url, token
    finally:
        process.terminate()
        try:
            process.wait(LEAVE_S)
        except subprocess.TimeoutExpired:  # jupyter-server 2.21 waits for its own thread after pages reconnect
            process.kill()
            process.wait()


def _wait_for(url: str, token: str, log: Path, timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            with urllib.request.urlopen(f"{url}api/status?token={token}", timeout=2) as answer:
                json.load(answer)
                return
        except OSError:
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.3)


def write_notebook(path: Path, *cells: str) -> None:
    """Write a notebook of code cells."""
    import nbformat

    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    made.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(made, path)
