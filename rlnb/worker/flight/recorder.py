"""Keeps the last steps of a training on its device, and ends the training at a value that no library survives."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlnb.errors import NotFiniteError, RlnbError, TrainingStopped
from rlnb.records.flight import ALERT, Flight, write
from rlnb.storage import entries, files
from rlnb.worker.flight.snapshot import (
    Kind,
    Snapshot,
    StateField,
    States,
    flat,
    leaves,
    outcome_parts,
    place_of,
    take,
    terms,
)
from rlnb.worker.isaac import isaaclab

if TYPE_CHECKING:
    import numpy as np
    import torch

logger = logging.getLogger(__name__)

STEPS = 32
"""Largest number of steps that are kept, a multiple of ``EVERY``."""
EVERY = 8
"""Steps between two looks at the values, and smallest number that is kept. A look at a GPU's values waits for it."""
MOST_BYTES = 256 * 2**20
"""Memory of the kept steps. If 32 steps of many envs need more, fewer are kept."""
WRITTEN_BYTES = 3 * 2**20
"""Size of the values in a record, uncompressed. If all envs have more, the record has the first ones and the one of the
value. A replay has all of them."""
FATAL: tuple[Kind, ...] = ("action", "term", "reward")
"""Kinds of values that no library survives: an action that is nan, a term or a reward that is not finite.

An observation may be nan in a group that the library does not read, and it may be infinite if the library clips it.
Otherwise the next action is nan.
"""
REQUEST, REQUEST_S = "flight.request", 2.0
"""Name of the file with the newest alert, beside the records, and seconds between two looks at it."""
VARIABLE = "RLNB_FLIGHT_RECORDER"
"""Environment variable that turns the recorder off if it is ``0``."""


def recording(
    env: Any, folder: Path, iteration: Callable[[int], int | None]
) -> contextlib.AbstractContextManager[object]:
    """Return a context manager that records an env, with the arguments of :class:`Recorder`."""
    return contextlib.nullcontext() if os.environ.get(VARIABLE) == "0" else Recorder(env, folder, iteration)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Found:
    """The first value of a training that is not finite."""

    part: StateField
    when: str
    """``"before"`` (for a state that became so between two steps), ``"in"`` or ``"after"`` the step."""
    step: int
    env: int = 0
    index: int = 0
    value: float = 0.0


class Recorder:
    """Records an env that is being stepped, while it is a context manager.

    Args:
        env: The env, as gymnasium made it.
        folder: Folder for the record.
        iteration: Returns the learning iteration of an env step.
    """

    def __init__(self, env: Any, folder: Path, iteration: Callable[[int], int | None]) -> None:
        self._env = isaaclab.task_env(env)
        self._folder, self._iteration = folder, iteration
        self._count = self._looked = 0
        self._rings: tuple[torch.Tensor, torch.Tensor] | None = None
        self._parts: list[StateField] = []
        self._size = STEPS
        self._is_off = False
        self._request, self._requested_s = folder.with_name(REQUEST), time.monotonic()
        self._alert = ""
        """Text of the newest alert."""
        self._noted: _Found | None = None

    def __enter__(self) -> Recorder:
        import torch

        self._step = self._env.step
        with self._harmless():
            self._rewind = Rewind(self._env)
            self._states = self._rewind.states

        def recorded(actions: Any) -> Any:
            if self._is_off:
                return self._step(actions)
            with torch.no_grad():
                before = self._before(actions)
            outcome = self._step(actions)
            with torch.no_grad():
                self._after(before, actions, outcome)
            return outcome

        self._env.step = recorded
        return self

    def _before(self, actions: Any) -> torch.Tensor | None:
        """Keep what a step needs to be repeated; return the state of all envs, or None after a failure."""
        try:
            before = self._state()
            self._rewind.before_step(actions, every=self._size)
        except Exception as exc:
            self._turn_off(exc)
            return None
        return before

    def _after(self, before: torch.Tensor | None, actions: Any, outcome: Any) -> None:
        """Record a step, and look at it if it is time to.

        Raises:
            NotFiniteError: As :meth:`_look`.
        """
        try:
            self._keep(before, actions, outcome)
        except NotFiniteError:
            raise
        except Exception as exc:
            self._turn_off(exc)

    def _turn_off(self, exc: Exception) -> None:
        self._is_off = True
        logger.warning("The flight recorder is off. %s: %s", type(exc).__name__, exc)

    @contextlib.contextmanager
    def _harmless(self) -> Iterator[None]:
        """Turn the recorder off if it fails: a missing record must not end a training."""
        try:
            yield
        except NotFiniteError:
            raise
        except Exception as exc:
            self._turn_off(exc)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if kind is None or (issubclass(kind, Exception) and not issubclass(kind, NotFiniteError | TrainingStopped)):
            with self._harmless():
                # The library may have failed because of a value that was not looked at yet.
                self._look(failed=kind is not None)

    def _state(self) -> torch.Tensor:
        """Return the state of all envs, shape (num_envs, values)."""
        import torch

        parts = self._states.read()
        return torch.cat(parts, dim=1) if parts else torch.zeros((self._env.num_envs, 0), device=self._env.device)

    def _keep(self, before: torch.Tensor | None, actions: Any, outcome: Any) -> None:
        import torch

        if before is None or self._is_off:
            return
        observations, reward, *_ = outcome
        num_envs = self._env.num_envs
        kinds: dict[Kind, dict[str, torch.Tensor]] = {
            "action": flat(leaves(actions), num_envs),
            "term": terms(self._env),
            "observation": flat(leaves(observations), num_envs),
            "reward": flat(leaves(reward), num_envs),
        }
        values = [value for tensors in kinds.values() for value in tensors.values()]
        if self._rings is None:
            self._parts = outcome_parts(self._env, kinds)
            self._rings = self._begin(before.shape[1], sum(part.width for part in self._parts))
        states, results = self._rings
        states[self._count % self._size] = before
        device = results.device
        values = [value if value.device == device else value.to(device) for value in values]
        results[self._count % self._size] = torch.cat(values, dim=1)  # which converts the values too
        self._count += 1
        if self._count % EVERY == 0:
            self._look()
            self._answer()

    def _begin(self, *widths: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return memory for the states and the results of as many steps as fit."""
        import torch

        fit = MOST_BYTES // (4 * self._env.num_envs * max(1, sum(widths)))
        self._size = max(EVERY, min(STEPS, fit // EVERY * EVERY))
        with torch.inference_mode(False):  # so that a library may step the env with and without inference mode
            states, results = (
                torch.zeros((self._size, self._env.num_envs, width), device=self._env.device) for width in widths
            )
        return states, results

    def _look(self, *, failed: bool = False) -> None:
        """Look at the steps since the last look.

        Args:
            failed: Whether the library has just failed, so that any value that is not finite is worth an error.

        Raises:
            NotFiniteError: An action is nan, a reward is not finite, or the library has failed.
        """
        import torch

        first, self._looked = self._looked, self._count
        if self._rings is None:
            return
        bad = None
        if first < self._count:
            states, results = (ring[first % self._size : (self._count - 1) % self._size + 1] for ring in self._rings)
            if not (bool(torch.isfinite(states).all()) and bool(torch.isfinite(results).all())):
                if fatal := self._first_fatal(first):
                    self._refuse(self._cause(*fatal))
                bad = self._first(first)
        if failed and self._noted is not None and self._noted.step >= self._count - EVERY:
            bad = self._noted  # the observation that the library has failed on
        if bad is not None and failed:
            self._refuse(bad)
        if bad is not None and self._noted is None:
            self._noted = bad
            path = self._written(self._text(bad), bad, fatal=False)
            logger.warning("%s The training goes on.%s", self._text(bad), path)

    def _answer(self) -> None:
        """Write a record if there is a new alert of the agent."""
        now = time.monotonic()
        if now < self._requested_s + REQUEST_S:
            return
        self._requested_s = now
        if not files.there(self._request):
            return
        what = entries.read_bytes(self._request).decode(errors="replace")
        if what != self._alert:
            self._alert = what
            last = _Found(part=StateField(kind=ALERT, name="", labels=(), width=1), when="in", step=self._count - 1)
            with contextlib.suppress(OSError):  # a full disk, after which the recorder is still needed
                self._write(what, last, fatal=False, folder=self._folder.with_name(f"alert-{self._folder.name}"))

    def _refuse(self, bad: _Found) -> None:
        """Write the record, and raise the error."""
        what = self._text(bad)
        if bad is not self._noted and self._has_led_to(bad):
            # The update after it may have made the weights, or a running mean, nan.
            assert self._noted is not None
            bad, what = self._noted, f"{self._text(self._noted)} Later, {_lower(what)}"
        path = self._written(what, bad, fatal=True)
        raise NotFiniteError(f"{what}{path}")

    def _has_led_to(self, bad: _Found) -> bool:
        """Return whether a nan action is probably due to the value that was noted before, in the last iteration."""
        if self._noted is None or bad.part.kind != "action":
            return False
        before, now = self._iteration(self._noted.step), self._iteration(bad.step)
        if before is None or now is None:
            return bad.step - self._noted.step <= STEPS
        return now - before <= 1

    def _written(self, what: str, bad: _Found, *, fatal: bool) -> str:
        """Write the record; return a sentence that says where it is."""
        try:
            path = self._write(what, bad, fatal=fatal)
        except Exception as exc:  # such as a full disk, which must not hide the value
            return f" Its record could not be written: {exc}"
        return f" The values of the last {self._size} steps are in {path}. To repeat them: run.replay()"

    def _first_fatal(self, first: int) -> tuple[int, int] | None:
        """Return the step and the env of the first value that no library survives; None if there is none."""
        for step in range(first, self._count):
            for part, values in self._columns(self._parts, step, ring=1):
                if part.kind in FATAL and (place := place_of(values, nan=part.kind == "action")):
                    return step, place["env"]
        return None

    def _cause(self, step: int, env: int) -> _Found:
        """Return the first value of an env that is not finite, in the step of a fatal one or the step before.

        An observation that is nan makes the next action nan. A joint that became nan makes the observation and the
        reward of its step nan. What was not finite long before has nothing to do with it.
        """
        for at, kinds in ((step - 1, ("term", "reward", "observation")), (step, ("action", "term", "reward"))):
            if not max(0, self._count - self._size) <= at < self._count:
                continue
            for part, values in self._columns(self._parts, at, ring=1):
                old = self._noted is not None and self._noted.part == part and self._noted.step < step - 1
                if part.kind in kinds and not old and (place := place_of(values, env=env)):
                    cause = None if part.kind == "action" else self._state_after(at, env)
                    return cause or _Found(part=part, when="in", step=at, **place)
        raise AssertionError("all values are finite")

    def _first(self, first: int) -> _Found:
        """Return the first value that is not finite, from a step on."""
        for step in range(first, self._count):
            for part, values in self._columns(self._states.parts, step, ring=0):
                if place := place_of(values):
                    return _Found(part=part, when="before", step=step, **place)
            for part, values in self._columns(self._parts, step, ring=1):
                if place := place_of(values):
                    return self._state_after(step, place["env"]) or _Found(part=part, when="in", step=step, **place)
        raise AssertionError("all values are finite")

    def _state_after(self, step: int, env: int) -> _Found | None:
        """Return the first state of an env after a step that is not finite; None if all are finite."""
        if step + 1 < self._count:
            columns = self._columns(self._states.parts, step + 1, ring=0)
        else:
            columns = zip(self._states.parts, self._states.read(), strict=True)
        for part, values in columns:
            if place := place_of(values, env=env):
                return _Found(part=part, when="after", step=step, **place)
        return None

    def _columns(self, parts: list[StateField], step: int, ring: int) -> Iterator[tuple[StateField, torch.Tensor]]:
        """Yield the parts of a step with their values, each of shape (num_envs, width)."""
        assert self._rings is not None
        begin = 0
        for part in parts:
            yield part, self._rings[ring][step % self._size, :, begin : begin + part.width]
            begin += part.width

    def _text(self, bad: _Found) -> str:
        iteration = self._iteration(bad.step)
        where = "" if iteration is None else f", in iteration {iteration}"
        value = f"{bad.part.text(bad.index)} is {bad.value}"
        return f"{value} in env {bad.env} {bad.when} env step {bad.step}{where}."

    def _write(self, what: str, bad: _Found, *, fatal: bool, folder: Path | None = None) -> Path:
        """Write the record; return the path of the values."""
        import torch

        kept = range(max(0, self._count - self._size), self._count)
        width = sum(part.width for part in (*self._states.parts, *self._parts))
        most = max(1, WRITTEN_BYTES // (4 * len(kept) * width))
        envs = [*range(min(most, self._env.num_envs))]
        if bad.env not in envs:
            envs[-1] = bad.env
        arrays = {}
        for ring, parts in enumerate((self._states.parts, self._parts)):
            steps = [[values for _, values in self._columns(parts, step, ring)] for step in kept]
            for part, values in zip(parts, zip(*steps, strict=True), strict=True):
                arrays[part.key] = torch.stack(values)[:, envs].cpu().numpy()
        first_repeatable, replay = self._rewind.arrays()
        flight = Flight(
            what=what,
            kind=bad.part.kind,
            name=bad.part.name,
            label=bad.part.labels[bad.index] if bad.part.labels else "",
            index=bad.index,
            env=bad.env,
            step=bad.step,
            iteration=self._iteration(bad.step),
            fatal=fatal,
            first_step=kept[0],
            replay_from=first_repeatable,
            seed=getattr(self._env.cfg, "seed", None),
            num_envs=self._env.num_envs,
            envs=tuple(envs),
            labels={part.key: part.labels for part in (*self._states.parts, *self._parts) if part.labels},
        )
        return write(folder or self._folder, flight, arrays, replay)


def _lower(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


# -- what a replay needs ---------------------------------------------------------------------------------------------


MOST_REWIND_BYTES = 64 * 2**20
"""Largest size of a snapshot. A larger env is recorded without."""


class Rewind:
    """Keeps an env's snapshots, actions and random numbers.

    Args:
        env: The task's own env.
    """

    def __init__(self, env: Any) -> None:
        self._env, self.states = env, States(env)
        self._snapshots: deque[Snapshot] = deque(maxlen=2)
        self._steps: deque[tuple[dict[str, torch.Tensor], torch.Tensor]] = deque()
        self._count = 0
        self._is_off = False

    def before_step(self, actions: Any, every: int) -> None:
        """Keep what a step needs to be repeated. An env that does not allow it is recorded without.

        Args:
            actions: Actions of the step.
            every: Steps between two snapshots.
        """
        if self._is_off:
            return
        try:
            self._keep(actions, every)
        except Exception as exc:  # the state of a task's own objects may be anything
            self._is_off = True
            self._snapshots.clear()
            self._steps.clear()
            logger.info("The last steps of this training cannot be replayed. %s: %s", type(exc).__name__, exc)

    def _keep(self, actions: Any, every: int) -> None:
        if self._count % every == 0:
            snapshot = take(self._env, self.states, self._count)
            if snapshot.size > MOST_REWIND_BYTES:
                raise RlnbError(f"A snapshot of the env has {snapshot.size / 2**20:.0f} MiB")
            self._snapshots.append(snapshot)
            while self._count - len(self._steps) < self._snapshots[0].step:
                self._steps.popleft()
        self._steps.append(({name: value.clone() for name, value in leaves(actions)}, random_state(self._env.device)))
        self._count += 1

    def arrays(self) -> tuple[int | None, dict[str, np.ndarray]]:
        """Return the first step that can be repeated, and the arrays for it and all later ones; None if there is none.

        Beside those of the snapshot, they are ``"action/<agent>"`` (``"action/"`` without agents), of shape
        (steps, num_envs, width), and ``"random"``, the states of torch's generator, of shape (steps, bytes), uint8.
        """
        import torch

        if self._is_off or not self._snapshots:
            return None, {}
        arrays = self._snapshots[0].arrays()
        for name in self._steps[0][0]:
            arrays[f"action/{name}"] = torch.stack([actions[name] for actions, _ in self._steps]).cpu().numpy()
        arrays["random"] = torch.stack([state for _, state in self._steps]).numpy()
        return self._snapshots[0].step, arrays


def random_state(device: str) -> torch.Tensor:
    """Return the state of the generator of a device's random numbers, shape (bytes,), uint8, on the CPU."""
    import torch

    return torch.cuda.get_rng_state(device) if str(device).startswith("cuda") else torch.get_rng_state()


def set_random_state(state: np.ndarray, device: str) -> None:
    """Set the state of the generator of a device's random numbers.

    Args:
        state: As :func:`random_state` returns it.
        device: The device.
    """
    import torch

    tensor = torch.from_numpy(state.copy())
    if str(device).startswith("cuda"):
        torch.cuda.set_rng_state(tensor, device)
    else:
        torch.set_rng_state(tensor)
