"""Why OpenSSH does not reach a machine, and the fix."""

from __future__ import annotations

import re
import shlex

from rlnb.plugin import Problem

SSH_FAILED = 255
"""Exit status of ``ssh`` if it has not reached the machine; any other is that of the command there."""
NO_COMMAND = (126, 127)
"""Exit statuses of a shell that cannot start a command."""


def problem(place: str, python: str, code: int | None, error: str) -> Problem:
    """Return why a machine cannot be reached, or why rlnb does not start there.

    Args:
        place: The machine, as its user writes it for ``ssh``.
        python: Interpreter there.
        code: Exit status of ``ssh``; None if it still runs.
        error: What it has printed.
    """
    last = next((line for line in reversed(error.splitlines()) if line.strip()), "").strip()
    by_hand = f"ssh {shlex.quote(place)}"
    if "REMOTE HOST IDENTIFICATION HAS CHANGED" in error:
        what = f"the host key of {place} is not the one that this machine knows."
        return Problem(what=what, fix="Ask its administrator whether the key was replaced.")
    if "Host key verification failed" in error:
        what = f"the host key of {place} is unknown here."
        return Problem(what=what, fix=f"Run `{by_hand}` once, and compare the key that it shows.")
    if code == SSH_FAILED and "Permission denied" in error:
        what = f"{place} does not accept a key of this user ({last})."
        return Problem(
            what=what, fix=f"Use ssh-copy-id, or ssh-add for the agent, until `{by_hand}` needs no password."
        )
    if code == SSH_FAILED:
        return Problem(
            what=f"there is no connection to {place}: {last or 'ssh says nothing'}.", fix=f"Try `{by_hand}`."
        )
    if missing := re.search(r"No module named '?([\w.]+)", error):
        what = f"{python} on {place} has no module {missing.group(1)}."
        return Problem(
            what=what, fix="Install rlnb and the plugins there, or use python= with the interpreter that has them."
        )
    if code in NO_COMMAND:
        what = f"{place} has no interpreter {python} ({last})."
        return Problem(what=what, fix="Use python= with the path of the interpreter there that has rlnb.")
    return Problem(
        what=f"rlnb does not answer on {place}: {last or 'the connection has ended'}.", fix=f"Try `{by_hand}`."
    )
