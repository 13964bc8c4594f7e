"""The address of a node."""

from __future__ import annotations

import socket

import pytest
from rlnb_dask.arrays.address import address, free_port


def test_the_address_is_that_of_the_interface() -> None:
    assert address("lo") == "127.0.0.1"
    assert address(None)
    with pytest.raises(ValueError, match=r"interface='ib7' has no IPv4 address here\. Use one of .*lo"):
        address("ib7")


def test_a_free_port_can_be_bound() -> None:
    with socket.socket() as probe:
        probe.bind(("", free_port()))
