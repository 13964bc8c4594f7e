"""Two users of a real JupyterHub in Chromium: live curves below the proxy's path, and nothing of the other user."""

from __future__ import annotations

import contextlib
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hub import PASSWORD, PREFIX, PROXY, USERS, hub
from lab import Lab, browser, in_browser, write_notebook

PACKAGE = importlib.util.find_spec("rlnb_jupyterlab")
PAGES = Path(PACKAGE.origin).parent / "labextension" if PACKAGE and PACKAGE.origin else Path("nowhere")

pytestmark = [
    *in_browser("jupyterhub", "jupyterlab", "rlnb_jupyterlab"),
    pytest.mark.skipif(not PROXY, reason="configurable-http-proxy is not installed here, set RLNB_HUB_PROXY"),
    pytest.mark.skipif(not (PAGES / "package.json").exists(), reason="the pages are not built: make extension"),
]

TRAIN = """
import rlnb
run = rlnb.train("Echo-of-{name}", library="echo", agent={{"iteration_s": 0.2}}, max_iterations=600)
"""
WATCH = "run.watch()"
ROOTS = "print([run.task for run in rlnb.runs()])"
END = "run.cancel(); run.wait(30)"
POINTS = """() => {
  const plot = document.querySelector(".js-plotly-plot");
  return plot && plot.data ? plot.data.reduce((sum, trace) => sum + trace.x.length, 0) : 0;
}"""
MORE = "(before) => { const now = (" + POINTS + ")(); return now > before ? now : 0; }"


@pytest.fixture
def pages(tmp_path: Path) -> str:
    """A JupyterLab application folder with the pages built here."""
    shared = tmp_path / "share" / "jupyter"
    (shared / "labextensions").mkdir(parents=True)
    (shared / "labextensions" / "rlnb-jupyterlab").symlink_to(PAGES)
    return os.pathsep.join(filter(None, [str(shared), os.environ.get("JUPYTER_PATH", "")]))


@contextlib.contextmanager
def user(folder: Path, url: str, name: str) -> Iterator[Lab]:
    """Sign a user in with a browser of their own, and open their notebook."""
    write_notebook(folder / name / "watch.ipynb", TRAIN.format(name=name), WATCH, ROOTS, END)
    (folder / name / "chromium").mkdir()
    with browser(folder / name / "chromium") as page:
        opened = Lab(page, f"{url}user/{name}/", "")
        page.goto(f"{url}hub/login", wait_until="domcontentloaded")
        page.fill("input[name=username]", name)
        page.fill("input[name=password]", PASSWORD)
        page.click("input[type=submit]")
        page.wait_for_url(f"**{PREFIX}user/{name}/**", timeout=120_000)
        opened.open("watch.ipynb", mode="lab")
        yield opened


def more(page: Any, before: int, timeout_s: float) -> int:
    return int(page.wait_for_function(MORE, arg=before, timeout=1000 * timeout_s).json_value())


def test_two_users_watch_their_own_runs_below_the_proxys_path(tmp_path: Path, pages: str) -> None:
    folder = tmp_path / "hub"
    folder.mkdir()
    env = {"JUPYTER_PATH": pages, "JUPYTERHUB_SINGLEUSER_APP": "jupyter_server.serverapp.ServerApp"}
    with hub(folder, env) as url:
        for name in USERS:
            with user(folder, url, name) as opened:
                one_user(opened, name)
                status = opened.page.request.get(f"{url}user/{other(name)}/api/status").status
                assert status in (403, 404), "the other user's server refuses this one"
                opened.run(3)
                assert opened.problems == []


def other(name: str) -> str:
    return next(one for one in USERS if one != name)


def one_user(opened: Lab, name: str) -> None:
    """Train and watch, and look at the panel of runs."""
    page = opened.page
    opened.run(0)
    opened.run(1)
    seen = more(page, 10, 40.0)
    for _ in range(5):
        seen = more(page, seen, 2.0)
    opened.run(2)
    assert opened.text(2).strip() == f"['Echo-of-{name}']"
    page.evaluate("() => void window.jupyterapp.commands.execute('rlnb:panel')")
    row = page.get_by_role("treeitem").filter(has_text=f"Echo-of-{name}")
    row.first.wait_for(timeout=30_000)
    assert f"Echo-of-{other(name)}" not in page.inner_text("body")
    if screenshots := os.environ.get("RLNB_SCREENSHOTS"):
        opened.screenshot(Path(screenshots, f"hub-{name}.png"))
