"""``python -m rlnb.pods RUN_DIR``: run the newest training of a run, as one of its pods."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from rlnb.errors import RlnbError
from rlnb.node.child import adopt_orphans
from rlnb.pods import pod
from rlnb.storage import files


class Terminated(KeyboardInterrupt):
    """Raised by SIGTERM. Other exceptions would count as faults of the plugin that is at work."""


def main(argv: Sequence[str]) -> int:
    if len(argv) != 1:
        sys.stderr.write("rlnb.pods needs one argument. Use python -m rlnb.pods RUN_DIR, with the folder of a run.\n")
        return 2
    adopt_orphans()
    files.restrict_umask(Path(argv[0]))
    try:
        signal.signal(signal.SIGTERM, _terminate)  # Linux ignores it in the first process of a container
        return pod.start(Path(argv[0]), os.environ)
    except RlnbError as exc:
        sys.stderr.write(f"rlnb.pods: {exc}\n")
        return 1
    except Terminated:
        return 1


def _terminate(*_: object) -> None:
    raise Terminated


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
