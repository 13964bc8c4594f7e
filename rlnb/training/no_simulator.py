"""The checks of a training without a simulator, for which there is no task card."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator

from rlnb.contracts.libraries import Library
from rlnb.errors import Problem, whole_number
from rlnb.hooks import plugins
from rlnb.hooks.plugin import INTERRUPTS
from rlnb.launch.command import interpreter
from rlnb.machine import packages
from rlnb.spec import Manifest
from rlnb.tasks import config
from rlnb.tasks.card import AgentCard

TIMEOUT_S = 20.0
"""Seconds in which another interpreter names the requirements that it does not meet."""


def agent_card(library: Library, python: str | None) -> AgentCard:
    """Return a description of the library's own agent config, which has no values if the library names none.

    Args:
        library: The library.
        python: Command of the worker's interpreter; None is this one.
    """
    card = AgentCard(missing=missing(library, python))
    if not library.default_agent:
        return card
    card = AgentCard(source=f"the library's own, {library.default_agent}", generic=True, missing=card.missing)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            agent_cfg = plugins.agent_config(library.default_agent)
    except INTERRUPTS:
        raise
    except BaseException as exc:  # a plugin may raise anything
        return AgentCard(source=card.source, missing=card.missing, error=f"{type(exc).__name__}: {exc}"[:500])
    fields, groups = config.fields(agent_cfg), tuple(sorted(config.dicts(agent_cfg)))
    return AgentCard(source=card.source, generic=True, missing=card.missing, fields=fields, takes_more=groups)


def missing(library: Library, python: str | None) -> tuple[str, ...]:
    """Return the requirements of a library that the worker's interpreter does not meet; empty if that is not known.

    An interpreter that only another machine has is not known.
    """
    if python is None or not library.requires:
        return packages.unmet(library.requires)
    argv = interpreter(python)
    if shutil.which(argv[0]) is None:
        return ()
    code = "import json, sys; from rlnb.machine.packages import unmet; print(json.dumps(unmet(sys.argv[1:])))"
    try:
        done = subprocess.run(
            [*argv, "-P", "-c", code, *library.requires], capture_output=True, text=True, timeout=TIMEOUT_S, check=True
        )
        names: list[str] = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):  # the worker itself reports such errors
        return ()
    return tuple(names)


def meaningless(manifest: Manifest, library: Library) -> Iterator[Problem]:
    """Find settings of envs and of Isaac Lab, which the library does not have."""
    task = manifest.task
    settings = {
        "num_envs": task.num_envs if not whole_number("num_envs", task.num_envs) else None,  # else it is a problem
        "overrides": dict(task.overrides),
        "presets": list(task.presets),
        "physics": task.physics,
        "renderer": task.renderer,
        "launcher_args": dict(task.launcher_args),
        "imports": list(task.imports),
        "success": task.success,
        "film_every": manifest.film_every,
        "deterministic": manifest.deterministic is True or None,
    }
    values = [f"{name}={value!r}" for name, value in settings.items() if value not in (None, {}, [])]
    if values:
        yield Problem(
            what=f"{library.name} trains without a simulator, so it has no use for {' and '.join(values)}.",
            fix=f"Leave {'it' if len(values) == 1 else 'them'} out. agent={{...}} sets values of {library.name}.",
        )
