"""The widget in pages that a busy kernel cannot answer, seen from the messages of a real kernel."""

LONG = "library='echo', agent={'iteration_s': 0.2}, max_iterations=300"
UNTIL = """
import time
deadline = time.monotonic() + 30
while not ({}):
    assert time.monotonic() < deadline, "not reached"
    time.sleep(0.05)
"""


def told(message):
    """Return the content of a message from the dashboard to a page; an empty dict for any other message."""
    found = message["content"].get("data", {}).get("content", {})
    return found if isinstance(found, dict) else {}


def state(message):
    """Return the state with which a message opens a widget; an empty dict for any other message."""
    return message["content"].get("data", {}).get("state", {}) if message["msg_type"] == "comm_open" else {}


def points(message):
    """Return the number of curve points in a message."""
    return sum(count for _, _, count in told(message).get("changes", []))


def test_a_busy_kernel_sends_the_curves_unasked_and_plotly_js_once_for_each_page(kernel):
    kernel.run(f"import rlnb\nrun = rlnb.train('Echo', {LONG})")
    for expected in (1, 0):
        before = len(kernel.messages)
        kernel.run("run.watch()\n" + UNTIL.format("run.progress[0] > 5") + "time.sleep(2)", cell="cell-2")
        messages = kernel.messages[before:]
        assert sum(told(message).get("kind") == "plotly.js" for message in messages) == expected
        assert sum(points(message) for message in messages) > 4
    kernel.run("run.cancel()", cell="cell-3")


def test_a_page_that_was_opened_while_the_kernel_is_busy_gets_the_widget_and_all_curves(kernel):
    kernel.run(f"import rlnb, time\nfrom rlnb.curves import live\nlive.AGAIN_S = 1\nrun = rlnb.train('Echo', {LONG})")
    before = len(kernel.messages)
    kernel.run("run.watch()\n" + UNTIL.format("run.progress[0] > 5") + "time.sleep(8)", cell="cell-2")
    kernel.run("run.cancel()", cell="cell-3")
    messages = kernel.messages[before:]
    opens = [message["content"] for message in messages if "_esm" in state(message)]
    first, again = opens[:2]
    assert again["comm_id"] == first["comm_id"] == again["data"]["state"]["model"]
    assert (first["data"]["state"]["again"], again["data"]["state"]["again"]) == (False, True)
    whole = [told(message) for message in messages if told(message).get("kind") == "whole"][-1]
    assert whole["layout"]["axis"] == "frames"
    assert {how for _, how, _ in whole["changes"]} == {"set"}
    assert whole["runs"]


def test_a_page_that_was_closed_is_expected_back(kernel):
    kernel.run(
        f"import rlnb, time\nfrom rlnb.curves import live\nlive.AGAIN_SOON_S = 1\nrun = rlnb.train('Echo', {LONG})"
    )
    kernel.run("run.watch()")
    (widget,) = [m["content"]["comm_id"] for m in kernel.messages if "_esm" in state(m)]
    for ask in ("all", "leave"):
        kernel.send_comm(widget, {"method": "custom", "content": {"ask": ask, "view": "a-page"}})
    before = len(kernel.messages)
    kernel.run("time.sleep(6)", cell="cell-2")
    kernel.run("run.cancel()", cell="cell-3")
    messages = kernel.messages[before:]
    first = next(place for place, message in enumerate(messages) if state(message).get("again"))
    assert any(state(message).get("again") for message in messages[first + 1 :]), "it opens only once"
    assert any(told(message).get("kind") == "curves" for message in messages[first:]), "new points need no answer"
