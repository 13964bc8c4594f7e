"""``python -m rlnb_jupyterlab.check``: what would make the run of a form fail; apart, for it may take long.

Reads the form as JSON from standard input, and writes ``{"problems": [...]}``.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import rlnb
from rlnb_jupyterlab.code import LOCAL, Malformed, arguments, launcher_of, read


def problems(form: dict[str, Any]) -> list[dict[str, str]]:
    """Return what is wrong, and the mend of each."""
    rlnb.options.warm = False
    try:
        name, settings = launcher_of(read(form)["launcher"])
        of_task, of_train = arguments(form)
        if not form.get("task"):
            return [{"what": "There is no task yet.", "mend": "Choose one, or write its name."}]
        launcher = None if name == LOCAL else getattr(rlnb, name)(**settings)
        task = rlnb.task(form["task"], **of_task)
        found = rlnb.check(task, launcher=launcher, **of_train)
    except rlnb.CheckError as exc:
        found = list(exc.problems)
    except (Malformed, rlnb.RlnbError, AttributeError, TypeError) as exc:
        return [{"what": str(exc), "mend": ""}]
    return [{"what": problem.what, "mend": problem.mend or ""} for problem in found]


if __name__ == "__main__":
    json.dump({"problems": problems(json.load(sys.stdin))}, sys.stdout)
