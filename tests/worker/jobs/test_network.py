"""The interface that a backend uses, and the variables that change it."""

from __future__ import annotations

import pytest

from rlnb.worker.jobs import handshake
from rlnb.worker.jobs.handshake import NETWORK_VARIABLES, network_fix, network_interface


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in NETWORK_VARIABLES.values():
        monkeypatch.delenv(variable, raising=False)


def test_an_interface_that_is_set_is_named_with_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "ib0")
    assert network_interface("nccl") == "interface ib0, from NCCL_SOCKET_IFNAME"
    assert "ib0" not in network_interface("gloo")


def test_gloo_uses_the_interface_with_the_address_of_the_hosts_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake.socket, "gethostname", lambda: "127.0.0.1")
    assert network_interface("gloo") == "interface lo, which has the address of the host's name"
    monkeypatch.setattr(handshake.socket, "gethostname", lambda: "no-such-host.invalid")
    assert network_interface("gloo") == "no interface, because the name of this host has no address"


def test_nccl_chooses_an_interface_itself() -> None:
    assert network_interface("nccl").startswith("an interface that NCCL chose from ")


def test_the_fix_names_the_variables_of_the_backend() -> None:
    assert "Use GLOO_SOCKET_IFNAME=eth0" in network_fix("gloo")
    assert "NCCL" not in network_fix("gloo")
    for variable in ("NCCL_SOCKET_IFNAME=eth0", "NCCL_P2P_DISABLE=1", "NCCL_IB_DISABLE=1", "NCCL_DEBUG=INFO"):
        assert variable in network_fix("nccl")
