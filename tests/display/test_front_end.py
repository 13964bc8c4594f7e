"""Tests of rlnb.display.front_end."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from PIL import Image

from rlnb.display import front_end
from rlnb.display.front_end import MainThread, html_of

RIG = Path(__file__).parents[1] / "rig" / "other_shell.py"
_SPEC = importlib.util.spec_from_file_location("other_shell", RIG)
other_shell = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(other_shell)

ASK = "from rlnb.display import front_end\nprint('live', front_end.is_live())"
STARTED_FROM_A_NOTEBOOK = {"JPY_SESSION_NAME": "other.ipynb"}


def printed(path):
    return nbformat.read(path, as_version=4).cells[0].outputs[0].text.strip()


def run(*argv):
    subprocess.run([sys.executable, "-m", *argv], check=True, env={**os.environ, **STARTED_FROM_A_NOTEBOOK})


def test_a_cell_of_a_front_end_is_live(kernel):
    assert kernel.run(ASK, cell="cell-1").strip() == "live True"


def test_code_without_a_cell_is_not_live(kernel):
    assert kernel.run(ASK, cell="").strip() == "live False"


def test_papermill_is_not_live_even_when_started_from_a_notebook(notebook, tmp_path):
    run("papermill", str(notebook(ASK)), str(tmp_path / "out.ipynb"), "--no-progress-bar")
    assert printed(tmp_path / "out.ipynb") == "live False"


def test_nbconvert_is_not_live(notebook, tmp_path):
    argv = ("--execute", "--to", "notebook", "--output", str(tmp_path / "out.ipynb"), str(notebook(ASK)))
    run("nbconvert", *argv)
    assert printed(tmp_path / "out.ipynb") == "live False"


def test_plain_python_is_not_live():
    assert not front_end.is_live()


PICTURES = """
import numpy as np, rlnb
from PIL import Image
from rlnb.cameras.preview import Preview
from rlnb.display.status import status

rgb = np.random.default_rng(0).integers(0, 255, (2, 2, 24, 32, 3), np.uint8)
with status("Previewing Puck") as show:
    show(Image.fromarray(rgb[0, 0]))
Preview(task="Puck", clip={"camera": {"rgb": rgb}}, times_s=(0.0, 0.5), envs=(0, 1), state=np.zeros((2, 2, 3)),
        labels={}, ranges_m={}, noisy=(), steps=30, added=False, findings=(), task_findings=(), seconds={})
"""
CURVES = """
run = rlnb.train("Echo", library="echo", agent={"iteration_s": 0.02}, max_iterations=40)
run.watch()
"""
FIGURE = "run.wait(); run.plot()"
WIDGET = "application/vnd.jupyter.widget-view+json"


def bundles(kernel):
    """Return the mime bundles that a front end got, also those that replace others."""
    return [m["content"]["data"] for m in kernel.messages if m["msg_type"] in SHOWN]


SHOWN = ("display_data", "execute_result", "update_display_data")


def text_fallbacks(kernel):
    """Return the bundles with nothing but text."""
    return [bundle for bundle in bundles(kernel) if set(bundle) == {"text/plain"}]


def reprs(kernel):
    """Return the texts of objects, for a person, that a console shows which knows pictures and text, but no HTML."""
    texts = [bundle["text/plain"] for bundle in bundles(kernel) if "image/png" not in bundle]
    return [text for text in texts if text.startswith("<")]


@pytest.mark.parametrize("name", list(other_shell.METADATA))
def test_a_shell_of_another_front_end_gets_pictures_progress_and_curves_without_a_widget(kernel_with_shell, name):
    kernel = kernel_with_shell(name)
    metadata = other_shell.METADATA[name]
    assert kernel.run("print(type(get_ipython()).__name__)", metadata=metadata).strip() == name
    assert kernel.run(ASK, metadata=metadata).strip() == "live False"
    for cell in (PICTURES, CURVES, FIGURE):
        kernel.run(cell, metadata=metadata)
    shown = bundles(kernel)
    assert sum("image/png" in bundle for bundle in shown) == 4, "an interim picture, a preview and two figures"
    assert any("iteration 40 of 40" in bundle.get("text/html", "") for bundle in shown), "the progress"
    assert any(bundle["text/plain"].count("iteration 40 of 40") for bundle in shown), "the progress in a text console"
    assert not any(WIDGET in bundle for bundle in shown)
    assert text_fallbacks(kernel) == reprs(kernel) == []


@pytest.mark.parametrize("metadata", [other_shell.VS_CODE, other_shell.JUPYTERLAB], ids=["VS Code", "JupyterLab"])
def test_a_front_end_with_widgets_gets_pictures_and_live_curves(kernel, metadata):
    assert kernel.run(ASK, metadata=metadata).strip() == "live True"
    for cell in (PICTURES, CURVES):
        kernel.run(cell, metadata=metadata)
    assert sum("image/png" in bundle for bundle in bundles(kernel)) >= 2, "an interim picture and a preview"
    assert any(WIDGET in bundle for bundle in bundles(kernel))
    assert text_fallbacks(kernel) == []


def test_the_cell_of_colab_is_known_though_it_is_not_live(kernel_with_shell):
    kernel = kernel_with_shell("Shell")
    code = "from rlnb.display import front_end\nprint(front_end.cell()[0])"
    assert kernel.run(code, metadata=other_shell.METADATA["Shell"]).strip() == "XU0o_w7y2BQa"


def test_a_shell_without_a_kernel_is_no_notebook():
    code = """
from IPython.core.interactiveshell import InteractiveShell
InteractiveShell.instance()
from rlnb.display import front_end
print(front_end.in_notebook(), front_end.is_live())
"""
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False False"


# -- html ------------------------------------------------------------------------------------------------------------


def test_own_html_comes_before_a_picture_and_a_picture_before_text():
    assert html_of({"text/html": "<b>1</b>", "image/png": "AAAA", "text/plain": "one"}, raw=True) == "<b>1</b>"
    page = html_of({"image/png": "AAAA", "text/plain": "curves of <b>"}, raw=True)
    assert page == "<img alt='curves of &lt;b&gt;' src='data:image/png;base64,AAAA'>"
    assert html_of({"text/plain": "<b>"}, raw=True) == "&lt;b&gt;"


def test_empty_html_is_html():
    assert html_of({"text/html": "", "text/plain": "waits"}, raw=True) == ""


def test_an_object_is_shown_as_it_is_in_a_notebook():
    assert html_of(Image.new("RGB", (4, 4))).startswith("<img alt='Image' src='data:image/png;base64,iVBOR")
    assert html_of("a < b") == "a &lt; b"


# -- main thread -----------------------------------------------------------------------------------------------------


def test_a_thread_is_busy_until_its_loop_runs_again(monkeypatch):
    monkeypatch.setattr(front_end, "BUSY_S", 0.1)

    async def cell():
        thread = MainThread()
        assert not thread.is_busy()
        time.sleep(0.2)  # code of a cell
        assert thread.is_busy()
        await asyncio.sleep(0)
        assert not thread.is_busy()

    asyncio.run(cell())


def test_a_thread_without_a_loop_hears_no_page():
    assert MainThread().is_busy()


def test_no_ipython_is_needed():
    code = "import sys; sys.modules['IPython'] = None; from rlnb.display.front_end import MainThread; MainThread()"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_cell_that_awaits_something_is_busy_although_its_loop_runs(kernel):
    kernel.run("import asyncio\nfrom rlnb.display import front_end\nfront_end.BUSY_S = 0.5")
    kernel.run("thread = front_end.MainThread()")
    told = kernel.run(
        "before = thread.is_busy()\nawait asyncio.sleep(1)\nprint(before, thread.is_busy())", cell="cell-2"
    )
    assert told.split() == ["False", "True"]
    look = "[thread.is_busy(), front_end.time.sleep(0.1), thread.is_busy()][-1]"
    kernel.run("import threading\ntold = []\nlook = lambda: told.append(" + look + ")")
    kernel.run("threading.Timer(1, look).start()", cell="cell-3")
    time.sleep(2)
    assert kernel.run("print(told)", cell="cell-4").split() == ["[False]"]


# -- place -----------------------------------------------------------------------------------------------------------


CODE = """
from PIL import Image
from rlnb.display import front_end
there = front_end.show_place({"text/html": "<b>1</b>", "text/plain": "one"}, raw=True)
there.update(Image.new("RGB", (4, 4)))
"""


def test_a_value_is_replaced_in_its_place(kernel):
    kernel.run(CODE)
    shown, replaced = (m for m in kernel.messages if "data" in m["content"])
    assert shown["content"]["data"] == {"text/html": "<b>1</b>", "text/plain": "one"}
    assert "image/png" in replaced["content"]["data"]
    assert replaced["content"]["transient"] == shown["content"]["transient"]
