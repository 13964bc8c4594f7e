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


def main(argv: Sequence[str]) -> int:
    if len(argv) != 1:
        sys.stderr.write("rlnb.pods needs one argument. Use python -m rlnb.pods RUN_DIR, with the folder of a run.\n")
        return 2
    adopt_orphans()
    files.restrict_umask()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # Linux ignores it in the first process of a container
    try:
        return pod.start(Path(argv[0]), os.environ)
    except RlnbError as exc:
        sys.stderr.write(f"rlnb.pods: {exc}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
