"""A tab that repeats its request gets the same reader."""

from __future__ import annotations

from pathlib import Path

from rlnb_jupyterlab import readers

import rlnb


def test_the_same_run_has_the_same_reader_until_others_need_the_room(made: object, root: Path) -> None:
    store = readers.Readers()
    runs = [rlnb.Run(root / "runs" / str(number)) for number in range(readers.MOST + 1)]
    with store.reader(runs[0]) as first:
        assert first is runs[0]
    with store.reader(rlnb.Run(runs[0].path)) as again:
        assert again is first
    for run in runs[1:]:
        with store.reader(run):
            pass
    other = rlnb.Run(runs[0].path)
    with store.reader(other) as anew:
        assert anew is other
