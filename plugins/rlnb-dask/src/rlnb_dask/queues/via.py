"""``rlnb.slurm(..., via="anna@login")``: a queue whose commands and folders are on another machine."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rlnb import CheckError, Launcher, Problem, RemoteLauncher, make_launcher

if TYPE_CHECKING:
    from rlnb_dask.queues.launcher import QueueLauncher

VIA = inspect.Parameter("via", inspect.Parameter.KEYWORD_ONLY, default=None)


class Queue(type):
    """Class of the queue launchers. With ``via=``, a call returns a launcher of the machine that has the queue."""

    def __call__(cls, *args: Any, via: object = None, **settings: Any) -> Any:
        launcher = super().__call__(*args, **settings)
        return launcher if via is None else through(via, launcher)

    @property
    def __signature__(cls) -> inspect.Signature:
        """The arguments of a call, for ``help`` and for the check of names."""
        _, *parameters = inspect.signature(cls.__init__).parameters.values()  # type: ignore[misc]
        return inspect.Signature([*parameters, VIA])


def through(via: object, launcher: QueueLauncher) -> Launcher:
    """Return a launcher that submits to a queue through another machine.

    Args:
        via: The machine, as for ``ssh``, or a launcher such as ``rlnb.ssh("anna@login", root="/scratch/anna")``.
        launcher: Launcher of the queue, for that machine.

    Raises:
        CheckError: ``via`` is neither, or has a queue of its own, or rlnb-ssh is not installed.
    """
    queue: Any = {"name": launcher.name, "settings": dict(launcher.settings)}
    if isinstance(via, RemoteLauncher):
        if via.settings.get("queue") is not None:
            what = f"via={via!r} has a queue or limits of its own."
            fix = f"Use via= without queue=, max_running= and walltime_s=, which are those of rlnb.{launcher.name}."
            raise CheckError(f"rlnb.{launcher.name}(...)", [Problem(what=what, fix=fix)])
        return make_launcher(via.name, {**via.settings, "queue": queue})
    if not isinstance(via, str):
        what = f"via={via!r} is not the name of a machine."
        raise CheckError(f"rlnb.{launcher.name}(...)", [Problem(what=what, fix='Use via="user@login".')])
    python: Mapping[str, str] = {"python": launcher.python} if launcher.python else {}
    return make_launcher("ssh", {"place": via, **python, "queue": queue})
