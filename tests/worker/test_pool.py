"""Statistics over ranks: those of all data, however far from zero they are."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

RANK = """
import json, os, sys
from pathlib import Path
from types import SimpleNamespace
import torch
import torch.distributed as dist
from rlnb.worker.jobs.context import Context

dist.init_process_group("gloo")
rank = dist.get_rank()
data = [torch.randn(2000, 3, generator=torch.Generator().manual_seed(n), dtype=torch.float64) for n in range(2)]
offset, spread = float(sys.argv[1]), float(sys.argv[2])
data = [offset + spread * (part + n) for n, part in enumerate(data)]
mean, variance = data[rank].mean(0).float(), data[rank].var(0, unbiased=False).float()
ctx = SimpleNamespace(world_size=2, synchronised=sys.argv[3] == "yes")
before = (mean.tolist(), variance.tolist())
Context.pool(ctx, mean, variance)
whole = torch.cat(data)
if rank == 0:
    print(json.dumps({
        "before": before,
        "after": (mean.tolist(), variance.tolist()),
        "whole": (whole.mean(0).tolist(), whole.var(0, unbiased=False).tolist()),
    }))
dist.destroy_process_group()
"""


def pooled(tmp_path: Path, *words: str) -> dict[str, list[list[float]]]:
    script = tmp_path / "rank.py"
    script.write_text(RANK)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    done = subprocess.run([*torchrun, str(script), *words], capture_output=True, text=True, check=True, timeout=120)
    result: dict[str, list[list[float]]] = json.loads(done.stdout.splitlines()[-1])
    return result


@pytest.mark.parametrize(("offset", "spread"), [("0", "1"), ("9.81", "0.001")])
def test_they_become_those_of_all_data(tmp_path: Path, offset: str, spread: str) -> None:
    found = pooled(tmp_path, offset, spread, "yes")
    assert found["after"][0] == pytest.approx(found["whole"][0], rel=1e-6, abs=1e-6)
    # A mean in float32 is off by half a unit in its last place.
    assert found["after"][1] == pytest.approx(found["whole"][1], rel=2e-3)


def test_the_negative_control_leaves_them_alone(tmp_path: Path) -> None:
    found = pooled(tmp_path, "0", "1", "no")
    assert found["after"] == found["before"]
