"""A picture that tells where it is clicked. The tests take the page's part."""

from rlnb.display.live_pictures import clickable


def test_a_click_is_told_in_shares_of_the_picture():
    clicks = []
    widget = clickable(lambda x, y: clicks.append((x, y)))
    widget.value = b"png"
    widget._handle_custom_msg({"x": 0.25, "y": 1}, [])
    assert clicks == [(0.25, 1.0)]
