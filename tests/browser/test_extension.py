"""The panel of runs in a real Chromium, behind a gateway and below a path."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from gateway import gateway
from lab import Lab, in_browser, lab, write_notebook

import rlnb

PACKAGE = importlib.util.find_spec("rlnb_jupyterlab")
PAGES = Path(PACKAGE.origin).parent / "labextension" if PACKAGE and PACKAGE.origin else Path("nowhere")
SECONDS = 1000
"""Milliseconds per second; Playwright counts in milliseconds."""

pytestmark = [
    *in_browser("jupyterlab", "rlnb_jupyterlab"),
    pytest.mark.skipif(not (PAGES / "package.json").exists(), reason="the pages are not built: make extension"),
    pytest.mark.skipif(not shutil.which("nginx"), reason="there is no nginx here"),
]


@pytest.fixture
def pages(tmp_path: Path) -> str:
    """A JupyterLab application folder with the pages built here."""
    shared = tmp_path / "share" / "jupyter"
    (shared / "labextensions").mkdir(parents=True)
    (shared / "labextensions" / "rlnb-jupyterlab").symlink_to(PAGES)
    return str(shared)


DRAWING = """
import plotly.graph_objects as go
import rlnb


@rlnb.plugin.hookimpl
def rlnb_panels(run):
    yaw = [[a * b for a in range(8)] for b in range(8)]
    return [rlnb.plugin.Panel(title="What a plugin sees", figure=lambda: go.Figure(go.Heatmap(z=yaw)))]
"""


@pytest.fixture
def plugin(tmp_path: Path) -> str:
    """A folder on the import path with an installed plugin that draws figures."""
    folder = tmp_path / "installed"
    (folder / "drawing-1.0.dist-info").mkdir(parents=True)
    (folder / "drawing.py").write_text(DRAWING)
    (folder / "drawing-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: drawing\nVersion: 1.0\n")
    (folder / "drawing-1.0.dist-info" / "entry_points.txt").write_text("[rlnb]\ndrawing = drawing\n")
    return os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])


@pytest.fixture
def hosted(root: Path, tmp_path: Path, pages: str, plugin: str) -> Iterator[Lab]:
    """JupyterLab behind a gateway, with a notebook open and the panel of runs shown."""
    folder = tmp_path / "work"
    folder.mkdir()
    write_notebook(folder / "work.ipynb", "1 + 1")
    env = {"RLNB_ROOT": str(root), "RLNB_QUEUE": os.environ["RLNB_QUEUE"], "JUPYTER_PATH": pages, "PYTHONPATH": plugin}
    enabled = "--ServerApp.jpserver_extensions={'rlnb_jupyterlab': True}"
    with lab(folder, env, enabled) as found, gateway(tmp_path / "nginx", found.url) as url:
        found.url = url
        found.open("work.ipynb", mode="lab")
        found.page.evaluate("() => void window.jupyterapp.commands.execute('rlnb:panel')")
        yield found


def wait_until(fact: Callable[[], object], within_s: float = 60.0) -> None:
    deadline = time.monotonic() + within_s
    while not fact():
        assert time.monotonic() < deadline, "not reached"
        time.sleep(0.1)


def row(page: Any, run: rlnb.Run) -> Any:
    return page.get_by_role("treeitem", name=re.compile(run.id))


def look(lab: Lab, name: str) -> None:
    """Save a screenshot."""
    if folder := os.environ.get("RLNB_SCREENSHOTS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        lab.screenshot(Path(folder, f"{name}.png"))


def test_a_run_is_started_from_the_form_watched_cancelled_and_reported(hosted: Lab) -> None:
    page = hosted.page
    earlier = rlnb.train("Echo", library="echo", max_iterations=5, tags=["earlier"]).wait(60)
    row(page, earlier).wait_for(timeout=20 * SECONDS)

    # Start from the form: the code is inserted into the notebook and runs there.
    page.evaluate("() => void window.jupyterapp.commands.execute('rlnb:new')")
    form = page.get_by_role("form", name="New RL run")
    form.get_by_placeholder("Isaac-Cartpole-Direct").fill("Echo")
    form.get_by_role("combobox", name="Library").select_option("echo")
    form.get_by_label("Iterations", exact=True).fill("-5")
    page.get_by_text("max_iterations=-5 is not a positive whole number").wait_for(timeout=60 * SECONDS)
    look(hosted, "form-problems")
    form.get_by_label("Iterations", exact=True).fill("2000")
    form.get_by_label("Values of the library's config").fill("iteration_s=0.1")
    page.get_by_text("Ready to start").wait_for(timeout=60 * SECONDS)
    look(hosted, "form")
    page.get_by_role("button", name="Insert and run").click()
    wait_until(lambda: len(rlnb.runs()) == 2)
    run = next(run for run in rlnb.runs() if run.id != earlier.id)
    wait_until(lambda: run.state == "running")
    source = page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.content.model.cells.get(1).sharedModel.getSource()"
    )
    assert "rlnb.train(" in source
    assert "max_iterations=2000" in source

    # Tag the run and write a note.
    row(page, run).dblclick(timeout=20 * SECONDS)
    page.get_by_label("New tag").fill("kept")
    page.get_by_label("New tag").press("Enter")
    page.get_by_label("New note").fill("the reward rises")
    page.get_by_label("New note").press("Enter")
    page.get_by_role("button", name="Remove tag kept").wait_for(timeout=20 * SECONDS)
    page.locator(".rlnb-Note").get_by_text("the reward rises").wait_for(timeout=20 * SECONDS)
    assert [note.text for note in run.notes] == ["the reward rises"]
    page.get_by_role("treeitem").get_by_text(re.compile("kept")).wait_for(timeout=20 * SECONDS)
    look(hosted, "notes")
    page.get_by_label("Name of the run").fill("slow <b>steps</b>")
    page.get_by_label("Name of the run").press("Enter")
    row(page, run).get_by_text("slow <b>steps</b>").wait_for(timeout=20 * SECONDS)
    assert run.name == "slow <b>steps</b>"

    # The table of runs: its columns, and its order.
    page.evaluate("() => void window.jupyterapp.commands.execute('rlnb:table')")
    table = page.locator(".rlnb-TableView")
    table.get_by_text("Columns").click()
    table.get_by_label("agent.iteration_s").check()
    table.get_by_text("Columns").click()
    table.get_by_role("button", name="Sort by agent.iteration_s").click()
    table.get_by_role("treeitem").nth(0).get_by_text("0.1", exact=True).wait_for(timeout=20 * SECONDS)
    look(hosted, "table")
    page.evaluate("() => void window.jupyterapp.shell.currentWidget.close()")

    # Watch: the row is updated, and the tab has curves and the log.
    page.get_by_role("tab", name="Curves").click()
    page.get_by_role("img", name=re.compile("Curve of reward")).wait_for(timeout=30 * SECONDS)
    first = page.get_by_role("img", name=re.compile("Curve of reward")).get_attribute("aria-label")
    wait_until(
        lambda: page.get_by_role("img", name=re.compile("Curve of reward")).get_attribute("aria-label") != first, 30
    )
    look(hosted, "curves")
    page.get_by_role("tab", name="Figures").click()
    page.get_by_role("heading", name="What a plugin sees").wait_for(timeout=60 * SECONDS)
    page.locator(".rlnb-Rendered .js-plotly-plot").wait_for(timeout=30 * SECONDS)
    look(hosted, "figures")
    page.get_by_role("tab", name="Logs").click()
    page.get_by_role("log").get_by_text(re.compile(r"iteration \d+ of 2000")).first.wait_for(timeout=20 * SECONDS)
    look(hosted, "logs")

    # Cancel from the tab.
    page.evaluate("key => void window.jupyterapp.commands.execute('rlnb:cancel', {key})", key_of(run))
    page.get_by_role("dialog").get_by_role("button", name="Cancel the run").click()
    wait_until(lambda: run.state == "cancelled")
    page.get_by_role("treeitem", name=re.compile(f"{run.id}.*cancelled|cancelled.*{run.id}")).wait_for(
        timeout=20 * SECONDS
    )

    # After a reload, the tab opens again.
    time.sleep(3.0)  # JupyterLab saves its layout now and then
    page.goto(f"{hosted.url}lab", wait_until="domcontentloaded")
    page.get_by_role("tab", name="Overview").first.wait_for(timeout=60 * SECONDS)
    row(page, run).wait_for(timeout=20 * SECONDS)

    # Make and show the report.
    page.evaluate("key => void window.jupyterapp.commands.execute('rlnb:report', {key})", key_of(earlier))
    wait_until(lambda: (earlier.path / "report.html").exists(), 90)
    row(page, earlier).dblclick()
    page.get_by_role("tab", name="Report").last.click()
    frame = page.frame_locator("iframe").last
    frame.get_by_text(earlier.id).first.wait_for(timeout=60 * SECONDS)
    look(hosted, "report")
    assert hosted.problems == []


def test_a_report_in_a_cell_is_opened_and_downloaded(hosted: Lab) -> None:
    page = hosted.page
    run = rlnb.train("Echo", library="echo", max_iterations=3).wait(60)
    code = f"import rlnb\nrlnb.get_run({run.id!r}).report()"
    page.evaluate("code => void window.jupyterapp.commands.execute('rlnb:insert', {code, run: true})", code)
    with page.context.expect_page(timeout=90 * SECONDS) as opened:
        page.get_by_role("link", name="Open report.html").click(timeout=90 * SECONDS)
    opened.value.get_by_text(run.id).first.wait_for(timeout=20 * SECONDS)
    assert opened.value.url.startswith(f"{hosted.url}rlnb/runs/")
    with page.expect_download() as saved:
        page.get_by_role("link", name="Download report.html").click()
    assert saved.value.suggested_filename == "report.html"
    look(hosted, "links")
    assert hosted.problems == []


@pytest.mark.isaaclab
def test_cameras_checkpoints_and_3d_of_a_real_training(hosted: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    from rlnb.worker.assets.packs import build

    page = hosted.page
    monkeypatch.setenv("ISAACSIM_ASSET_ROOT", str(build().folder))
    run = rlnb.train("Isaac-Cartpole-Camera-Direct", num_envs=8, max_iterations=2000, agent={"save_interval": 5})
    wait_until(lambda: run.progress[0] > 5, 180)
    row(page, run).dblclick(timeout=20 * SECONDS)

    # Live cameras: one picture follows another.
    page.get_by_role("tab", name="Cameras").click()
    picture = page.get_by_role("img", name="Current camera pictures")
    picture.wait_for(timeout=60 * SECONDS)
    first = picture.get_attribute("src")
    wait_until(lambda: picture.get_attribute("src") != first, 30)
    look(hosted, "cameras")

    # During the training, evaluate and export a checkpoint.
    page.get_by_role("tab", name="Checkpoints").click()
    page.get_by_role("button", name=re.compile("^Export: ")).first.click(timeout=30 * SECONDS)
    wait_until(lambda: any(path.suffix == ".onnx" for path in run.path.rglob("*.onnx")), 120)
    page.get_by_text(re.compile("Export of .*: done")).first.wait_for(timeout=60 * SECONDS)
    look(hosted, "checkpoints")

    # Cancel, then resume in the same run.
    page.evaluate("key => void window.jupyterapp.commands.execute('rlnb:cancel', {key})", key_of(run))
    page.get_by_role("dialog").get_by_role("button", name="Cancel the run").click()
    wait_until(lambda: run.state == "cancelled")
    done = run.progress[0]
    page.get_by_role("button", name=re.compile("^Resume: ")).first.click(timeout=30 * SECONDS)
    page.get_by_role("spinbutton", name="Last iteration").fill(str(done + 2))
    page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    wait_until(lambda: len([job for job in run.jobs if job.kind == "train"]) == 2, 30)
    wait_until(lambda: run.state == "completed", 120)

    # Evaluate the policy and show it in 3D.
    page.get_by_role("button", name=re.compile("^Evaluate: ")).first.click(timeout=30 * SECONDS)
    wait_until(lambda: run.evaluations, 180)
    page.get_by_role("tab", name="Overview").first.click()
    page.get_by_role("table", name=f"Evaluation of {run.evaluations[0].checkpoint}").wait_for(timeout=30 * SECONDS)
    look(hosted, "evaluated")
    page.evaluate("key => void window.jupyterapp.commands.execute('rlnb:scene', {key})", key_of(run))
    page.frame_locator("iframe[title$='in 3D']").locator("canvas").first.wait_for(timeout=120 * SECONDS)
    time.sleep(5.0)  # the meshes arrive one by one
    look(hosted, "scene")
    assert hosted.problems == []


def test_an_alert_is_a_notification_that_opens_the_run(hosted: Lab) -> None:
    page = hosted.page
    row(page, rlnb.train("Echo", library="echo", max_iterations=5).wait(60)).wait_for(timeout=20 * SECONDS)
    run = rlnb.train("Echo", library="echo", max_iterations=400, alerts="iteration >= 0").wait(60)
    notification = page.locator(".Toastify__toast", has_text=f"Alert of {run.id}: iteration >= 0: iteration is ")
    notification.wait_for(timeout=30 * SECONDS)
    look(hosted, "alert")
    notification.get_by_role("button", name="Open").click()
    page.locator(".rlnb-Facts", has_text="iteration >= 0: iteration is ").wait_for(timeout=20 * SECONDS)
    look(hosted, "alert-run")


def test_a_page_shows_what_runs_cost_and_the_list_why_they_wait(hosted: Lab) -> None:
    page = hosted.page
    first = rlnb.train("Echo", library="echo", max_iterations=4000, agent={"iteration_s": 0.1})
    wait_until(lambda: first.progress[0] > 3)
    # It waits, since one run after another has the device.
    second = rlnb.train("Echo", library="echo", max_iterations=20, agent={"iteration_s": 0.05})
    reason = page.get_by_role("treeitem", name=re.compile(f"waits for {first.id}.*{second.id}"))
    reason.wait_for(timeout=20 * SECONDS)
    reason.dblclick()
    page.locator(".rlnb-Facts", has_text=f"waits for {first.id}").wait_for(timeout=20 * SECONDS)
    look(hosted, "waits")
    first.cancel()
    wait_until(lambda: second.state == "completed")

    # The selected run, then all runs.
    page.evaluate("() => void window.jupyterapp.commands.execute('rlnb:goodput')")
    page.get_by_role("heading", name="Goodput of 1 run").wait_for(timeout=20 * SECONDS)
    page.get_by_role("tree").press("Escape")
    page.get_by_role("heading", name="Goodput of 2 runs").wait_for(timeout=20 * SECONDS)
    interruptions = page.get_by_role("table", name="Interruptions")
    interruptions.get_by_role("row", name=re.compile(f"{first.id}.*cancelled")).wait_for(timeout=20 * SECONDS)
    table = page.get_by_role("table", name="Goodput of each run")
    waits = table.get_by_role("row", name=re.compile(second.id)).get_by_role("img", name=re.compile("waiting.*useful"))
    waits.wait_for(timeout=20 * SECONDS)
    look(hosted, "goodput")

    # A run's own tab has the same section.
    table.get_by_role("button", name=first.id).press("Enter")
    page.locator(".rlnb-Tabs-heads").get_by_role("tab", name="Goodput").click()
    page.get_by_role("heading", name="Goodput of 1 run").wait_for(timeout=20 * SECONDS)
    look(hosted, "goodput-run")
    assert hosted.problems == []


def test_the_lineage_of_a_run_leads_to_the_tabs_of_its_relatives(hosted: Lab) -> None:
    page = hosted.page
    first = rlnb.train("Echo", library="echo", max_iterations=5, name="walk").wait(60)
    first.resume(max_iterations=10).wait(60)
    second = rlnb.train("Echo", library="echo", max_iterations=5, init_from=first, name="climb <b>").wait(60)
    third = rlnb.train(like=second, seed=7).wait(60)
    row(page, second).dblclick(timeout=20 * SECONDS)
    tree = page.get_by_role("list", name="Lineage")
    tree.get_by_role("button", name=third.id).wait_for(timeout=20 * SECONDS)
    lines = tree.get_by_role("listitem").all_inner_texts()
    assert [text.split()[0] for text in lines] == ["walk", "climb", third.id]
    assert "resumed from iteration 5" in lines[0]
    assert "initialised with model_9.json" in lines[1]
    assert "repeat, initialised with model_9.json of walk · seed 7" in lines[2]
    tree.scroll_into_view_if_needed()
    look(hosted, "lineage")
    tree.get_by_role("button", name=third.id).click()
    page.locator(".rlnb-RunView:visible h2").get_by_text("Echo").wait_for(timeout=20 * SECONDS)
    shutil.rmtree(second.path)
    page.locator(".rlnb-RunView:visible").get_by_text("deleted or moved").wait_for(timeout=30 * SECONDS)
    look(hosted, "lineage-gone")
    alone = rlnb.train("Echo", library="echo", max_iterations=5).wait(60)
    row(page, alone).dblclick(timeout=20 * SECONDS)
    page.locator(".rlnb-RunView:visible").get_by_role("heading", name="Jobs").wait_for(timeout=20 * SECONDS)
    assert page.locator(".rlnb-RunView:visible .rlnb-Lineage").count() == 0


def test_settings_are_in_the_editor_and_persist(hosted: Lab) -> None:
    page = hosted.page
    run = rlnb.train("Echo", library="echo", max_iterations=20).wait(60)
    line = row(page, run)
    line.wait_for(timeout=20 * SECONDS)
    line.locator("svg.rlnb-Sparkline").wait_for(timeout=20 * SECONDS)
    page.evaluate("() => void window.jupyterapp.commands.execute('settingeditor:open', {query: 'RL runs'})")
    page.get_by_role("checkbox", name="Sparklines").click(timeout=30 * SECONDS)
    line.locator("svg.rlnb-Sparkline").wait_for(state="detached", timeout=20 * SECONDS)
    look(hosted, "settings")
    assert hosted.problems == []


def key_of(run: rlnb.Run) -> str:
    from rlnb_jupyterlab.watcher import key_of

    return key_of(run)


def test_no_external_host_is_contacted_and_an_unauthenticated_client_sees_nothing(hosted: Lab) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=3).wait(60)
    row(hosted.page, run).wait_for(timeout=20 * SECONDS)
    answer = hosted.page.evaluate(
        """async url => (await fetch(url, {credentials: "omit", redirect: "manual"})).status""",
        f"{hosted.url}rlnb/runs/{key_of(run)}",
    )
    assert answer in (0, 302, 403)
    assert hosted.problems == []
