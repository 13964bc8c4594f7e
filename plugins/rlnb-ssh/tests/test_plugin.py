"""The launcher is found by its name."""

from __future__ import annotations

import rlnb


def test_the_launcher_is_an_attribute_of_rlnb() -> None:
    assert rlnb.ssh("anna@gpu7").name == "ssh"
    assert rlnb.make_launcher("ssh", {"place": "anna@gpu7"}).settings["place"] == "anna@gpu7"
