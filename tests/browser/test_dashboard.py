"""The live dashboard in JupyterLab in Chromium, below a base URL."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, in_browser, lab, write_notebook

pytestmark = in_browser("jupyterlab")

TRAIN = """
import time
import rlnb
runs = [
    rlnb.train("Echo", library="echo", agent={"iteration_s": 0.2}, max_iterations=900, seed=seed,
               launcher=rlnb.launchers.LocalLauncher(max_running=2))
    for seed in (1, 2)
]
"""
WATCH = "rlnb.watch(rlnb.runs())"
BUSY = "time.sleep(6); print('slept')"
KILL = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
END = "[run.cancel() for run in rlnb.runs()]; [run.wait(30) for run in rlnb.runs()]"
PLOTS = "[...document.querySelectorAll('figure:not([hidden]) .js-plotly-plot')]"
TRACES_OF_ALL = f"{PLOTS}.flatMap((plot) => plot.data ?? [])"
POINTS = f"() => {TRACES_OF_ALL}.reduce((sum, trace) => sum + trace.x.length, 0)"
TRACES = f"() => {TRACES_OF_ALL}.length"
AXIS = "() => document.querySelector('.js-plotly-plot').layout.xaxis.title.text"
PAPER = """() => {
  const drawn = document.querySelector(".js-plotly-plot .main-svg");
  return drawn && getComputedStyle(drawn).backgroundColor;
}"""
SEEN_MORE = "(before) => { const now = (" + POINTS + ")(); return now > before ? now : 0; }"


def more(opened: Lab, before: int, timeout_s: float = 15.0) -> int:
    """Wait for more points and return their number."""
    return int(opened.page.wait_for_function(SEEN_MORE, arg=before, timeout=1000 * timeout_s).json_value())


@pytest.fixture
def watching(tmp_path: Path) -> Iterator[Lab]:
    """A page with a notebook that watches two runs."""
    write_notebook(tmp_path / "watch.ipynb", TRAIN, WATCH, BUSY, END, KILL)
    env = {"RLNB_ROOT": str(tmp_path / "rlnb-runs"), "RLNB_QUEUE": str(tmp_path / "queue")}
    with lab(tmp_path, env=env) as opened:
        opened.open("watch.ipynb")
        opened.run(0)
        opened.run(1)
        more(opened, 10, timeout_s=40)
        yield opened
        if opened.page.evaluate("() => Boolean(window.jupyterapp)"):
            opened.run(3)
        assert opened.problems == []


def test_curves_grow_while_the_kernel_idles_and_while_a_cell_runs(watching: Lab, tmp_path: Path) -> None:
    idle = more(watching, more(watching, 0))
    watching.start(2)
    busy = more(watching, more(watching, idle, 5.0), 5.0)
    assert "slept" not in watching.text(2), "the curve grew while the cell ran"
    assert busy > idle
    watching.screenshot(tmp_path / "dashboard.png")


def test_controls_change_what_is_drawn(watching: Lab, tmp_path: Path) -> None:
    page = watching.page
    assert page.evaluate(TRACES) == 8, "two runs, four metrics"
    seed = page.get_by_role("group", name="lines shown").get_by_role("button", name="seed 1")
    seed.click()
    page.wait_for_function(f"({TRACES})() === 4")
    assert seed.get_attribute("aria-pressed") == "false"
    seed.click()
    page.get_by_label("smoothing").fill("0.9")
    page.wait_for_function(f"({TRACES})() === 16")  # the raw curve stays behind the smoothed one
    page.get_by_label("smoothing").fill("0")
    page.get_by_label("x axis").select_option("wall_time")
    page.wait_for_function(f"({AXIS})() === 'wall time (s)'")
    page.get_by_label("mean over seeds").check()
    page.wait_for_function(f"({TRACES})() === 12")  # two edges and a mean for each metric
    page.get_by_label("mean over seeds").uncheck()
    page.get_by_text("metrics", exact=True).click()
    page.wait_for_timeout(7000)  # the first sample of the machine is logged after 5 s
    for name in ("episode_length", "success_rate", "fps"):
        page.get_by_label(name, exact=True).uncheck()
        page.wait_for_timeout(800)
    page.wait_for_function(f"({TRACES})() === 2")
    page.get_by_label("search metrics").fill("SYSTEM")
    assert not page.get_by_label("reward", exact=True).is_visible()
    assert page.get_by_label("system/node0/cpu_cores").is_visible()
    page.get_by_label("log scale").check()
    page.wait_for_function("() => document.querySelector('.js-plotly-plot').layout.yaxis.type === 'log'")
    watching.screenshot(tmp_path / "controls.png")
    page.evaluate("() => window.jupyterapp.commands.execute('apputils:change-theme', {theme: 'JupyterLab Dark'})")
    page.wait_for_function(f"({PAPER})() === 'rgb(17, 17, 17)'")
    watching.screenshot(tmp_path / "dark.png")


def test_a_paused_page_gets_no_messages(watching: Lab) -> None:
    page = watching.page
    page.get_by_role("button", name="Pause").press("Enter")  # with the keyboard
    page.wait_for_timeout(1500)
    before = page.evaluate(POINTS)
    page.wait_for_timeout(2500)
    assert page.evaluate(POINTS) == before
    page.get_by_role("button", name="Resume").click()
    more(watching, before)


def test_cancel_needs_a_second_click(watching: Lab) -> None:
    page = watching.page
    page.get_by_role("button", name="Cancel").first.click()
    page.get_by_role("button", name="Cancel: click again").first.click()
    page.wait_for_function("() => document.body.textContent.includes('cancelled')", timeout=20_000)
    more(watching, page.evaluate(POINTS))  # the other run continues


def test_the_dashboard_comes_back_after_a_reload_of_the_page(watching: Lab, tmp_path: Path) -> None:
    page = watching.page
    watching.save()
    page.wait_for_timeout(1500)
    page.reload(wait_until="domcontentloaded")
    page.wait_for_selector(".js-plotly-plot", timeout=60_000)
    more(watching, more(watching, 10, 30.0))
    watching.screenshot(tmp_path / "reloaded.png")


def test_after_a_restart_of_the_kernel_the_runs_are_still_there(watching: Lab) -> None:
    page = watching.page
    page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    page.wait_for_timeout(3000)
    page.evaluate("""() => { window.jupyterapp.shell.currentWidget.content.widgets[1].model.outputs.clear(); }""")
    page.evaluate(
        """() => { const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
             return kernel.requestExecute({code: "import time, rlnb"}).done; }"""
    )
    watching.run(1)
    more(watching, more(watching, 10, 30.0))


def test_a_page_that_has_lost_its_kernel_says_so(watching: Lab, tmp_path: Path) -> None:
    page = watching.page
    silence = page.get_by_text("The kernel does not answer")
    assert not silence.is_visible()
    watching.start(4)
    silence.wait_for(timeout=40_000)
    watching.screenshot(tmp_path / "lost.png")


def test_when_the_runs_have_ended_a_picture_stays_and_no_widget(watching: Lab, tmp_path: Path) -> None:
    watching.run(3)
    page = watching.page
    page.get_by_label("smoothing").wait_for(state="detached", timeout=30_000)  # the widget has given way to a picture
    page.wait_for_timeout(1000)
    watching.save()
    page.wait_for_timeout(1500)
    saved = json.loads((tmp_path / "watch.ipynb").read_text())
    kinds = [set(output.get("data", {})) for output in saved["cells"][1]["outputs"]]
    assert any({"application/vnd.plotly.v1+json", "image/png"} <= kind for kind in kinds)
    assert not any("widget" in mime for kind in kinds for mime in kind)
    watching.screenshot(tmp_path / "ended.png")
