"""The address of a node."""

from __future__ import annotations

import socket

import psutil
import pytest
from rlnb_dask.address import address, free_port


def test_the_address_is_that_of_the_interface() -> None:
    assert address("lo") == "127.0.0.1"
    own = {entry.address for entries in psutil.net_if_addrs().values() for entry in entries}
    assert address(None) in {*own, socket.gethostname()}, "the name stands for the address without a default route"
    with pytest.raises(ValueError, match=r"interface='ib7' has no IPv4 address here\. Use one of .*lo"):
        address("ib7")


def test_a_free_port_can_be_bound() -> None:
    with socket.socket() as probe:
        probe.bind(("", free_port()))
