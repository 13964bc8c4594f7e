"""The launcher is found by its name."""

from __future__ import annotations

import rlnb
from rlnb.launchers import make_launcher


def test_the_launcher_is_an_attribute_of_rlnb() -> None:
    assert rlnb.ssh("anna@gpu7").name == "ssh"
    assert make_launcher("ssh", {"place": "anna@gpu7"}).settings["place"] == "anna@gpu7"
