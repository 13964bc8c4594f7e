"""Two users of a real JupyterHub in Chromium: live curves below the proxy's path, and nothing of the other user."""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hub import PASSWORD, PREFIX, PROXY, USERS, hub
from lab import Lab, in_browser, pages, write_notebook

PACKAGE = importlib.util.find_spec("rlnb_jupyterlab")
PAGES = Path(PACKAGE.origin).parent / "labextension" if PACKAGE and PACKAGE.origin else Path("nowhere")

pytestmark = [
    *in_browser("jupyterhub", "jupyterlab", "rlnb_jupyterlab"),
    pytest.mark.skipif(not PROXY, reason="configurable-http-proxy is not installed here, set RLNB_HUB_PROXY"),
    pytest.mark.skipif(not (PAGES / "package.json").exists(), reason="the pages are not built: make extension"),
]

TRAIN = """
import rlnb
run = rlnb.train("Echo", library="echo", agent={"iteration_s": 0.2}, max_iterations=900)
print(run.id)
"""
WATCH = "run.watch()"
LIST = "print(*[run.id for run in rlnb.runs()])"
END = "run.cancel(); run.wait(30)"
POINTS = """() => {
  const plot = document.querySelector(".js-plotly-plot");
  return plot && plot.data ? plot.data.reduce((sum, trace) => sum + trace.x.length, 0) : 0;
}"""
MORE = "(before) => { const now = (" + POINTS + ")(); return now > before ? now : 0; }"


@pytest.fixture
def shared(tmp_path: Path) -> str:
    """A JupyterLab application folder with the pages built here."""
    folder = tmp_path / "share" / "jupyter"
    (folder / "labextensions").mkdir(parents=True)
    (folder / "labextensions" / "rlnb-jupyterlab").symlink_to(PAGES)
    return os.pathsep.join(filter(None, [str(folder), os.environ.get("JUPYTER_PATH", "")]))


def sign_in(page: Any, folder: Path, url: str, name: str) -> Lab:
    """Sign a user in, who starts their server, and open their notebook."""
    write_notebook(folder / name / "watch.ipynb", TRAIN, WATCH, LIST, END)
    opened = Lab(page, f"{url}user/{name}/", "")
    page.goto(f"{url}hub/login", wait_until="domcontentloaded")
    page.fill("input[name=username]", name)
    page.fill("input[name=password]", PASSWORD)
    page.click("input[type=submit]")
    page.wait_for_url(f"**{PREFIX}user/{name}/**", timeout=120_000)
    opened.open("watch.ipynb", mode="lab")
    return opened


def more(page: Any, before: int, timeout_s: float) -> int:
    return int(page.wait_for_function(MORE, arg=before, timeout=1000 * timeout_s).json_value())


def test_two_users_watch_their_own_runs_below_the_proxys_path(tmp_path: Path, shared: str) -> None:
    folder = tmp_path / "hub"
    folder.mkdir()
    with hub(folder, {"JUPYTER_PATH": shared}) as url, pages(len(USERS)) as opened:
        labs = {name: sign_in(page, folder, url, name) for name, page in zip(USERS, opened, strict=True)}
        for name, one in labs.items():
            one.run(0)
            one.run(1)
            more(one.page, 10, 40.0)
            one.page.locator(
                ".js-plotly-plot"
            ).first.scroll_into_view_if_needed()  # curves outside of the window are paused
            look(one, f"hub-{name}-curves")
        ids = {name: one.text(0).split()[0] for name, one in labs.items()}
        for name, one in labs.items():  # both train and watch now
            curves_grow(one)
            sees_own_runs_only(one, ids[name], ids[other(name)])
            look(one, f"hub-{name}")
            answer = one.page.request.get(f"{url}user/{other(name)}/api/contents", max_redirects=0)
            assert answer.status in (302, 403, 404), "the server of the other user refuses this one"
        for one in labs.values():
            one.run(3)
            assert one.problems == []


def other(name: str) -> str:
    return next(one for one in USERS if one != name)


def curves_grow(opened: Lab) -> None:
    seen = opened.page.evaluate(POINTS)
    for _ in range(5):
        seen = more(opened.page, seen, 2.0)


def sees_own_runs_only(opened: Lab, own: str, others: str) -> None:
    opened.run(2)
    assert opened.text(2).strip() == own
    opened.page.evaluate("() => void window.jupyterapp.commands.execute('rlnb:panel')")
    opened.page.get_by_role("treeitem", name=re.compile(own)).wait_for(timeout=30_000)
    assert opened.page.get_by_role("treeitem", name=re.compile(others)).count() == 0


def look(opened: Lab, name: str) -> None:
    """Save a screenshot."""
    if screenshots := os.environ.get("RLNB_SCREENSHOTS"):
        opened.screenshot(Path(screenshots, f"{name}.png"))
