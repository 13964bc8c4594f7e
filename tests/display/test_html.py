"""The HTML of objects that a notebook can show."""

from PIL import Image

from rlnb.display.front_end import html_of


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
