"""``run.replay()``: the last recorded steps of a training, repeated in the warm simulator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rlnb.display.status import status
from rlnb.display.table import table
from rlnb.errors import RlnbError, WorkerError
from rlnb.interactive.debugger import Debugger, EnvStep, Stop, close_former, noted
from rlnb.protocol.requests import Replay as Request
from rlnb.records.facts import RunFacts, find_run
from rlnb.records.task_copy import task_of
from rlnb.records.trust import require_trusted_owner

if TYPE_CHECKING:
    import numpy as np

    from rlnb.records.flight import Flight

RECORDED = {"observations": "observation", "terms": "term", "states": "state", "rewards": "reward"}
"""Names of a step's arrays, and of those in a record."""


class Replay(Debugger):
    """The env of a training, whose last recorded steps are repeated call by call. Made by :meth:`rlnb.Run.replay`.

    All of :class:`rlnb.results.Debugger` works: values by name, breakpoints in the task's code, and pictures. On a CPU
    with Newton, each repeated step gives the recorded values bit by bit.
    """

    def __init__(self, flight: Flight, request: Request, python: str | None, asset_root: str | None) -> None:
        self.flight = flight
        """The record."""
        self._values = flight.arrays
        if flight.replay_from is None:
            raise RlnbError("This record has no snapshot of the env, so its steps cannot be repeated. Use run.flight.")
        self._begin = self.next_step = flight.replay_from
        self.compared = 0
        """Number of repeated steps that were compared with the record."""
        self.differences: dict[str, tuple[int, float]] = {}
        """The first env step and its largest difference, by the name of each array that differs from the record."""
        self._is_own, self._under_way = False, 0
        super().__init__(request.task, request, python, asset_root)

    @property
    def steps(self) -> range:
        """Numbers of the env steps that can be repeated."""
        return range(self._begin, self.flight.first_step + len(next(iter(self._values.values()))))

    def step(self, actions: Any = None, *, steps: int = 1) -> EnvStep | Stop:
        """Repeat recorded steps.

        Args:
            actions: Actions of each step in place of the recorded ones, of shape (num_envs, actions). Later steps are
                no longer those of the record.
            steps: Number of steps.

        Returns:
            What the last step returned, with the ``"states/..."`` after it, or the breakpoint at which the code has
            stopped.

        Raises:
            RlnbError: Fewer steps are left, the actions do not fit the env, or the env was closed.
            WorkerError: The task's own code failed.
        """
        rest = self.steps.stop - self.next_step
        if steps > rest:
            raise RlnbError(f"steps={steps} is more than the {rest} recorded steps that are left. Use replay.reset().")
        outcome: EnvStep | Stop = self.last
        for _ in range(steps):  # one request for each, so that each is compared with the record
            self._is_own = self._is_own or actions is not None
            self._under_way = 1
            try:
                outcome = super().step(actions)
            except WorkerError:
                self._is_own = True  # the env has stopped in the middle of a step
                raise
            if isinstance(outcome, Stop):
                break
        return outcome

    def reset(self, seed: int | None = None) -> EnvStep | Stop:
        """Go back to the first recorded step.

        Args:
            seed: Has no effect: the random numbers are the recorded ones.
        """
        self.next_step, self._under_way, self._is_own = self._begin, 0, False
        return super().reset(seed)

    def to(self, step: int | None = None) -> EnvStep | Stop:
        """Go to the moment before a step.

        Args:
            step: Number of the env step; None is the step of the value that was not finite.

        Raises:
            RlnbError: The record does not have this step.
        """
        step = self.flight.step if step is None else step
        if step not in self.steps:
            raise RlnbError(f"step={step} is not recorded. Use {self.steps[0]} to {self.steps[-1]}.")
        outcome = self.reset() if step < self.next_step or self._is_own else self.last
        return self.step(steps=step - self.next_step) if step > self.next_step else outcome

    def _ended(self, outcome: EnvStep) -> EnvStep:
        self.next_step, self._under_way = self.next_step + self._under_way, 0
        if not self._is_own:
            for name, difference in self._compared(outcome):
                self.differences.setdefault(name, (self.next_step - 1, difference))
        return super()._ended(outcome)

    def _compared(self, outcome: EnvStep) -> Iterator[tuple[str, float]]:
        """Yield the arrays of a step that differ from the record, with the largest difference."""
        import numpy as np

        states_row = self.next_step - self.flight.first_step
        is_compared = False
        for name, array in outcome.items():
            kind, _, rest = name.partition("/")
            key = "/".join(filter(None, (RECORDED.get(kind, kind), rest)))
            # A record has the states before each step, and everything else of the step.
            row = states_row if kind == "states" else states_row - 1
            if key not in self._values or not 0 <= row < len(self._values[key]):
                continue
            is_compared = True
            old = self._values[key][row]
            new = array[list(self.flight.envs)].reshape(old.shape).astype(old.dtype)
            if not np.array_equal(old, new, equal_nan=True):
                yield name, _largest_difference(old, new)
        self.compared += is_compared

    @property
    def env(self) -> Mapping[str, np.ndarray]:
        """The recorded values of the env with the value that was not finite, as arrays of shape (steps, values)."""
        row = self.flight.envs.index(self.flight.env)
        return {name: values[:, row] for name, values in self._values.items()}

    def _facts(self) -> list[tuple[str, str]]:
        differences = ", ".join(
            f"{name} differs by {by:.3g} from env step {step} on" for name, (step, by) in self.differences.items()
        )
        missing = [("variables that were not restored", ", ".join(self.missing))] if self.missing else []
        return [
            ("value", self.flight.what),
            ("recorded steps", f"{self.steps[0]} to {self.steps[-1]}"),
            ("next step", str(self.next_step)),
            ("comparison", differences or f"{self.compared} repeated steps were equal to the record"),
            *missing,
        ]

    def __repr__(self) -> str:
        return "\n".join(["Replay", *(f"  {name}: {text}" for name, text in self._facts())])

    def _repr_html_(self) -> str:
        return table(("replay", self._task.id), self._facts())


def _largest_difference(old: np.ndarray, new: np.ndarray) -> float:
    """Return the largest difference of two arrays; infinite if a value is finite in one of them only."""
    import numpy as np

    if not np.array_equal(np.isfinite(old), np.isfinite(new)):
        return float("inf")
    with np.errstate(invalid="ignore"):  # inf - inf
        return float(np.nanmax(np.abs(old - new), initial=0.0))


def replay(
    run: RunFacts | str,
    *,
    device: str | None = None,
    python: str | None = None,
    asset_root: str | None = None,
    trust: bool = False,
) -> Replay:
    """Repeat the recorded steps of a training; see :meth:`rlnb.Run.replay`."""
    facts = find_run(run) if isinstance(run, str) else run
    require_trusted_owner(facts.record, trust=trust)
    flight = facts.flight
    if flight is None:
        where = "Its error is in run.logs(200). " if facts.state == "failed" else ""
        raise RlnbError(
            f"{facts.id} has no flight record: a training leaves one when a value is not finite, or at an alert. "
            f"{where}rlnb.debug(run.task) steps its env."
        )
    manifest = facts.manifest
    request = Request(
        task=task_of(facts.record),
        run=str(facts.path),
        flight=flight.folder,
        device=device or manifest.resources.device,
        out="",
    )
    close_former()
    with status(f"Making the env of {facts.id}"):
        return noted(Replay(flight, request, python or manifest.python, asset_root or manifest.asset_root))
