"""Evaluations: their options, their record on disk, and the statistics of their episodes."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rlnb.display.status import note
from rlnb.display.table import counted, table
from rlnb.errors import RlnbError, RunError
from rlnb.records.layout import JobDir, run_dir_of
from rlnb.records.options import CheckpointOptions
from rlnb.records.video import Video
from rlnb.spec import EnvMode
from rlnb.storage import files
from rlnb.storage.serial import from_json

CONFIDENCE = 0.95
LARGEST = sys.float_info.max
"""Largest number whose mean and interval can be computed."""
MOST_EPISODES = 100_000
"""Most episodes, and most envs, of an evaluation. With eight reward terms, their record has 23 MB."""
MOST_ROWS = 100_000_000
"""Most rows of observations and actions that an evaluation keeps."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluateOptions(CheckpointOptions):
    """Options of an evaluation."""

    episodes: int
    """Least number of episodes."""
    num_envs: int
    """Number of parallel envs."""
    seed: int
    """Seed of the env."""
    deterministic: bool = True
    """Whether the policy takes its mean actions; otherwise it samples them."""
    video: bool = False
    """Whether to record a video of the first envs."""
    camera: str | None = None
    """Camera for the video; None is the task's first, or an added one if the task has none."""
    record: int = 0
    """Number of rows of observations and actions to keep, one row per env and step."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationRecord:
    """The episodes of an evaluation, as ``evaluation.json`` holds them."""

    returns: tuple[float, ...]
    """Undiscounted return of each episode."""
    lengths: tuple[int, ...]
    """Length of each episode, in env steps; empty if episodes have no length."""
    timeouts: tuple[bool | float, ...]
    """Whether each episode ended by its time limit; empty if there is no limit."""
    successes: tuple[bool | float, ...] | None
    """Success of each episode, as a bool or as a number from 0 to 1; None if it is not known."""
    checkpoint: str
    """Evaluated checkpoint, relative to the run folder."""
    num_envs: int = 0
    """Number of parallel envs; 0 without a simulator."""
    seed: int
    """Seed of the env."""
    success_source: str = ""
    """Source of the success, see :attr:`Evaluation.success_source`."""
    episodes: int = 0
    """Number of episodes, the length of each list."""
    deterministic: bool = True
    """Whether the policy took its mean actions."""
    mode: EnvMode | None = "train"
    """Env of the episodes, see :attr:`Evaluation.mode`. Older versions do not say it, and had the training's."""
    terms: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Contribution of each reward term to the return of each episode."""
    values: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Measurements of a library without a simulator, by name, with one number for each sample."""
    meanings: Mapping[str, str] = field(default_factory=dict)
    """Meaning of each of :attr:`values`."""
    video: str | None = None
    """Video of the first envs, relative to the run folder."""
    warnings: tuple[str, ...] = ()
    """How the env may differ from that of the training."""

    def faults(self) -> Iterator[str]:
        """Find values of the right type that no evaluation can have."""
        if not self.returns and not self.values:
            yield "it has neither episodes nor values"
        count, optional = len(self.returns), {"lengths": self.lengths, "timeouts": self.timeouts}
        of_episodes = {name: numbers for name, numbers in optional.items() if numbers} | dict(self.terms)
        if self.successes is not None:
            of_episodes["successes"] = self.successes
        for name, numbers in of_episodes.items():
            if len(numbers) != count:
                yield f"{name} has {counted(len(numbers), 'number')} for {counted(count, 'episode')}"
        if any(success < 0 or success > 1 for success in self.successes or ()):  # nan has a clause of its own
            yield "successes has a number that is not from 0 to 1"
        for name, numbers in self.values.items():
            if not numbers:
                yield f"the value {name!r} has no number"
        every = of_episodes | {f"the value {name!r}": numbers for name, numbers in self.values.items()}
        for name, numbers in {**every, "returns": self.returns}.items():
            if (index := _not_finite(numbers)) is not None:
                yield f"{name} has {numbers[index]} at index {index}"
            if any(isinstance(number, int) and abs(number) > LARGEST for number in numbers):
                yield f"{name} has a number that is larger than a float can be"


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """Complete episodes of one checkpoint, each from reset to end.

    A library without a simulator may also measure values of its own, or values alone, without episodes.
    """

    returns: tuple[float, ...]
    """Undiscounted return of each episode; empty without episodes."""
    lengths: tuple[int, ...]
    """Length of each episode, in env steps; empty if episodes have no length."""
    timeouts: tuple[bool, ...]
    """Whether each episode ended by its time limit; empty if there is no limit."""
    successes: tuple[bool | float, ...] | None
    """Whether each episode succeeded; None if that is not known.

    An episode with several goals has the share of goals that it reached, if the task counts them. If the env logs only
    a rate over the episodes that end in the same step, each of them has that rate.
    """
    checkpoint: str
    """Evaluated checkpoint, relative to the run folder."""
    num_envs: int
    """Number of parallel envs; 0 without a simulator."""
    seed: int
    """Seed of the env."""
    success_source: str = ""
    """Source of the success.

    This is the task's own function as ``"module:function"``, the termination term as ``"terminations.success"``, or the
    rate that the env itself logs as ``"Metrics/success_rate"``. It is empty if there is no success, if a library
    without a simulator evaluated the run, or if rlnb 0.1 did.
    """
    deterministic: bool = True
    """Whether the policy took its mean (or most likely) actions; otherwise it sampled them."""
    mode: EnvMode | None = None
    """``"play"`` if the env was as Isaac Lab's ``play_mode()`` leaves it, ``"train"`` if it was that of the training.

    None without a simulator. Only evaluations of one mode can be compared.
    """
    terms: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Contribution of each reward term to the return of each episode; empty for tasks without reward terms."""
    video: Video | None = None
    """Video of the first envs."""
    rollout: Path | None = None
    """NumPy archive of the recorded rows, with ``actions`` (rows, action_dim) and ``obs.<group>`` (rows, ...)."""
    warnings: tuple[str, ...] = ()
    """How the env may differ from that of the training, e.g. by a plugin that is not installed here."""
    values: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Measurements of a library without a simulator, by name, with one number for each sample."""
    meanings: Mapping[str, str] = field(default_factory=dict)
    """Meaning of each of :attr:`values`, with its unit."""
    problem: str = ""
    """What is wrong with the evaluation's record; empty if it is valid. An invalid one has no episodes and values."""

    @classmethod
    def invalid(cls, problem: str) -> Evaluation:
        """Return an evaluation whose record cannot be used."""
        return cls(
            returns=(), lengths=(), timeouts=(), successes=None, checkpoint="", num_envs=0, seed=0, problem=problem
        )

    @classmethod
    def from_record(cls, record: EvaluationRecord, job: JobDir) -> Evaluation:
        """Return the evaluation of a job, with the files that ``record=`` and ``video=`` may have written.

        Args:
            record: The job's ``evaluation.json``.
            job: Folder of the job.
        """
        run = run_dir_of(job.path).path.resolve()
        # A record of another user may name any file, and a report includes the video.
        video = files.within(run, record.video) if record.video else None
        return cls(
            returns=record.returns,
            lengths=record.lengths,
            timeouts=tuple(map(bool, record.timeouts)),
            successes=tuple(map(_success, record.successes)) if record.successes else None,
            checkpoint=record.checkpoint,
            num_envs=record.num_envs,
            seed=record.seed,
            success_source=record.success_source,
            deterministic=record.deterministic,
            mode=record.mode if record.num_envs else None,
            terms=record.terms,
            video=Video(video) if video and video.is_file() else None,
            rollout=job.rollout if job.rollout.is_file() else None,
            warnings=record.warnings,
            values=record.values,
            meanings=record.meanings,
        )

    @property
    def title(self) -> str:
        """Checkpoint, number of envs, mode and seed."""
        if self.problem:
            return "invalid evaluation"
        envs = f"{self.num_envs} envs, " if self.num_envs else ""
        mode = f"mode {self.mode}, " if self.mode else ""
        return f"{self.checkpoint}, {envs}{mode}seed {self.seed}"

    @property
    def means(self) -> dict[str, float]:
        """Mean of each of :attr:`values`."""
        return {name: _mean(numbers) for name, numbers in self.values.items()}

    @property
    def episodes(self) -> int:
        return len(self.returns)

    @property
    def success_rate(self) -> float | None:
        """Share of episodes that succeeded; None if that is not known."""
        return None if self.successes is None else sum(self.successes) / len(self.successes)

    @property
    def success_interval(self) -> tuple[float, float] | None:
        """95 % Wilson interval of the success rate (Wilson 1927, JASA, volume 22, page 209).

        For shares between 0 and 1 the interval is conservative, because they vary less than bools with the same mean.
        """
        rate = self.success_rate
        if rate is None or self.successes is None:
            return None
        from scipy.stats import norm

        z, count = float(norm.ppf(0.5 + CONFIDENCE / 2)), len(self.successes)
        centre = rate + z**2 / (2 * count)
        half = z * math.sqrt(rate * (1 - rate) / count + (z / (2 * count)) ** 2)
        scale = 1 + z**2 / count
        return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)

    @property
    def mean_return(self) -> float:
        """Mean return; NaN without episodes."""
        return _mean(self.returns)

    @property
    def return_interval(self) -> tuple[float, float]:
        """95 % interval of the mean return, Student's t. Both ends are NaN for a single episode."""
        return mean_interval(self.returns)

    @property
    def mean_length(self) -> float:
        """Mean length, in env steps; NaN if episodes have no length."""
        return _mean(self.lengths)

    @property
    def length_interval(self) -> tuple[float, float]:
        """95 % interval of the mean length, Student's t. Both ends are NaN for a single episode."""
        return mean_interval(self.lengths)

    def rows(self) -> list[tuple[str, str, str]]:
        """Return the name, value and 95 % interval of each statistic, as text."""
        rows = [("problem", self.problem, "")] if self.problem else []
        if self.episodes:
            mode = [("mode", self.mode, "")] if self.mode else []
            rows += [("episodes", str(self.episodes), ""), *mode, *self._success_rows()]
            sums = {"return": self.returns} | {f"return: {name}": values for name, values in self.terms.items()}
            rows += [(name, f"{_mean(each):.3f}", interval_text(mean_interval(each))) for name, each in sums.items()]
        if self.lengths:
            rows.append(("length (steps)", f"{self.mean_length:.1f}", interval_text(self.length_interval, digits=1)))
        for name, values in self.values.items():
            label = f"{name}: {self.meanings[name]}" if name in self.meanings else name
            rows.append((label, f"{_mean(values):.4g}", interval_text(mean_interval(values))))
        return rows + [("warning", text, "") for text in self.warnings]

    def _success_rows(self) -> list[tuple[str, str, str]]:
        if self.success_rate is None:
            unknown = f"unknown: {self.success_source} is not a rate of these episodes"
            return [("success rate", unknown if self.success_source else "not defined for this task", "")]
        low, high = self.success_interval or (math.nan, math.nan)
        rows = [("success rate", f"{self.success_rate:.3f}", f"{low:.3f} to {high:.3f}")]
        return [*rows, ("success source", self.success_source, "")] if self.success_source else rows

    def __repr__(self) -> str:
        if self.problem:
            return f"Evaluation(problem={self.problem!r})"
        parts = [f"{name}={mean:.4g}" for name, mean in self.means.items()]
        if self.episodes:
            unknown = "unknown" if self.success_source else "not defined"
            success = unknown if self.success_rate is None else f"{self.success_rate:.3f}"
            mode = [f"mode={self.mode}"] if self.mode else []
            figures = [f"success={success}", f"return={self.mean_return:.3f}"]
            parts = [f"{self.episodes} episodes", *mode, *figures, *parts]
        return f"Evaluation({', '.join(parts)})"

    def _repr_html_(self) -> str:
        caption = "Invalid evaluation" if self.problem else f"Evaluation of {self.checkpoint}"
        return table(["", "value", "95 % interval"], self.rows(), caption=caption)


def refuse_odd_numbers(episodes: object, num_envs: object, seed: object, record: object) -> None:
    """Refuse numbers with which an evaluation would fail or never end.

    Raises:
        RlnbError: One of the numbers is not whole, or out of range.
    """
    limits = {
        "episodes": (episodes, 1, MOST_EPISODES),
        "num_envs": (1 if num_envs is None else num_envs, 1, MOST_EPISODES),
        "seed": (seed, 0, 2**32 - 1),
        "record": (record, 0, MOST_ROWS),
    }
    for name, (value, least, most) in limits.items():
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise RlnbError(f"{name}={value!r} is not a whole number from {least} to {most:,}.")


def say_rounding(episodes: int, num_envs: int) -> None:
    """Say how many episodes an evaluation runs if their number is no multiple of that of the envs."""
    if rest := episodes % num_envs:
        each = episodes // num_envs + 1
        even = max(number for number in range(1, num_envs + 1) if episodes % number == 0)
        note(
            f"{num_envs} envs run {each} whole episodes each: {episodes - rest + num_envs} episodes, not {episodes}. "
            f"For exactly {episodes}, use num_envs={even}."
        )


def refuse_settings_of_envs(library: str, **settings: object) -> None:
    """Refuse the arguments of an evaluation that a library without a simulator has no use for, if they are given.

    Raises:
        RunError: Such an argument is given.
    """
    values = [f"{name}={value!r}" for name, value in settings.items() if value]
    if values:
        fix = f"Leave {'it' if len(values) == 1 else 'them'} out."
        raise RunError(f"{library} has no simulator, so it has no use for {' and '.join(values)}. {fix}")


def evaluation_of(job: JobDir) -> Evaluation | None:
    """Return the evaluation that a job has written; None if it has not written one yet.

    Raises:
        RlnbError: The job's ``evaluation.json`` cannot be read.
    """
    if (data := files.read_json(job.evaluation)) is None:
        return None
    try:
        record = from_json(EvaluationRecord, data, ignore_unknown=True)
    except RlnbError as exc:
        raise RlnbError(f"{job.evaluation}: {exc}") from exc
    if faults := [*record.faults()]:
        raise RlnbError(f"{job.evaluation} is not valid: {' and '.join(faults)}. Move it away.")
    return Evaluation.from_record(record, job)


def evaluations_of(jobs: Iterable[JobDir]) -> list[Evaluation]:
    """Return the evaluations that jobs have written. One whose record cannot be used says why, with a warning."""
    evaluations = []
    for job in jobs:
        try:
            evaluation = evaluation_of(job)
        except RlnbError as exc:
            files.warn_once(str(exc))
            evaluations.append(Evaluation.invalid(str(exc)))
        else:
            evaluations += [] if evaluation is None else [evaluation]
    return evaluations


def _not_finite(numbers: Sequence[float]) -> int | None:
    """Return the index of the first number that is nan or infinite; None if all are finite."""
    is_finite = (isinstance(number, int) or math.isfinite(number) for number in numbers)
    return next((index for index, finite in enumerate(is_finite) if not finite), None)


def _success(value: bool | float) -> bool | float:
    return bool(value) if value in (0, 1) else float(value)


def _mean(values: Sequence[float]) -> float:
    return sum(map(float, values)) / len(values) if values else math.nan


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the mean of values, Student's t; twice NaN for fewer than two values."""
    from scipy.stats import t

    count = len(values)
    if count < 2:
        return math.nan, math.nan
    mean = sum(values) / count
    squares = [(value - mean) * (value - mean) for value in values]  # infinite for large values, where ** would raise
    deviation = math.sqrt(sum(squares) / (count - 1))
    half = float(t.ppf(0.5 + CONFIDENCE / 2, count - 1)) * deviation / math.sqrt(count)
    return mean - half, mean + half


def interval_text(interval: tuple[float, float], digits: int = 3) -> str:
    """Return an interval as text, e.g. ``"0.912 to 0.983"``; an empty text if there is none."""
    low, high = interval
    return "" if math.isnan(low) else f"{low:.{digits}f} to {high:.{digits}f}"
