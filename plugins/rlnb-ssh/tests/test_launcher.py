"""The settings of ``rlnb.ssh``, and the command that it makes of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rlnb_ssh.launcher import Ssh

import rlnb
from rlnb.launchers import LocalLauncher
from rlnb.plugin import Manifest

MANIFEST = Manifest(run_id="run", created="", task=rlnb.Task(id="Echo"), library="echo")


def test_the_command_asks_for_nothing_and_quotes_what_runs_there() -> None:
    argv = Ssh("anna@gpu7", options=["-p", "2222"]).reach(["~/my venv/bin/python", "-m", "a; rm b", "$HOME"])
    options = (
        "BatchMode=yes StrictHostKeyChecking=yes ConnectTimeout=10 ServerAliveInterval=5 ServerAliveCountMax=3 "
        "ClearAllForwardings=yes ForwardAgent=no ForwardX11=no "
        "RemoteCommand=none PermitLocalCommand=no ControlMaster=no"
    )
    assert argv == [
        "ssh",
        "-T",
        *(word for option in options.split() for word in ("-o", option)),
        *("-p", "2222", "--", "anna@gpu7"),
        "exec ~/'my venv/bin/python' -m 'a; rm b' '$HOME'",
    ]


def test_an_equal_launcher_is_made_from_its_settings() -> None:
    queue = LocalLauncher(max_running=2, walltime_s=60)
    for first in (Ssh("a@b", max_running=2), Ssh("a@b", queue=queue, env={"A": "b"}), Ssh("a@b", options="-4"), Ssh()):
        settings: Any = json.loads(json.dumps(dict(first.settings)))
        assert dict(Ssh(**settings).settings) == dict(first.settings)
    assert Ssh("a@b", queue=queue).wish("check", MANIFEST).data["manifest"]["launcher_settings"] == {  # type: ignore[index, call-overload]
        "max_running": 2,
        "walltime_s": 60,
    }


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"place": "-oProxyCommand=touch /tmp/x"}, "place='-oProxyCommand"),
        ({"place": "a@b\nc"}, "is not a name"),
        ({"place": "a@b", "root": "runs"}, "root='runs' is not an absolute path"),
        ({"place": "a@b", "python": 3}, "python=3"),
        ({"place": "a@b", "env": {"A": 1}}, "env={'A': 1} is not a mapping of texts"),
        ({"place": "a@b", "env": "A=b"}, "env='A=b' is not a mapping of texts"),
        ({"place": "a@b", "options": ["-p", 2222]}, r"options=\('-p', 2222\) are not texts"),
        ({"place": "a@b", "queue": {"name": "slurm", "settings": {}}, "max_running": 1}, "do not apply with a queue"),
    ],
)
def test_odd_settings_are_refused(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(rlnb.CheckError, match=text):
        Ssh(**settings)


def test_without_a_machine_nothing_starts() -> None:
    (problem,) = Ssh().check(MANIFEST)
    assert problem.what == "rlnb.ssh() has no machine."
