"""Memory of curves returns to the system."""

from __future__ import annotations

import json
import platform
import subprocess
import sys

import pytest

GROWN = """
import gc, json, psutil
from rlnb.curves.live import give_back
from rlnb.metrics.columns import Column

process = psutil.Process()
sizes = [process.memory_info().rss]
columns, kept = [Column() for _ in range(60)], []
for number in range(20_000):
    for column in columns:
        column.append(number, 0.0, 0.0)
    kept.append(bytearray(2000))  # small things that live on between large ones that do not
sizes.append(process.memory_info().rss)
del columns
gc.collect()
sizes.append(process.memory_info().rss)
give_back()
sizes.append(process.memory_info().rss)
print(json.dumps([size - sizes[0] - 2000 * len(kept) for size in sizes[1:]]))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep nothing that could be given back")
def test_memory_of_curves_that_no_page_shows_returns_to_the_system() -> None:
    done = subprocess.run([sys.executable, "-c", GROWN], capture_output=True, text=True, check=True)
    taken, left, given_back = json.loads(done.stdout)
    assert taken > 20e6
    assert given_back < 0.25 * taken
    assert given_back <= left
