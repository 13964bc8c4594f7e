"""Rules that find in the curves of a training why it learns badly.

Each rule needs ``LEAST`` points of its curve and compares medians over parts of the training. The bounds are wide: a
rule that is silent about a bad training costs an hour, and one that warns of a good training is not read again.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


# -- curves ----------------------------------------------------------------------------------------------------------


class Curve:
    """The finite values of a metric, in order.

    All statistics are medians over parts of the training, so that single outliers do not matter.

    Args:
        values: Values of shape (n,).
    """

    def __init__(self, values: np.ndarray) -> None:
        import numpy as np

        finite = np.isfinite(values)
        self.values = values[finite]
        self.lost = int((~finite).sum())
        """Number of values that are not finite."""
        self.lost_later = int((~finite)[int(finite.argmax()) :].sum()) if finite.any() else 0
        """Number of them after the first finite value. A statistic of nothing yet is nan before it, and only then."""

    def __len__(self) -> int:
        return len(self.values)

    def part(self, begin: float, end: float) -> np.ndarray:
        """Return the values between two shares of the training, 0 to 1, at least one value."""
        first = min(int(begin * len(self)), len(self) - 1)
        return self.values[first : max(first + 1, round(end * len(self)))]

    def median(self, begin: float, end: float) -> float:
        """Return the median of the values between two shares of the training."""
        import numpy as np

        return float(np.median(self.part(begin, end)))

    @property
    def first(self) -> float:
        """Median of the first tenth."""
        return self.median(0.0, 0.1)

    @property
    def last(self) -> float:
        """Median of the last tenth."""
        return self.median(0.9, 1.0)

    @property
    def noise(self) -> float:
        """Standard deviation of the values about their trend, from the differences of neighbours.

        For normal noise, the median of the absolute differences is 0.954 standard deviations.
        """
        import numpy as np

        return float(np.median(np.abs(np.diff(self.values)))) / 0.954 if len(self) > 1 else 0.0

    def smooth(self) -> np.ndarray:
        """Return the medians of twenty equal parts, or of fewer if there are fewer values."""
        import numpy as np

        return np.array([np.median(part) for part in np.array_split(self.values, min(20, len(self)))])


# -- symptoms --------------------------------------------------------------------------------------------------------


LEAST = 30
"""Points of a curve before a rule judges it."""
RECENT = 12
"""Samples of a node's load that cover a minute."""
LONG = 150
"""Points before a rule judges the course of a whole training: whether the reward rises, and what it consists of."""
FLAT = "reward does not rise"
"""Name of a symptom that a run which starts from the weights of another one cannot have."""
TERM = re.compile(r"(?:^|[/ ])Episode_Reward/(.+)$")
"""Isaac Lab's tag of a reward term; libraries put a prefix before it."""
KL = re.compile(r"(?:^|/)(?:approx_)?kl$")
"""Tags of the divergence between the policies before and after an update."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Symptom:
    """A sign that a training learns badly."""

    name: str
    """Short name, e.g. ``"action std collapsed"``."""
    metric: str
    """Metric or tag that shows it."""
    what: str
    """The sign, with the numbers that it rests on."""
    fix: str
    """What to try."""


DROPPED = "contacts are dropped"
"""Name of the symptom that the physics solver's own record shows, not a curve."""
BUSY = "the machine is busy"
"""Name of the symptom that the load on a node shows."""
NAMES = (
    DROPPED,
    "values that are not finite",
    "episodes end at once",
    "action std collapsed",
    "action std explodes",
    "entropy gone",
    "reward collapsed",
    FLAT,
    "reward rises without success",
    "KL spikes",
    "learning rate at its lower bound",
    "value loss grows",
    "one term carries the reward",
    "throughput fell",
    BUSY,
    "memory grows",
)
"""Names of all symptoms."""
LOSSES = ("policy_loss", "value_loss", "critic_loss")
"""Metrics of which a value that is not finite makes the weights nan."""
Curves = Mapping[str, Curve]
"""The curves of a training by metric or tag."""


def find(curves: Curves) -> tuple[Symptom, ...]:
    """Return the symptoms in the curves of a training, the surest first."""
    return tuple(symptom for rule in RULES for symptom in rule(curves))


def _judged(curves: Curves, name: str, least: int = LEAST) -> Iterator[Curve]:
    """Yield a curve if it has enough points for a judgement."""
    if name in curves and len(curves[name]) >= least:
        yield curves[name]


def _not_finite(curves: Curves) -> Iterator[Symptom]:
    """Find values that were finite, and rewards and losses that never were.

    A policy without a standard deviation, a statistic before the first episode has ended, and a loss before learning
    begins are nan in sound trainings. Without a finite reward, no loss stays finite.
    """
    for name in ("reward", *LOSSES, "entropy", "action_std"):
        if name not in curves:
            continue
        curve = curves[name]
        never = curve.lost > 0 and not len(curve)
        if never and name in LOSSES and _is_finite(curves, "reward", "episode_length"):
            yield Symptom(
                name="values that are not finite",
                metric=name,
                what=f"{name} was nan or infinite in all {curve.lost} iterations, and the policy has learned nothing.",
                fix="Look at the sizes in the agent config: a minibatch without frames has no mean, and one of a "
                "single frame no standard deviation. Use fewer minibatches, or more envs. If the sizes are sound, look "
                "for nan in the observations: rlnb.check(task, deep=True) may name the term.",
            )
            return
        lost = curve.lost if never and name in LOSSES else curve.lost_later
        lost = _lost_rewards(curves) if name == "reward" else lost
        if lost:
            yield Symptom(
                name="values that are not finite",
                metric=name,
                what=f"{name} was nan or infinite in {lost} of {curve.lost + len(curve)} iterations.",
                fix="Look for a division by zero in the task. rlnb.check(task, deep=True) may name it.",
            )
            return


def _lost_rewards(curves: Curves) -> int:
    """Return the number of rewards that an env made nan or infinite, not a lack of episodes."""
    reward, losses = curves["reward"], [curves[name] for name in LOSSES if name in curves]
    if losses and all(len(loss) and not loss.lost_later for loss in losses):
        return 0  # iterations in which no episode ended
    if len(reward):
        return reward.lost_later
    has_ended = _is_finite(curves, "episode_length") if "episode_length" in curves else reward.lost >= LEAST
    return reward.lost if has_ended else 0


def _is_finite(curves: Curves, *names: str) -> bool:
    """Return whether the first metric that was logged has a finite value."""
    return any(len(curves[name]) > 0 for name in [name for name in names if name in curves][:1])


def _action_std(curves: Curves) -> Iterator[Symptom]:
    for std in _judged(curves, "action_std"):
        if (std.last < 0.02 * std.first or std.last < 0.005) and not _has_learned(curves):
            yield Symptom(
                name="action std collapsed",
                metric="action_std",
                what=f"action_std fell from {std.first:.3g} to {std.last:.3g}: the policy no longer explores.",
                fix="Raise the entropy coefficient, lower the learning rate, or set a lower limit of the std.",
            )
        elif std.last > 4.0 * std.first and std.last > 1.15 * std.median(0.6, 0.7):
            yield Symptom(
                name="action std explodes",
                metric="action_std",
                what=f"action_std rose from {std.first:.3g} to {std.last:.3g} and still grows: the actions are noise.",
                fix="Lower the entropy coefficient, limit the std, or check that actions change the reward.",
            )


def _entropy(curves: Curves) -> Iterator[Symptom]:
    if "action_std" in curves:
        return  # it shows the same more directly
    for entropy in _judged(curves, "entropy"):
        # A Gaussian with std 1 has 1.42 nats for each action. At -1.8 times that, its std is 0.02.
        if (
            entropy.first > 0.05
            and entropy.last < 0.02 * entropy.first
            and (entropy.last > -0.02 * entropy.first or entropy.last < -1.8 * entropy.first)
            and not _has_learned(curves)
        ):
            yield Symptom(
                name="entropy gone",
                metric="entropy",
                what=f"entropy fell from {entropy.first:.3g} to {entropy.last:.3g}: the policy no longer explores.",
                fix="Raise the entropy coefficient, or lower the learning rate.",
            )


def _has_learned(curves: Curves) -> bool:
    """Return whether a training has reached its best reward, so that a policy without noise is what it should be."""
    if any(success.last < 0.8 for success in _judged(curves, "success_rate")):
        return False
    for reward in _judged(curves, "reward"):
        smooth = reward.smooth()
        gain = float(smooth.max() - smooth[0])
        return gain > 5.0 * reward.noise and float(smooth.max() - smooth[-1]) < 0.1 * gain
    return False


def _kl(curves: Curves) -> Iterator[Symptom]:
    import numpy as np

    for name in curves:
        if KL.search(name):
            for kl in _judged(curves, name):
                usual = max(kl.median(0.1, 1.0), 1e-6)
                later = kl.part(0.1, 1.0)
                spikes = int((later > max(10.0 * usual, 0.1)).sum())
                if spikes >= max(2, 0.02 * len(later)) or usual > 0.2:
                    yield Symptom(
                        name="KL spikes",
                        metric=name,
                        what=f"The KL divergence of an update is usually {usual:.3g}, and was up to "
                        f"{float(np.max(kl.values)):.3g}; {spikes} updates were ten times the usual.",
                        fix="Lower the learning rate or the number of epochs, or use the library's adaptive schedule.",
                    )


def _learning_rate(curves: Curves) -> Iterator[Symptom]:
    import numpy as np

    for rate in _judged(curves, "learning_rate"):
        low = float(np.min(rate.values))
        if rate.last <= 1e-5 < rate.values[0] and float(np.max(rate.part(0.6, 1.0))) <= 1.5 * low:
            yield Symptom(
                name="learning rate at its lower bound",
                metric="learning_rate",
                what=f"The adaptive schedule lowered the learning rate from {rate.values[0]:.3g} to {low:.3g} and "
                "keeps it there: each update changes the policy more than desired_kl.",
                fix="Use larger mini-batches, fewer epochs, or a smaller entropy coefficient.",
            )


def _value_loss(curves: Curves) -> Iterator[Symptom]:
    for loss in _judged(curves, "value_loss"):
        before = loss.median(0.4, 0.6)
        if loss.last <= 5.0 * max(before, 1e-9) or loss.last <= 2.0 * loss.median(0.7, 0.8):
            continue
        rewards = [*_judged(curves, "reward")]
        if not rewards or any(_rose(reward, 0.5) for reward in rewards):
            continue  # the loss of growing returns grows
        yield Symptom(
            name="value loss grows",
            metric="value_loss",
            what=f"value_loss grew from {before:.3g} in the middle to {loss.last:.3g}, while the reward did not rise.",
            fix="Normalise observations and rewards, clip the value loss, or lower the learning rate.",
        )


def _rose(curve: Curve, begin: float) -> bool:
    """Return whether a curve rose from a share of the training on, by more than its noise."""
    return curve.last - curve.median(begin, begin + 0.1) > max(curve.noise, 1e-9)


def _success(curves: Curves) -> Iterator[Symptom]:
    for reward in _judged(curves, "reward", LONG):
        for success in _judged(curves, "success_rate", LONG):
            spread = float(reward.values.max() - reward.values.min())
            rise = reward.last - reward.median(0.1, 0.2)
            if rise > 0.3 * spread and rise > 4.0 * reward.noise and success.values.max() < 0.02:
                yield Symptom(
                    name="reward rises without success",
                    metric="success_rate",
                    what=f"The reward rose from {reward.median(0.1, 0.2):.3g} to {reward.last:.3g}, but success_rate "
                    f"never exceeded {float(success.values.max()):.2g}.",
                    fix="The policy may exploit a term that does not lead to success. Compare the reward terms, and "
                    "look at a film: run.evaluate(video=True).",
                )


def _one_term(curves: Curves) -> Iterator[Symptom]:
    terms = {match[1]: curve for name, curve in curves.items() if (match := TERM.search(name)) and len(curve) >= LONG}
    gains = {name: curve.last for name, curve in terms.items() if curve.values.max() > 0 and curve.values.min() >= 0}
    total = sum(gains.values())
    if len(gains) < 2 or total <= 0:
        return
    name = max(gains, key=gains.__getitem__)
    if gains[name] > 0.97 * total:
        others = ", ".join(f"{other} {value:.2g}" for other, value in gains.items() if other != name)
        yield Symptom(
            name="one term carries the reward",
            metric=f"Episode_Reward/{name}",
            what=f"{name} is {gains[name] / total:.0%} of what the policy gains; the other gains are {others}.",
            fix=f"Lower the weight of {name}, or make the others easier to reach.",
        )


def _reward(curves: Curves) -> Iterator[Symptom]:
    for reward in _judged(curves, "reward", 2 * LEAST):
        smooth = reward.smooth()
        peak = int(smooth.argmax())
        gain, fall = float(smooth[peak] - smooth[0]), float(smooth[peak] - smooth[-2:].max())
        if gain > 5.0 * reward.noise and fall > 0.6 * gain and fall > 5.0 * reward.noise and peak < len(smooth) - 2:
            yield Symptom(
                name="reward collapsed",
                metric="reward",
                what=f"The reward rose from {smooth[0]:.4g} to {smooth[peak]:.4g} and fell back to {smooth[-1]:.4g}.",
                fix="Lower the learning rate or the number of epochs. Go on from the best checkpoint with init_from=.",
            )
        elif len(reward) >= LONG and _is_flat(reward):
            yield Symptom(
                name=FLAT,
                metric="reward",
                what=f"The reward was {reward.first:.4g} at the begin and is {reward.last:.4g} after {len(reward)} "
                f"iterations, with a noise of {reward.noise:.2g}.",
                fix="Check that actions change the reward (rlnb.tune, rlnb.debug), and try another learning rate.",
            )


def _is_flat(reward: Curve) -> bool:
    import numpy as np

    smooth = reward.smooth()
    begin, earliest = float(smooth[0]), float(np.median(reward.values[:3]))
    if begin - earliest > 3.0 * reward.noise:  # a task may be solved in a few iterations
        begin = earliest
    best = float(smooth[1:].max()) - begin
    # The largest of twenty medians of noise is about three of their standard deviations above the first.
    return best < max(4.0 * reward.noise / math.sqrt(len(reward) / len(smooth)), 0.01 * abs(begin))


def _episodes(curves: Curves) -> Iterator[Symptom]:
    for length in _judged(curves, "episode_length"):
        if length.last <= 2.0:
            yield Symptom(
                name="episodes end at once",
                metric="episode_length",
                what=f"Episodes last {length.last:.2g} steps; they lasted {length.first:.3g} at the begin.",
                fix="Look at the terminations with rlnb.check(task, deep=True). A policy that gains less than nothing "
                "may learn to end its episodes.",
            )


def _throughput(curves: Curves) -> Iterator[Symptom]:
    for fps in _judged(curves, "fps"):
        usual, recent = fps.median(0.1, 0.5), fps.part(0.8, 1.0)
        if float(recent.max()) < 0.6 * usual:
            yield Symptom(
                name="throughput fell",
                metric="fps",
                what=f"fps fell from {usual:,.0f} to {fps.last:,.0f}.",
                fix="Look for another process on the machine, and for episodes that have become more costly.",
            )


def _busy(curves: Curves) -> Iterator[Symptom]:
    import numpy as np

    for name in curves:
        used = name.replace("/waited_cores", "/cpu_cores")
        if not name.startswith("system/") or used == name or used not in curves:
            continue
        for waited in _judged(curves, name, RECENT):
            lost, got = (float(np.median(curve.values[-RECENT:])) for curve in (waited, curves[used]))
            if lost > max(0.25, 0.2 * (got + lost)):
                yield Symptom(
                    name=BUSY,
                    metric=name,
                    what=f"In the last minute, the training had {got:.1f} of the {got + lost:.1f} cores that it could "
                    f"have used on {name.split('/')[1]}.",
                    fix="End other processes there. If there are none, the training has too many ranks or threads for "
                    "its cores: use fewer ranks, or set OMP_NUM_THREADS=1, which also helps networks with convolutions "
                    "on a machine that stays busy.",
                )


def _memory(curves: Curves) -> Iterator[Symptom]:
    for name in curves:
        if name.startswith("system/") and name.endswith("/memory_gib"):
            for memory in _judged(curves, name):
                steps = [memory.median(share, share + 0.1) for share in (0.3, 0.45, 0.6, 0.75, 0.9)]
                grown = steps[-1] - steps[0]
                rises = all(after - before > 0.1 * grown for before, after in itertools.pairwise(steps))
                if grown > max(0.3, 0.2 * steps[0]) and rises:
                    yield Symptom(
                        name="memory grows",
                        metric=name,
                        what=f"The memory of the training grows steadily, from {steps[0]:.2f} to {steps[-1]:.2f} GiB.",
                        fix="Look for lists or tensors in the task's code that are appended to in each step. A replay "
                        "buffer grows too, until it is full.",
                    )


RULES: tuple[Callable[[Curves], Iterator[Symptom]], ...] = (
    _not_finite,
    _episodes,
    _action_std,
    _entropy,
    _reward,
    _success,
    _kl,
    _learning_rate,
    _value_loss,
    _one_term,
    _throughput,
    _busy,
    _memory,
)
