"""A live view in a real kernel. The tests take the page's part: they send its receipts or withhold them."""

from __future__ import annotations

import time

import pytest

import rlnb
from rlnb.display import live_pictures
from rlnb.display.live_pictures import Shown, clickable, still

SYNTHETIC = """
import threading
from PIL import Image
from rlnb.display.live_pictures import LiveView, Shown

made, looked = [], []

def source():
    if len(made) >= {frames}:
        return None
    made.append(1)
    colour = (len(made) % 256, 10, 10)
    return Shown(pictures=[Image.new("RGB", (64, 48), colour)], lossless=[{lossless}], caption=f"frame {{len(made)}}")

view = LiveView(source, looking=lambda: looked.append(1), over=lambda: len(made) >= {frames} and {ends})
view.start()
"""

ENDED = """
import time
deadline = time.monotonic() + 30
while {}.is_alive():
    assert time.monotonic() < deadline, "the view did not end within 30 s"
    time.sleep(0.05)
"""


def sent(kernel):
    """Return the frames that were sent to the page so far."""
    return [
        m["content"]["data"]["content"]
        for m in kernel.messages
        if m["msg_type"] == "comm_msg" and m["content"]["data"].get("method") == "custom"
    ]


def opened(kernel):
    return next(
        m["content"]["comm_id"]
        for m in kernel.messages
        if m["msg_type"] == "comm_open" and "_esm" in m["content"]["data"]["state"]
    )


def answer(kernel, comm_id, number):
    kernel.send_comm(comm_id, {"method": "custom", "content": {"painted": number}})


def frame(message, number):
    content = message["content"].get("data", {}).get("content", {})
    return isinstance(content, dict) and content.get("number") == number


def test_two_frames_are_sent_and_the_next_follows_a_receipt(kernel):
    kernel.run("from rlnb.display import live_pictures as v; v.PATIENCE_S = 60.0")  # slow receipts are not lost
    kernel.run(SYNTHETIC.format(frames=1000, lossless=False, ends=False))
    kernel.until(lambda m: frame(m, 1))
    time.sleep(1.0)
    kernel.run("pass")
    assert [message["number"] for message in sent(kernel)] == [0, 1]
    comm_id = opened(kernel)
    for number in range(5):
        answer(kernel, comm_id, number)
        message = kernel.until(lambda m, number=number: frame(m, number + 2))
    assert bytes(message["buffers"][0]).startswith(b"\xff\xd8"), "JPEG for colours"
    assert message["content"]["data"]["content"]["caption"] == "frame 7"
    assert int(kernel.run("print(view.painted)")) == 5
    kernel.run("view.stop()")


def test_a_movement_on_a_picture_reaches_the_source(kernel):
    kernel.run(SYNTHETIC.format(frames=1000, lossless=False, ends=False))
    kernel.run("gestures = []; view._turn = gestures.append")
    comm_id = opened(kernel)
    for content in ({"right": 0.5, "down": 0, "zoom": 1.25}, {"reset": True}):
        kernel.send_comm(comm_id, {"method": "custom", "content": content})
    assert kernel.run("for one in gestures: print(one.right, one.down, one.zoom, one.reset)").split("\n")[:2] == [
        "0.5 0.0 1.25 False",
        "0.0 0.0 1.0 True",
    ]
    kernel.run("view.stop()")


def test_a_lost_receipt_does_not_stop_the_stream(kernel):
    kernel.run(SYNTHETIC.format(frames=1000, lossless=False, ends=False))
    kernel.until(lambda m: frame(m, 2), timeout_s=live_pictures.PATIENCE_S + 10)
    kernel.run("view.stop()")


def test_the_last_picture_stays_after_the_end_and_lossless_frames_are_sent_as_png(kernel):
    kernel.run(SYNTHETIC.format(frames=1, lossless=True, ends=True))
    last = kernel.until(
        lambda m: m["msg_type"] == "update_display_data" and "image/png" in m["content"]["data"], timeout_s=20
    )
    assert last["content"]["data"]["image/png"]
    first = next(m for m in kernel.messages if frame(m, 0))
    assert bytes(first["buffers"][0]).startswith(b"\x89PNG")
    kernel.run(ENDED.format("view"))


def test_running_the_cell_again_ends_its_earlier_view(kernel):
    code = SYNTHETIC.format(frames=1000, lossless=False, ends=False)
    kernel.run(code)
    kernel.run("first = view")
    kernel.run(code)
    kernel.run(ENDED.format("first"))
    assert "True" in kernel.run("print(view.is_alive())")
    kernel.run("view.stop()")


def test_no_frame_is_requested_while_no_page_shows_the_view(kernel):
    kernel.run("import rlnb.display.live_pictures as v; v.GONE_S = 1.5")
    kernel.run(SYNTHETIC.format(frames=1000, lossless=False, ends=False))
    time.sleep(3.0)
    before = int(kernel.run("print(len(looked))"))
    assert before >= 1
    time.sleep(2.0)
    assert int(kernel.run("print(len(looked))")) == before
    answer(kernel, opened(kernel), -1)  # a page opens again
    time.sleep(1.5)
    assert int(kernel.run("print(len(looked))")) > before
    kernel.run("view.stop()")


def test_a_kernel_that_hears_no_page_while_it_is_busy_goes_on(kernel):
    kernel.run("import rlnb.display.live_pictures as v, time; v.GONE_S = v.PATIENCE_S = 0.2")
    kernel.run(SYNTHETIC.format(frames=1000, lossless=False, ends=False))
    kernel.run("time.sleep(3.5)")  # it counts as busy from the third second on
    before = len(sent(kernel))
    kernel.run("time.sleep(4)")
    assert len(sent(kernel)) > before + 1
    kernel.run("view.stop()")


def test_a_report_gets_one_picture_or_an_error():
    from PIL import Image

    shown = Shown(pictures=[Image.new("RGB", (4, 3)), Image.new("RGB", (2, 5))], lossless=[False, False], caption="")
    waiting = iter([None, None, shown])
    assert still(lambda: next(waiting), looking=lambda: None, over=lambda: False, timeout_s=5).size == (6, 5)
    with pytest.raises(rlnb.RlnbError, match="ended before it took a picture"):
        still(lambda: None, looking=lambda: None, over=lambda: True, timeout_s=5)
    with pytest.raises(rlnb.RlnbError, match=r"No picture arrived within 0\.3 s"):
        still(lambda: None, looking=lambda: None, over=lambda: False, timeout_s=0.3)


# -- clickable -------------------------------------------------------------------------------------------------------


def test_a_click_is_told_in_shares_of_the_picture():
    clicks = []
    widget = clickable(lambda x, y: clicks.append((x, y)))
    widget.value = b"png"
    widget._handle_custom_msg({"x": 0.25, "y": 1}, [])
    assert clicks == [(0.25, 1.0)]
