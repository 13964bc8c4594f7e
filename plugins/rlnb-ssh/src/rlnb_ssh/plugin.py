"""The hook of the plugin, which needs no heavy imports."""

from __future__ import annotations

from rlnb.launchers import LauncherType
from rlnb.plugin import hookimpl


@hookimpl
def rlnb_launchers() -> tuple[LauncherType, ...]:
    return (LauncherType(name="ssh", factory="rlnb_ssh.launcher:Ssh"),)
