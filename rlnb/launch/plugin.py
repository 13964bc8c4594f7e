"""The launchers of rlnb itself, registered as those of any other plugin are: by an entry point of this package."""

from __future__ import annotations

from rlnb.contracts.plugin_types import LauncherType
from rlnb.hooks.hookspecs import hookimpl


@hookimpl
def rlnb_launchers() -> list[LauncherType]:
    return [
        LauncherType(name="local", factory="rlnb.launch.local:LocalLauncher"),
        LauncherType(name="injected", factory="rlnb.launch.injected:InjectedLauncher"),
    ]
