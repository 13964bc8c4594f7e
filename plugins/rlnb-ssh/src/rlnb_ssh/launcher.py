"""``rlnb.ssh``: trainings on a machine that OpenSSH reaches, without a shared folder."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from rlnb import CheckError
from rlnb.launchers import Launcher, RemoteLauncher
from rlnb.plugin import Manifest, Problem
from rlnb_ssh import errors
from rlnb_ssh.install import install

if TYPE_CHECKING:
    Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""A value of a setting."""

CONNECT_S = 10
ALIVE_S, ALIVE_COUNT = 5, 3
"""Seconds between two keepalive messages, and the number of unanswered ones that end the connection."""
OPTIONS = (
    "-T",
    "-o BatchMode=yes",  # no question for a password
    "-o StrictHostKeyChecking=yes",  # the host key must be known, whatever the user's own configuration accepts
    f"-o ConnectTimeout={CONNECT_S}",
    f"-o ServerAliveInterval={ALIVE_S}",
    f"-o ServerAliveCountMax={ALIVE_COUNT}",
    "-o ClearAllForwardings=yes",  # ports that the user's own configuration forwards belong to interactive sessions
    "-o ForwardAgent=no",  # jobs need no keys, no screen and no further commands of the user either
    "-o ForwardX11=no",
    "-o RemoteCommand=none",
    "-o PermitLocalCommand=no",
    "-o ControlMaster=no",  # a connection that exists is used, but none that others use ends with this one
)


class Ssh(RemoteLauncher):
    """Trains on a machine that ``ssh`` reaches, and mirrors the runs here.

    The user's own configuration of OpenSSH applies: names, keys, the agent, jump hosts. A connection asks for nothing:
    keys must work without a password, and the host key must be known.

    Args:
        place: The machine, as for ``ssh``: ``"anna@gpu7"``, or a name in ``~/.ssh/config``.
        python: Interpreter there that has rlnb and the plugins, e.g. ``"~/venv/bin/python"``.
        root: Folder of runs there.
        queue: Launcher there, such as ``rlnb.slurm(...)``, if ``place`` is the login node of a cluster. None trains on
            the machine itself.
        max_running: Most trainings at a time on the machine; None is one per GPU, or one. Not with ``queue``.
        walltime_s: Seconds after which a training is stopped; None sets no limit. Not with ``queue``.
        env: Environment variables of the jobs.
        options: Further arguments of ``ssh``, e.g. ``["-p", "2222"]``.

    Raises:
        CheckError: A setting is malformed.
    """

    name = "ssh"

    def __init__(
        self,
        place: str = "",
        *,
        python: str = "python3",
        root: str = "~/rlnb-runs",
        queue: Launcher | Mapping[str, Json] | None = None,
        max_running: int | None = None,
        walltime_s: float | None = None,
        env: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
    ) -> None:
        self.options = (options,) if isinstance(options, str) else tuple(options)
        if problems := [*_odd(place, python, root, queue, max_running, walltime_s), *_odd_texts(env, self.options)]:
            raise CheckError("rlnb.ssh(...)", problems)
        limits = {"max_running": max_running, "walltime_s": walltime_s}
        inner: Mapping[str, Json] | None
        if queue is not None:
            inner = queue if isinstance(queue, Mapping) else {"name": queue.name, "settings": dict(queue.settings)}
        else:
            set_limits = {name: value for name, value in limits.items() if value is not None}
            inner = {"name": "local", "settings": set_limits} if set_limits else None
        super().__init__(place, python=python, root=root, queue=inner, env=env)

    @property
    def settings(self) -> Mapping[str, Json]:
        """Arguments that make an equal launcher."""
        return {**super().settings, "options": list(self.options)}

    def check(self, manifest: Manifest) -> Sequence[Problem]:
        """Return every reason why the machine cannot start the run; an empty sequence if it can."""
        if not self.place:
            return [Problem(what="rlnb.ssh() has no machine.", fix='Use rlnb.ssh("user@host").')]
        return super().check(manifest)

    def reach(self, argv: Sequence[str]) -> Sequence[str]:
        """Return the ``ssh`` command that runs a command on the machine."""
        arguments = [word for option in OPTIONS for word in option.split()]
        return ["ssh", *arguments, *self.options, "--", self.place, "exec " + " ".join(map(_quoted, argv))]

    def install(self, wheels: str | Path, *, extras: Sequence[str] = (), base: str = "python3.12") -> None:
        """Make the environment of :attr:`python` on the machine, and install rlnb and the plugins in it.

        The packages are rlnb and the packages of the plugins that are installed here, in the same versions, and what
        they require from the package index of that machine. The environment appears there once it is complete.

        Args:
            wheels: Folder of wheels here, as ``make wheels`` in a checkout makes it, with its ``constraints.txt``.
            extras: Extras of rlnb that are installed too, such as ``["isaaclab"]``.
            base: Interpreter there that makes the environment, or its version for ``uv``, which is used if it is there.

        Raises:
            CheckError: The environment cannot be made; nothing was changed there.
            RlnbError: The installation has failed; nothing of it is left there.
        """
        install(self.reach, self.problem, self.python, Path(wheels), extras, base)

    def problem(self, code: int | None, error: str) -> Problem:
        """Return why the machine cannot be reached, and what to do."""
        return errors.problem(self.place, self.python, code, error)

    def __repr__(self) -> str:
        return f"Ssh({self.place!r}, python={self.python!r}, root={self.root!r})"


def _quoted(word: str) -> str:
    """Return a word for the shell of the machine, which replaces only a ``~/`` at its beginning."""
    return f"~/{shlex.quote(word[2:])}" if word.startswith("~/") else shlex.quote(word)


def _odd_texts(env: object, options: Sequence[object]) -> Iterator[Problem]:
    texts = [*env, *env.values()] if isinstance(env, Mapping) else [env]
    if env is not None and not (isinstance(env, Mapping) and all(isinstance(text, str) for text in texts)):
        yield Problem(what=f"env={env!r} is not a mapping of texts.", fix='Use env={"WANDB_MODE": "offline"}.')
    if not all(isinstance(option, str) for option in options):
        yield Problem(what=f"options={options!r} are not texts.", fix='Use options=["-p", "2222"].')


def _odd(
    place: str, python: str, root: str, queue: object, max_running: object, walltime_s: object
) -> Iterator[Problem]:
    for name, value in {"place": place, "python": python, "root": root}.items():
        if not isinstance(value, str) or not value.isprintable() or value.startswith("-"):
            yield Problem(
                what=f"{name}={value!r} is not a name.", fix='Use rlnb.ssh("user@host", python="~/venv/bin/python").'
            )
    if isinstance(root, str) and not root.startswith(("/", "~/")):
        yield Problem(what=f"root={root!r} is not an absolute path.", fix='Use root="~/rlnb-runs".')
    if queue is not None and not (max_running is None and walltime_s is None):
        what = "max_running and walltime_s do not apply with a queue."
        yield Problem(what=what, fix="Use the walltime of the queue, such as rlnb.slurm(walltime=...).")
