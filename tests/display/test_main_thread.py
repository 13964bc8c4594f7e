"""Whether the thread of an event loop, as that of a kernel, answers."""

import asyncio
import time

from rlnb.display import main_thread
from rlnb.display.main_thread import MainThread


def test_a_thread_is_busy_until_its_loop_runs_again(monkeypatch):
    monkeypatch.setattr(main_thread, "BUSY_S", 0.1)

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
