"""The digests that ranks report, and the measurement of their time in all_reduce."""

from __future__ import annotations

import math
import time
from types import SimpleNamespace
from typing import Any

import pytest

from rlnb.worker.jobs.ranks import Clock, compare, process_group, watch_reset

torch = pytest.importorskip("torch")


class Env:
    """An env whose first observations depend only on the seed."""

    def __init__(self, seed: int) -> None:
        self.unwrapped = SimpleNamespace(reset=self.reset)
        self._generator = torch.Generator().manual_seed(seed)

    def reset(self, **_: Any) -> tuple[Any, Any]:
        return {"policy": {"joints": torch.rand(3, generator=self._generator)}, "critic": torch.zeros(1)}, {}


def first_observations(seed: int) -> str:
    env = Env(seed)
    digest = watch_reset(env)
    assert digest() == "", "before the first reset"
    env.unwrapped.reset()
    first = digest()
    env.unwrapped.reset()
    assert digest() == first, "later observations depend on the policy too"
    return first


def test_the_digest_of_observations_depends_on_the_seed_of_the_env() -> None:
    assert first_observations(1) == first_observations(1)
    assert first_observations(1) != first_observations(2)


def test_parameters_and_running_statistics_have_separate_digests() -> None:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    before = compare([module], "seen")
    module[1].running_mean += 1.0
    after = compare([module], "seen")
    assert after.parameters == before.parameters
    assert after.buffers != before.buffers
    assert (before.observations, before.communication) == (("seen",), ())
    with torch.no_grad():
        module[0].weight[0, 0] += 1e-6
    assert compare([module], "seen").parameters != after.parameters


def test_parameters_of_every_dtype_have_a_digest() -> None:
    """NumPy has no bfloat16."""
    module = torch.nn.Linear(2, 2).to(torch.bfloat16)
    before = compare([module], "seen").parameters
    assert compare([module], "seen").parameters == before
    with torch.no_grad():
        module.weight[0, 0] += 1
    assert compare([module], "seen").parameters != before


def digest_of(observations: Any) -> str:
    env = SimpleNamespace(unwrapped=SimpleNamespace(reset=lambda: (observations, {})))
    digest = watch_reset(env)
    env.unwrapped.reset()
    return digest()


def test_the_digest_of_observations_covers_the_bytes_of_the_first_envs() -> None:
    images = torch.zeros(100, 4)
    before = digest_of(images)
    images[64] = 1.0
    assert digest_of(images) == before, "the images of all envs may be half a gigabyte"
    images[63] = 1.0
    assert digest_of(images) != before
    # Same values, same digest: neither strides nor the device of a tensor are part of it.
    assert digest_of(images.t().contiguous().t()) == digest_of(images)
    assert digest_of(images[:1, 1:2].t()[0]) == digest_of(images[:1, 1].clone())
    assert digest_of(torch.ones(1).expand(5)) == digest_of(torch.ones(5))


def test_the_digest_of_observations_covers_the_parts_of_groups_and_tuples() -> None:
    def digest(last: float) -> str:
        return digest_of({"policy": (torch.zeros(2, 1), {"rgb": torch.ones(2, 3), "depth": torch.full((2, 1), last)})})

    assert digest(1.0) == digest(1.0) != digest(2.0)


def test_a_share_of_time_that_was_measured_is_reported() -> None:
    assert compare([], "seen", communication=0.123456).communication == (0.1235,)


def test_a_clock_gives_the_share_of_time_inside_its_calls() -> None:
    clock = Clock()
    assert math.isnan(clock.share), "before the first call"
    sleep = clock.timed(time.sleep)
    sleep(0.05)
    time.sleep(0.05)
    assert 0.1 < clock.share < 0.9


def test_one_rank_makes_no_process_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with process_group("cpu") as clock:
        assert not torch.distributed.is_initialized()
    assert math.isnan(clock.share)
