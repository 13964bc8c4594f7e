"""Job scripts and manifests of a run whose nodes a cluster starts."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest

import rlnb
from rlnb.manifests.job import USES
from rlnb.manifests.render import FORMS


def made(nodes: int = 2, **arguments: object) -> rlnb.Run:
    """Return a run that waits for pods."""
    launcher = rlnb.injected(nodes=nodes, nproc_per_node=arguments.pop("nproc_per_node", None))  # type: ignore[attr-defined,arg-type]
    return rlnb.train("Echo", library="echo", max_iterations=5, launcher=launcher, **arguments)  # type: ignore[arg-type]


def test_a_run_for_pods_waits_for_them_and_starts_no_process(root: Path) -> None:
    run = made(2, nproc_per_node=8)
    assert run.state == "queued"
    assert (run.manifest.resources.nodes, run.manifest.resources.nproc_per_node) == (2, 8)
    long_ago = time.time() - 3600  # pods may start late
    os.utime(run.jobs[-1].folder.command, (long_ago, long_ago))
    os.utime(run.jobs[-1].folder.handle, (long_ago, long_ago))
    assert rlnb.get_run(run.id).state == "queued"
    assert not list(run.path.rglob("*.log"))


def test_the_launcher_sets_the_ranks_of_pods_unless_the_training_does(root: Path) -> None:
    launcher = rlnb.injected(nodes=1, nproc_per_node=3)  # type: ignore[attr-defined]
    for ranks, expected in ((None, 3), ("auto", 3), (2, 2)):
        run = rlnb.train("Echo", library="echo", launcher=launcher, nproc_per_node=ranks)  # type: ignore[arg-type]
        assert run.manifest.resources.nproc_per_node == expected
    with pytest.raises(rlnb.CheckError, match="nproc_per_node=0"):
        rlnb.train("Echo", library="echo", launcher=launcher, nproc_per_node=0)


def test_every_form_is_rendered_from_a_run(root: Path) -> None:
    assert {*FORMS} == {*USES}
    run = made(nproc_per_node=8)
    for form in FORMS:
        pods = {name: "x" for name in ("image", "claim") if name in USES[form]}
        template = {"skypilot": {"resources": {"accelerators": "H100:8"}}, "dlc": {"workspace_id": "12345"}}
        text = run.job_script(form, **pods, template=template.get(form))  # type: ignore[arg-type]
        assert f"-m rlnb.pods {run.path}" in re.sub(r"\n\s+- ", " ", text), form


def test_a_run_that_cannot_be_rendered_is_refused(root: Path) -> None:
    run = made()
    with pytest.raises(rlnb.NotFoundError, match="Did you mean 'sbatch'"):
        run.job_script("sbtach")  # type: ignore[arg-type]
    with pytest.raises(rlnb.CheckError, match="2 problems"):
        run.job_script("pytorchjob")
    here = rlnb.train("Echo", library="echo", max_iterations=1).wait(30)
    with pytest.raises(rlnb.RlnbError, match=r"launcher=rlnb\.injected"):
        here.job_script()
    with pytest.raises(rlnb.CheckError, match="nodes=0"):
        made(0)
