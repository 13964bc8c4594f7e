"""The launcher for this machine: its settings, its threads and its GPUs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import rlnb
from rlnb.launchers import LocalLauncher
from rlnb.spec import Manifest, Resources, Task
from rlnb.testing import LauncherConformance

NO_COUNTS = [0, -1, True, 1.0, "2", float("nan")]
NO_SECONDS = [0, -1.5, True, "60", float("nan"), float("inf")]


@pytest.mark.parametrize("value", NO_COUNTS)
def test_max_running_is_a_positive_whole_number(value: Any) -> None:
    message = f"max_running={value!r} is not a positive whole number. Use max_running=1."
    with pytest.raises(rlnb.RlnbError, match=f"^{re.escape(message)}$"):
        LocalLauncher(max_running=value)


@pytest.mark.parametrize("value", NO_SECONDS)
def test_a_walltime_is_a_positive_number_of_seconds(value: Any) -> None:
    message = f"walltime_s={value!r} is not a positive number. Use walltime_s=3600, or None for no limit."
    with pytest.raises(rlnb.RlnbError, match=f"^{re.escape(message)}$"):
        LocalLauncher(walltime_s=value)


def test_one_error_names_all_problems() -> None:
    with pytest.raises(rlnb.RlnbError, match=r"max_running=0 .* walltime_s=0 "):
        LocalLauncher(max_running=0, walltime_s=0)


def test_its_settings_recreate_the_launcher() -> None:
    launcher = LocalLauncher(max_running=2, walltime_s=0.5)
    assert LocalLauncher(**launcher.settings).settings == {"max_running": 2, "walltime_s": 0.5}
    assert LocalLauncher().max_running >= 1


Machine = Callable[..., None]


def manifest(device: str = "auto", ranks: int = 1) -> Manifest:
    return Manifest(
        run_id="r",
        created="2026-01-01T00:00:00+00:00",
        task=Task(id="T"),
        library="rsl_rl",
        resources=Resources(device=device, nproc_per_node=ranks),
    )


@pytest.mark.parametrize(
    ("gpus", "device", "ranks", "problem"),
    [
        (0, "cuda", 1, "has no NVIDIA GPU"),
        (0, "auto", 2, None),
        (1, "auto", 2, "2 ranks need a GPU each, but this machine has 1 NVIDIA GPU"),
        (1, "cpu", 2, None),
        (2, "cuda", 2, None),
        (2, "cuda:2", 1, "this machine has 2 NVIDIA GPUs"),
        (2, "cuda:1", 1, None),
        (2, "cuda:0", 2, "2 ranks cannot share cuda:0"),
    ],
)
def test_ranks_that_the_gpus_cannot_take_are_refused_before_the_start(
    machine: Machine, gpus: int, device: str, ranks: int, problem: str | None
) -> None:
    machine(",".join(["0a", "0b"][:gpus]))
    texts = [str(one.what) for one in LocalLauncher().check(manifest(device, ranks))]
    assert len(texts) == (problem is not None)
    assert problem is None or problem in texts[0]


@pytest.mark.parametrize("ranks", [0, -1, "2", None])
def test_an_odd_number_of_ranks_is_no_error_on_a_machine_with_a_gpu(machine: Machine, ranks: Any) -> None:
    machine("0a")
    assert LocalLauncher().check(manifest("auto", ranks)) == []


def test_ranks_whose_role_stays_on_the_cpu_need_no_gpu(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine("0a")
    (problem,) = LocalLauncher().check(manifest("cuda", 3))
    assert problem.what == "3 ranks need a GPU each, but this machine has 1 NVIDIA GPU."
    monkeypatch.setattr("rlnb.hooks.plugins.gpu_ranks", lambda manifest: 1)
    assert LocalLauncher().check(manifest("cuda", 3)) == []


def test_the_reason_why_cuda_has_no_gpu_is_in_the_problem(machine: Machine) -> None:
    machine("0a", error=803)
    (problem,) = LocalLauncher().check(manifest("cuda"))
    assert "has no NVIDIA GPU that CUDA can use (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)" in str(problem.what)
    assert str(problem.fix) == 'device="cpu"'


class TestContract(LauncherConformance):
    """The local launcher meets the contract of a plugin's launcher."""

    launcher = "local"
    one_at_a_time = {"max_running": 1}
    cut_short = {"walltime_s": 1.0}
