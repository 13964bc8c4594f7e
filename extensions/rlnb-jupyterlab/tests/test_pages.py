"""Messages to the connected pages."""

from __future__ import annotations

import json

from rlnb_jupyterlab.messages import PlacesMessage
from rlnb_jupyterlab.pages import Page, Pages


def test_every_connected_page_gets_a_message_once() -> None:
    pages, texts = Pages(), []
    first, second = Page(send=texts.append), Page(send=texts.append)
    pages.join(first)
    pages.join(second)
    pages.tell(PlacesMessage(places=[]))
    assert [json.loads(text) for text in texts] == [{"type": "places", "places": []}] * 2
    pages.leave(first)
    pages.tell(PlacesMessage(places=[]))
    assert len(texts) == 3
    assert pages.connected == (second,)
