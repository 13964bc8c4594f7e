"""Whether the thread of an event loop, as that of a kernel, answers."""

import asyncio
import subprocess
import sys
import time

from rlnb.display import front_end
from rlnb.display.front_end import MainThread


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
