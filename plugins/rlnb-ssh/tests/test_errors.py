"""What OpenSSH prints becomes a problem with a fix. The texts are those of OpenSSH 9.2 and of its servers' shells."""

from __future__ import annotations

import pytest
from rlnb_ssh.errors import problem

TEXTS = {
    "ssh: connect to host gpu7 port 22: Connection refused": (
        255,
        "no connection to anna@gpu7",
        "Try `ssh anna@gpu7`.",
    ),
    "ssh: Could not resolve hostname gpu7: Name or service not known": (255, "Could not resolve", "Try"),
    "No ED25519 host key is known for [127.0.0.1]:2222 and you have requested strict checking.\n"
    "Host key verification failed.": (255, "is unknown here", "compare the key"),
    "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.": (
        255,
        "is not the one",
        "admini",
    ),
    "anna@gpu7: Permission denied (publickey).": (255, "does not accept a key", "ssh-copy-id"),
    "bash: line 1: /home/anna/venv/bin/python: No such file or directory": (127, "has no interpreter", "python="),
    "bash: line 1: /home/anna/x: Permission denied": (126, "has no interpreter", "python="),
    "/usr/bin/python3: No module named rlnb": (1, "has no module rlnb", "Install"),
    "/usr/bin/python3: Error while finding module specification for 'rlnb.mirror' (ModuleNotFoundError: No module "
    "named 'rlnb')": (1, "has no module rlnb", "Install"),
    "Traceback\nValueError: odd": (1, "does not answer on anna@gpu7: ValueError: odd", "Try"),
    "": (None, "the connection has ended", "Try"),
}


@pytest.mark.parametrize("text", TEXTS)
def test_each_failure_has_its_words_and_its_fix(text: str) -> None:
    code, what, fix = TEXTS[text]
    found = problem("anna@gpu7", "~/venv/bin/python", code, text)
    assert what in found.what
    assert fix in found.fix
    assert "\n" not in found.what
