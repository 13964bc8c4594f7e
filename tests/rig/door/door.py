"""A plugin with a launcher of another machine, which is another folder of this one, behind a door that can be shut."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from rlnb.launchers import LauncherType, RemoteLauncher
from rlnb.plugin import Problem, hookimpl

WALK = 'test ! -e "$0/shut" || { echo "the door is shut" >&2; exit 255; }; exec "$@"'


class Door(RemoteLauncher):
    """Reaches a folder of this machine.

    Args:
        place: Folder of the door. It is shut as long as the folder has a file named ``shut``.
        root: Folder of runs behind it.
    """

    name = "door"

    def __init__(
        self,
        place: str = "",
        *,
        python: str = sys.executable,
        root: str = "",
        queue: Mapping[str, object] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(place, python=python, root=root, queue=queue, env=env)

    def reach(self, argv: Sequence[str]) -> Sequence[str]:
        return ["sh", "-c", WALK, self.place, *argv]

    def problem(self, code: int | None, error: str) -> Problem:
        return Problem(what=f"status {code}: {error}.", fix="Open the door.")


@hookimpl
def rlnb_launchers() -> tuple[LauncherType, ...]:
    return (LauncherType(name="door", factory="door:Door"),)
