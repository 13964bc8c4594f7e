"""``python -m rlnb_jupyterlab.check``: what would make the run of a form fail; apart, for it may take long.

Reads the form as JSON from standard input, and writes ``{"problems": [...]}``. The check calls an installed
launcher and imports the task's own module. It executes nothing else that a form names.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

import rlnb
from rlnb_jupyterlab.code import Malformed, arguments, launcher_of, read


def problems(form: dict[str, Any]) -> list[dict[str, str]]:
    """Return what is wrong, and the fix of each."""
    rlnb.options.warm = False
    found: Iterable[rlnb.Problem]
    try:
        name, settings = launcher_of(read(form)["launcher"])
        of_task, of_train = arguments(form)
        if not form.get("task"):
            return [{"what": "There is no task yet.", "fix": "Choose one, or write its name."}]
        launcher = rlnb.make_launcher(name, settings)
        task = rlnb.task(form["task"], **of_task)
        found = rlnb.check(task, launcher=launcher, **of_train)
    except rlnb.CheckError as exc:
        found = exc.problems
    except (Malformed, rlnb.RlnbError) as exc:
        found = [rlnb.Problem(what=str(exc))]
    except (AttributeError, TypeError, ValueError) as exc:  # a number where text is expected, say
        fix = "Use the kinds that help(rlnb.train) lists, and help of the launcher, such as help(rlnb.slurm)."
        found = [rlnb.Problem(what=f"A field has a value of the wrong type: {exc}.", fix=fix)]
    return [{"what": problem.what, "fix": problem.fix or ""} for problem in found]


if __name__ == "__main__":
    json.dump({"problems": problems(json.load(sys.stdin))}, sys.stdout)
