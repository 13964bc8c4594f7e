"""Addresses that a 3D view may listen on. The view itself is tested in tests/browser."""

from __future__ import annotations

import socket

import pytest

from rlnb import RlnbError, Task
from rlnb.worker.requests import viewer


@pytest.mark.parametrize(("address", "refused"), [("127.0.0.1", None), ("0.0.0.0", "more than 127.0.0.1")])
def test_a_view_that_does_not_listen_on_loopback_alone_is_refused(address: str, refused: str | None) -> None:
    with socket.socket() as listening:
        listening.bind((address, 0))
        listening.listen()
        port = listening.getsockname()[1]
        if refused is None:
            viewer._check_address(port)
        else:
            with pytest.raises(RlnbError, match=refused):
                viewer._check_address(port)


def test_a_port_that_another_process_uses_is_refused() -> None:
    with pytest.raises(RlnbError, match="does not listen on port"):
        viewer._check_address(viewer._free_port())


def test_a_view_takes_the_place_of_a_stream() -> None:
    task = Task(id="Demo", launcher_args={"livestream": 2, "kit_args": "--enable my.extension"})
    assert viewer.without_stream(task) == Task(id="Demo", launcher_args={"kit_args": "--enable my.extension"})
