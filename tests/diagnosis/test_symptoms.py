"""Tests of rlnb.diagnosis.symptoms, with curves as trainings log them."""

from __future__ import annotations

import numpy as np
import pytest

from rlnb.diagnosis.symptoms import LEAST, RULES, Curve, Curves, find

COUNT = 200
T = np.linspace(0.0, 1.0, COUNT)
RANDOM = np.random.default_rng(0)


def noisy(values: np.ndarray, scale: float = 0.02) -> np.ndarray:
    return values + RANDOM.normal(0.0, scale * max(1e-9, float(np.ptp(values)) or abs(float(values[0]))), len(values))


HEALTHY: dict[str, np.ndarray] = {
    "reward": noisy(100.0 * (1.0 - np.exp(-5.0 * T))),
    "episode_length": noisy(30.0 + 270.0 * (1.0 - np.exp(-4.0 * T))),
    "success_rate": np.clip(noisy(1.0 - np.exp(-3.0 * T)), 0.0, 1.0),
    "policy_loss": RANDOM.normal(0.0, 0.01, COUNT),
    "value_loss": noisy(5.0 * np.exp(-3.0 * T) + 0.5, 0.1),
    "entropy": noisy(1.4 - 1.5 * T),
    "learning_rate": np.clip(1e-3 * np.exp(RANDOM.normal(0.0, 0.4, COUNT)), 1e-5, 1e-2),
    "action_std": noisy(1.0 - 0.7 * T),
    "info/kl": 0.01 * np.exp(RANDOM.normal(0.0, 0.4, COUNT)),
    "fps": noisy(np.full(COUNT, 20000.0), 0.05),
    "Episode_Reward/alive": noisy(2.0 * (1.0 - np.exp(-5.0 * T))).clip(0.0),
    "Episode_Reward/track": noisy(0.6 * (1.0 - np.exp(-5.0 * T))).clip(0.0),
    "Episode_Reward/effort": -noisy(0.1 * T),
    "system/node0/cpu_cores": noisy(np.full(COUNT, 1.6)),
    "system/node0/waited_cores": 0.05 + 0.1 * RANDOM.random(COUNT),
    "system/node0/memory_gib": noisy(2.5 + 0.1 * T, 0.3),
}


def curves(**changed: np.ndarray | None) -> Curves:
    """Return healthy curves but for some; None leaves one out. A double underscore stands for a slash."""
    changes = {name.replace("__", "/"): values for name, values in changed.items()}
    return {name: Curve(values) for name, values in {**HEALTHY, **changes}.items() if values is not None}


def names(**changed: np.ndarray | None) -> list[str]:
    return [symptom.name for symptom in find(curves(**changed))]


FLAT = np.full(COUNT, 10.0)
HALF_WAY = noisy(100.0 * np.minimum(T * 4.0, 1.0) * np.where(T > 0.7, 0.7, 1.0))
PATHOLOGIES: dict[str, dict[str, np.ndarray | None]] = {
    "values that are not finite": {"value_loss": np.where(T > 0.9, np.nan, 1.0)},
    "episodes end at once": {"episode_length": noisy(30.0 * np.exp(-9.0 * T)) + 1.0},
    "action std collapsed": {"action_std": np.exp(-5.0 * T), "success_rate": noisy(0.3 * T)},
    "action std explodes": {"action_std": np.exp(2.5 * T)},
    "entropy gone": {"action_std": None, "entropy": 1.1 * np.exp(-8.0 * T), "success_rate": None, "reward": HALF_WAY},
    "reward collapsed": {"reward": noisy(100.0 * np.minimum(T * 4.0, 1.0) * np.where(T > 0.7, 0.1, 1.0))},
    "reward does not rise": {"reward": noisy(FLAT, 0.05)},
    "reward rises without success": {"success_rate": np.zeros(COUNT)},
    "KL spikes": {"info__kl": np.where(np.arange(COUNT) % 25 == 24, 2.0, 0.01)},
    "learning rate at its lower bound": {"learning_rate": np.maximum(1e-5, 1e-3 * np.exp(-10.0 * T))},
    "value loss grows": {"value_loss": np.exp(9.0 * (T - 0.5)), "reward": noisy(100.0 - 20.0 * T)},
    "one term carries the reward": {"Episode_Reward__track": np.full(COUNT, 1e-3)},
    "throughput fell": {"fps": np.where(T > 0.6, 9000.0, 20000.0)},
    "the machine is busy": {"system__node0__cpu_cores": 1.1 + 0.1 * T, "system__node0__waited_cores": 0.6 + 0.3 * T},
    "memory grows": {"system__node0__memory_gib": 2.0 + 3.0 * T},
}


def test_a_healthy_training_has_no_symptoms() -> None:
    assert find(curves()) == ()


@pytest.mark.parametrize("count", [0, 1, 5, LEAST - 1])
def test_a_training_that_has_just_begun_is_not_judged(count: int) -> None:
    for name, values in [item for changes in PATHOLOGIES.values() for item in changes.items()]:
        if values is not None and np.isfinite(values).all():  # another value is a symptom at once
            assert find({name.replace("__", "/"): Curve(values[:count])}) == ()


@pytest.mark.parametrize("name", PATHOLOGIES)
def test_each_pathology_is_named_with_its_numbers_and_a_fix(name: str) -> None:
    found = {symptom.name: symptom for symptom in find(curves(**PATHOLOGIES[name]))}
    assert name in found
    assert any(character.isdigit() for character in found[name].what)
    assert found[name].fix.endswith(".")
    assert len(found) <= 2, [*found]


def test_every_rule_has_a_pathology() -> None:
    for rule in RULES:
        assert any([*rule(curves(**changes))] for changes in PATHOLOGIES.values()), rule.__name__


@pytest.mark.parametrize(
    "changed",
    [
        {"reward": noisy(FLAT, 0.05)[:100]},  # too short for a judgement of the reward
        {
            "value_loss": 0.01 * np.exp(6.0 * T),
            "reward": noisy(np.exp(4.0 * T)),
        },  # returns grow, and so does their loss
        {"reward": noisy(100.0 * (1.0 - np.exp(-5.0 * T)), 0.3)},  # a noisy reward
        {"fps": np.where(np.arange(COUNT) % 7 == 0, 5000.0, 20000.0)},  # pauses, such as checkpoints
        {"action_std": noisy(1.0 + 0.6 * T)},
        {"action_std": np.exp(-5.0 * T)},  # the task is solved, and noise would only disturb
        {"action_std": None, "entropy": 1.1 * np.exp(-8.0 * T), "success_rate": None},
        {"success_rate": None},
        {"Episode_Reward__track": None},  # only one term is a gain, as in the stock cart-pole
        {"system__node0__memory_gib": 2.0 + 1.0 * np.minimum(T * 5.0, 1.0)},  # caches fill at the begin
        {"learning_rate": np.full(COUNT, 1e-5)},  # a constant one
        {"reward": noisy(100.0 * (1.0 - np.exp(-500.0 * T)))},  # solved in a few iterations
        {"info__kl": np.where(np.isin(np.arange(10_000), (3000, 5000)), 2.0, 0.01)},  # two spikes in 10,000 updates
        {  # a lift that has not succeeded yet
            "reward": HEALTHY["reward"][:80],
            "success_rate": np.zeros(80),
            "Episode_Reward__track": np.full(80, 1e-3),
        },
        {"value_loss": np.exp(9.0 * (T - 0.5)), "reward": None},
        {"learning_rate": 1e-3 * (1.0 - 0.95 * T)},  # a linear schedule
        {"system__node0__memory_gib": np.where(T > 0.5, 3.0, 2.0)},  # a second env, such as that of a film
        {"action_std": np.where(T < 0.2, 1.0, 5.0)},  # it grew once
        {"system__node0__waited_cores": np.where(T > 0.8, 0.1, 0.9)},  # the other process has ended
        {"system__node0__waited_cores": np.where(np.arange(COUNT) % 3 == 0, 1.0, 0.05)},  # bursts, such as a report
        {"system__node0__cpu_cores": np.full(COUNT, 60.0), "system__node0__waited_cores": np.full(COUNT, 1.0)},
        {
            "value_loss": np.where(T > 0.65, 50.0, 1.0),
            "reward": noisy(100.0 - 20.0 * T)[:100],
        },  # harder since then
    ],
)
def test_what_happens_in_good_trainings_is_no_symptom(changed: dict[str, np.ndarray | None]) -> None:
    assert names(**changed) == []


def test_the_tags_of_each_library_are_known() -> None:
    for prefix in ("", "Episode/", "Info / "):
        plain = {"alive": np.full(COUNT, 1.0), "track": np.full(COUNT, 1e-3)}
        found = find({f"{prefix}Episode_Reward/{name}": Curve(values) for name, values in plain.items()})
        assert [symptom.metric for symptom in found] == ["Episode_Reward/alive"]
    for tag in ("info/kl", "train/approx_kl"):
        assert find({tag: Curve(PATHOLOGIES["KL spikes"]["info__kl"])})[0].metric == tag  # type: ignore[arg-type]


def test_a_critic_loss_that_is_not_finite_is_named() -> None:
    assert "values that are not finite" in names(critic_loss=np.where(T > 0.9, np.inf, 1.0))


NAN = np.full(COUNT, np.nan)
FIRST = np.where(np.arange(COUNT) < 5, np.nan, 1.0)


@pytest.mark.parametrize(
    "changed",
    [
        {"action_std": NAN},
        {"action_std": NAN, "entropy": NAN},
        {"critic_loss": FIRST},
        {"reward": np.where(np.arange(COUNT) < 5, np.nan, HEALTHY["reward"])},
        {"reward": np.where(np.arange(COUNT) % 7 == 3, np.nan, HEALTHY["reward"])},
        {"train/explained_variance": NAN},
    ],
    ids=["no std", "no entropy", "no updates yet", "no episode yet", "iterations without an episode", "others"],
)
def test_values_that_are_nan_in_a_sound_training_are_no_symptom(changed: dict[str, np.ndarray]) -> None:
    assert "values that are not finite" not in [symptom.name for symptom in find({**curves(), **of(changed)})]


def of(changed: dict[str, np.ndarray]) -> Curves:
    return {name: Curve(values) for name, values in changed.items()}


def test_losses_that_never_were_finite_are_due_to_sizes() -> None:
    lost = find({**curves(), **of({"policy_loss": NAN, "value_loss": NAN, "action_std": NAN, "entropy": NAN})})
    (symptom,) = [symptom for symptom in lost if symptom.name == "values that are not finite"]
    assert symptom.what.startswith("policy_loss was nan or infinite in all 200 iterations")
    assert "sizes in the agent config" in symptom.fix
    assert "nan in the observations" in symptom.fix
    assert "division" not in symptom.fix


@pytest.mark.parametrize(
    "losses",
    [{"policy_loss": NAN, "value_loss": NAN}, {"policy_loss": HEALTHY["policy_loss"], "value_loss": NAN}, {}],
    ids=["nan losses", "a nan loss", "no losses"],
)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_reward_that_never_was_finite_is_due_to_the_task(losses: dict[str, np.ndarray], value: float) -> None:
    lengths = HEALTHY["episode_length"]
    (symptom,) = find(of({"reward": np.full(COUNT, value), "episode_length": lengths, **losses}))
    assert (symptom.metric, symptom.what) == ("reward", "reward was nan or infinite in 200 of 200 iterations.")
    assert "division by zero in the task" in symptom.fix


def test_a_reward_without_an_episode_says_nothing_of_the_task() -> None:
    assert find(of({"reward": NAN, "episode_length": NAN})) == ()
    assert find(of({"reward": NAN[: LEAST - 1]})) == ()
    (symptom,) = find(of({"episode_length": HEALTHY["episode_length"], "value_loss": NAN}))
    assert "sizes in the agent config" in symptom.fix


@pytest.mark.parametrize(
    "changed",
    [
        {"policy_loss": np.where(T > 0.5, np.nan, 1.0)},
        {"action_std": np.where(T > 0.5, np.nan, 1.0)},
        {"reward": np.where(T > 0.5, np.inf, 1.0), "value_loss": np.where(T > 0.5, np.nan, 1.0)},
        {"reward": NAN, "value_loss": NAN, "policy_loss": NAN},
    ],
    ids=["weights", "std", "reward", "from the begin"],
)
def test_values_that_become_nan_are_named(changed: dict[str, np.ndarray]) -> None:
    without = {name: curve for name, curve in curves().items() if name != "episode_length"}
    assert "values that are not finite" in [symptom.name for symptom in find({**without, **of(changed)})]


# -- curves ----------------------------------------------------------------------------------------------------------


def test_values_that_are_not_finite_are_counted_and_left_out() -> None:
    curve = Curve(np.array([1.0, np.nan, 2.0, np.inf]))
    assert (len(curve), curve.lost) == (2, 2)
    assert curve.values.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("count", [1, 2, 7, 30, 1000])
def test_parts_are_never_empty_and_cover_the_training(count: int) -> None:
    curve = Curve(np.arange(float(count)))
    assert curve.part(0.0, 1.0).tolist() == curve.values.tolist()
    assert all(len(curve.part(begin / 10, begin / 10 + 0.1)) >= 1 for begin in range(10))
    assert curve.first <= curve.last
    assert len(curve.smooth()) == min(count, 20)


def test_a_single_outlier_changes_no_statistic() -> None:
    values = np.linspace(0.0, 1.0, 100)
    plain, spiked = Curve(values), Curve(np.where(np.arange(100) == 95, 1e6, values))
    assert spiked.last == pytest.approx(plain.last, abs=0.02)
    assert spiked.noise == pytest.approx(plain.noise, rel=0.1)


def test_the_noise_is_a_standard_deviation_and_not_the_trend() -> None:
    noise = np.random.default_rng(0).normal(0.0, 0.5, 5000)
    assert Curve(noise + np.linspace(0.0, 100.0, 5000)).noise == pytest.approx(0.5, rel=0.1)
