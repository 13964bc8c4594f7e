"""Tests of rlnb.curves.live."""

from __future__ import annotations

import gzip
import json
import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest

import rlnb
from rlnb.curves import live
from rlnb.curves.live import newest_films

PLOTLY = "application/vnd.plotly.v1+json"
SHORT = "library='echo', agent={'iteration_s': 0.05}, max_iterations=20"
SOME_SECONDS = "library='echo', agent={'iteration_s': 0.2}, max_iterations=40"
LONG = "library='echo', agent={'iteration_s': 0.2}, max_iterations=300"
UNTIL = """
import threading, time
deadline = time.monotonic() + 30
while not ({}):
    assert time.monotonic() < deadline, "not reached"
    time.sleep(0.05)
"""
THREADS = "sum(t.name == 'rlnb-watch' for t in threading.enumerate())"


def told(message):
    """Return the content of a message from the dashboard to a page; an empty dict for any other message."""
    found = message["content"].get("data", {}).get("content", {})
    return found if isinstance(found, dict) else {}


def points(message):
    """Return the number of curve points in a message."""
    return sum(count for _, _, count in told(message).get("changes", []))


def look(kernel, view="a-page"):
    """Act like a page that shows the dashboard, and return the widget."""
    widget = opened(kernel, "_esm")
    ask(kernel, widget, ask="all", view=view)
    return widget


def ask(kernel, widget, **message):
    kernel.send_comm(widget, {"method": "custom", "content": message})


def opened(kernel, part):
    """Return the comm of the first widget whose state has that key."""
    return next(
        m["content"]["comm_id"]
        for m in kernel.messages
        if m["msg_type"] == "comm_open" and part in m["content"]["data"]["state"]
    )


def test_in_a_notebook_the_curves_grow_while_the_kernel_is_idle_and_end_as_plain_output(kernel):
    kernel.run(f"import rlnb\nrun = rlnb.train('Echo', {SOME_SECONDS})\nrun.watch()")
    widget = look(kernel)
    layout = told(kernel.until(lambda message: told(message).get("kind") == "layout"))
    assert layout["axis"] == "frames"
    whole = told(kernel.until(lambda message: points(message) > 1))
    ask(kernel, widget, view="a-page", painted=whole["number"])
    added = kernel.until(lambda message: any(how == "add" for _, how, _ in told(message).get("changes", [])))
    assert {how for _, how, _ in told(added)["changes"]} == {"add"}, "only new points, not the whole curve"
    last = kernel.until(lambda message: "image/png" in message["content"].get("data", {}))
    assert last["msg_type"] == "update_display_data"
    assert len(last["content"]["data"][PLOTLY]["data"]) == 4
    assert "completed" in kernel.run("print(run.state)")
    kernel.run(UNTIL.format(f"{THREADS} == 0"))


def test_a_page_gets_plotly_js_when_it_asks(kernel):
    kernel.run(f"import rlnb\nrun = rlnb.train('Echo', {LONG})\nrun.watch()")
    ask(kernel, opened(kernel, "_esm"), ask="plotly.js")
    answer = kernel.until(lambda message: told(message).get("kind") == "plotly.js")
    assert b"plotly.js v" in gzip.decompress(answer["buffers"][0])
    kernel.run("run.cancel()")


def test_an_invisible_page_gets_nothing_until_it_is_visible_again(kernel):
    kernel.run(f"import rlnb, time\nrun = rlnb.train('Echo', {LONG})\nrun.watch()")
    widget = look(kernel)
    kernel.until(lambda message: points(message) > 1)
    ask(kernel, widget, view="a-page", visible=False)
    kernel.run("time.sleep(1)", cell="cell-2")  # messages already sent
    before = len(kernel.messages)
    kernel.run("time.sleep(2)", cell="cell-2")
    assert not [message for message in kernel.messages[before:] if points(message)]
    ask(kernel, widget, view="a-page", visible=True)
    kernel.until(lambda message: points(message) > 1)
    kernel.run("run.cancel()", cell="cell-2")


def test_without_a_page_no_curves_are_kept_until_a_page_opens_again(kernel):
    kernel.run(f"import rlnb, time\nrun = rlnb.train('Echo', {LONG})\nrun.watch()")
    widget = look(kernel)
    kernel.until(lambda message: points(message) > 1)
    held = "(board._stream is not None, [len(run.metrics._reader._files) for run in board._runs])"
    code = "from rlnb.curves import live\nfrom rlnb.display.live_objects import live_objects\n"
    kernel.run(code + "(board,) = live_objects.of(live.Dashboard)", cell="cell-2")
    assert kernel.run(f"time.sleep(2)\nprint({held})", cell="cell-2").startswith("(True")
    ask(kernel, widget, view="a-page", ask="close")
    kernel.run(UNTIL.format(f"{held} == (False, [0])"), cell="cell-2")
    ask(kernel, widget, ask="all", view="another")
    kernel.until(lambda message: points(message) > 1)
    kernel.run("run.cancel()", cell="cell-2")


def test_a_page_chooses_axis_and_metrics(kernel):
    kernel.run(f"import rlnb\nrun = rlnb.train('Echo', {LONG})\nrun.watch()")
    widget = look(kernel)
    kernel.until(lambda message: points(message) > 1)
    ask(kernel, widget, ask="axis", axis="wall_time")
    layout = told(kernel.until(lambda message: told(message).get("axis") == "wall_time"))
    assert layout["horizontal"] == "wall time (s)"
    ask(kernel, widget, ask="metrics", metrics=["fps"])
    layout = told(kernel.until(lambda message: told(message).get("selection") == ["fps"]))
    assert [panel["title"] for panel in layout["panels"]] == ["fps"]
    assert "reward" in layout["metrics"]
    kernel.run("run.cancel()", cell="cell-2")


def test_a_page_cancels_a_run(kernel):
    kernel.run(f"import rlnb\nrun = rlnb.train('Echo', {LONG})\nrun.watch()")
    widget = look(kernel)
    shown = told(kernel.until(lambda message: told(message).get("runs")))
    assert shown["runs"][0]["going"]
    ask(kernel, widget, ask="cancel", run=shown["runs"][0]["id"])
    kernel.until(lambda message: "</b> cancelled" in message["content"].get("data", {}).get("text/html", ""))


def test_a_cell_that_is_run_again_leaves_one_dashboard(kernel):
    code = "from rlnb.curves import live\nrun.watch()"
    kernel.run(f"import rlnb, threading, time\nrun = rlnb.train('Echo', {LONG})", cell="cell-0")
    kernel.run(code)
    kernel.run(code)
    kernel.run(UNTIL.format(f"{THREADS} == 1"), cell="cell-2")
    assert kernel.run(f"time.sleep(1)\nprint({THREADS})\nrun.cancel()", cell="cell-2").strip() == "1"


def test_papermill_waits_and_gets_one_picture_and_no_widget(notebook, root, tmp_path):
    path = notebook("import rlnb", f"run = rlnb.train('Echo', {SHORT})\nrun.watch()", "print(run.state)")
    out = tmp_path / "out.ipynb"
    subprocess.run([sys.executable, "-m", "papermill", str(path), str(out), "--no-progress-bar"], check=True)
    executed = nbformat.read(out, as_version=4)
    bundles = [output.data for output in executed.cells[1].outputs if "data" in output]
    assert [PLOTLY in bundle and "image/png" in bundle for bundle in bundles].count(True) == 1
    assert not [bundle for bundle in bundles if any("widget" in mime for mime in bundle)]
    assert "widgets" not in executed.metadata
    assert "completed" in executed.cells[2].outputs[0].text


def test_plain_python_waits_for_the_run(root):
    run = rlnb.train("Echo", library="echo", agent={"iteration_s": 0.05}, max_iterations=20)
    rlnb.watch(run)
    assert run.state == "completed"


def test_an_interrupt_stops_watching_and_not_the_run(root):
    run = rlnb.train("Echo", library="echo", agent={"iteration_s": 0.1}, max_iterations=1000)
    code = f"""
import rlnb
from rlnb.curves import live
wait = live._wait
live._wait = lambda runs: [print('looking', flush=True), wait(runs)]  # before it plotly is loaded, which takes a while
rlnb.get_run({run.id!r}).watch()
print('went on')
"""
    watcher = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
        # A shell makes its background processes, such as this test, ignore interrupts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert watcher.stdout.readline() == "looking\n"
    time.sleep(0.5)
    watcher.send_signal(signal.SIGINT)
    assert "went on" in watcher.communicate(timeout=60)[0]
    assert run.state == "running"
    run.cancel()
    assert run.wait(timeout_s=60).state == "cancelled"


def test_a_wrong_metric_is_reported_before_waiting(root):
    run = rlnb.train("Echo", library="echo", agent={"iteration_s": 0.1}, max_iterations=100)
    while not run.metrics.names:
        time.sleep(0.1)
    with pytest.raises(rlnb.NotFoundError, match="Did you mean 'reward'"):
        rlnb.watch(run, ["rewrd"])
    assert run.state == "running"
    run.cancel()


def test_no_run_to_watch_is_an_error_with_the_next_call():
    with pytest.raises(rlnb.RlnbError, match=r"rlnb\.train"):
        live.watch([])


def test_papermill_gets_the_end_of_the_log_of_a_run_that_failed(notebook, root, tmp_path):
    path = notebook("import rlnb", "run = rlnb.train('Echo', library='echo', agent={'crash_at': 3})\nrun.watch()")
    out = tmp_path / "out.ipynb"
    subprocess.run([sys.executable, "-m", "papermill", str(path), str(out), "--no-progress-bar"], check=True)
    texts = [output.data.get("text/html", "") for output in nbformat.read(out, as_version=4).cells[1].outputs]
    assert "echo crashes at iteration 3" in texts[-1]


# -- films -----------------------------------------------------------------------------------------------------------


def filmed(run: rlnb.Run) -> rlnb.Run:
    """Return the run as one whose user wanted films, which the library echo cannot make."""
    manifest = run.path / "manifest.json"
    values = json.loads(manifest.read_text()) | {"film_every": 5}
    manifest.unlink()
    manifest.write_text(json.dumps(values))
    return rlnb.Run(run.path)


def test_the_newest_film_of_each_run_is_shown(root: Path) -> None:
    runs = [filmed(rlnb.train("Echo", library="echo", max_iterations=1).wait(60)) for _ in range(2)]
    assert newest_films(runs) == ""
    for run, iterations in zip(runs, ((5, 10), (15,)), strict=True):
        (run.path / "media").mkdir()
        for iteration in iterations:
            (run.path / "media" / f"training-{iteration:06d}.mp4").write_bytes(b"a film")
    (runs[0].path / "media" / "training-000020.part.mp4").write_bytes(b"half")
    (runs[0].path / "media" / "training-last.mp4").write_bytes(b"something else")
    assert [*runs[0].films] == [5, 10]
    page = newest_films(runs)
    assert page.count("<video width=320 ") == 2
    assert f"{runs[0].id}, iteration 10" in page
    assert f"{runs[1].id}, iteration 15" in page


def test_a_run_without_films_is_not_looked_at(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=1).wait(60)
    (run.path / "media").mkdir()
    (run.path / "media" / "training-000005.mp4").write_bytes(b"a film")
    assert newest_films([run]) == ""


# -- memory ----------------------------------------------------------------------------------------------------------


GROWN = """
import gc, json, psutil
from rlnb.curves.live import give_memory_back
from rlnb.metrics.columns import Column

process = psutil.Process()
sizes = [process.memory_info().rss]
columns, kept = [Column() for _ in range(60)], []
for number in range(20_000):
    for column in columns:
        column.append(number, 0.0, 0.0)
    kept.append(bytearray(2000))  # small things that live on between large ones that do not
sizes.append(process.memory_info().rss)
del columns
gc.collect()
sizes.append(process.memory_info().rss)
give_memory_back()
sizes.append(process.memory_info().rss)
print(json.dumps([size - sizes[0] - 2000 * len(kept) for size in sizes[1:]]))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep nothing that could be given back")
def test_memory_of_curves_that_no_page_shows_returns_to_the_system() -> None:
    done = subprocess.run([sys.executable, "-c", GROWN], capture_output=True, text=True, check=True)
    taken, left, given_back = json.loads(done.stdout)
    assert taken > 20e6
    assert given_back < 0.25 * taken
    assert given_back <= left
