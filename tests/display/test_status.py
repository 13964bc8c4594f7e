"""The status line of a waiting cell."""

import pytest

from rlnb.display.status import note, status


def test_a_log_gets_one_line_without_a_spinner(capsys):
    with status("Reading <b>it</b>") as show:
        show("a picture")
    assert capsys.readouterr().err == "Reading <b>it</b> ...\n"


def test_an_error_propagates():
    with pytest.raises(LookupError, match="no such card"), status("Reading"):
        raise LookupError("no such card")


def test_in_a_notebook_the_line_is_escaped_and_shows_the_duration_of_a_long_wait(kernel):
    code = "import time\nfrom rlnb.display.status import status\nwith status('Reading <b>'):\n    time.sleep({})"
    kernel.run(code.format(0.6))
    pages = [m["content"]["data"]["text/html"] for m in kernel.messages if "data" in m["content"]]
    assert pages[0] == "<i>Reading &lt;b&gt; ...</i>"
    assert pages[-1] == "<i>Reading &lt;b&gt;: 0.6 s</i>"
    kernel.run(code.format(0))
    assert [m["content"]["data"]["text/html"] for m in kernel.messages if "data" in m["content"]][-1] == ""


def test_a_text_with_brackets_is_no_markup(capsys):
    with status("[/nope]"):
        pass
    assert "[/nope] ..." in capsys.readouterr().err


def test_a_picture_is_not_replaced_by_the_reason_for_a_wait(kernel):
    kernel.run(
        "from IPython.display import HTML\nfrom rlnb.display.status import say, status\n"
        "with status('Reading') as show:\n    say('busy', 3)\n    show(HTML('picture'))\n    say('busy', 4)"
    )
    pages = [m["content"]["data"]["text/html"] for m in kernel.messages if "data" in m["content"]]
    assert pages[:-1] == ["<i>Reading ...</i>", "<i>Reading: busy, 3 s</i>", "picture"]


def test_a_note_is_shown_once_in_the_cell_and_logged_elsewhere(kernel, caplog):
    kernel.run("from rlnb.display.status import note_once\nnote_once('Without <b>')\nnote_once('Without <b>')")
    shown = [m["content"] for m in kernel.messages if m["msg_type"] in ("stream", "display_data")]
    assert [content["data"]["text/html"] for content in shown] == ["<i>Without &lt;b&gt;</i>"]
    note("only in the log")
    assert "only in the log" in caplog.text
