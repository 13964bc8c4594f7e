"""Finds mistakes of a task in what its env returns, while actions without a policy step it."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any

import psutil

from rlnb.errors import InterruptedRequest, RlnbError
from rlnb.protocol.code_location import is_library
from rlnb.protocol.requests import TaskFinding
from rlnb.records.incidents import Shortage
from rlnb.worker.isaac import isaaclab, release, solver
from rlnb.worker.isaac.task_log import FIX, TaskLog

if TYPE_CHECKING:
    import torch

MOVED = 0.05
"""Movement in metres or radians from which on an observation should change."""
UNBOUNDED = 1e6
"""Size from which on a reward that grows is a mistake."""
GROWTH = 100.0
"""Factor by which it has to grow during the steps."""
NOTED_STEPS = 100
"""Number of steps after which there are notes on what has never happened, such as a reward other than 0."""
SETTLED_STEPS = 10
"""Steps after which an env should need no further memory."""
MOST_JOINTS = 6
"""Most joints that a finding names."""
MOST_INDICES = 4096
"""Size of an observation up to which it is no picture."""
OUTSIDE = 0.1
"""Distance in metres or radians of a joint from where the first reset has put it, from which on a reset moves it."""
LEAST_RESETS, MOST_KEPT = 5, 0.9
"""Number of resets of a joint from which on they are judged, and share of them that may leave it where it was."""
LEAST_EQUAL = 2
"""Number of envs in which a reset of all envs has to leave a joint at exactly the same position for a finding."""
LEAK_MIB_PER_STEP = 1.0
"""Growth of the memory in each step from which on there is a finding."""
LEAK_MIB = 15.0
"""Least growth in total for a finding. Allocators take memory in pieces of some MiB."""


@dataclass(slots=True)
class _Values:
    """What is known about one tensor of observations."""

    first: torch.Tensor
    """The one after the reset. Shape (num_envs, values)."""
    low: torch.Tensor
    """The smallest of all envs and steps. Shape (values,)."""
    high: torch.Tensor
    """The largest of all envs and steps. Shape (values,)."""
    moved: bool = False
    """Whether it was ever different from the first one."""


@dataclass(slots=True)
class _Joints:
    """The joints of a robot, and which of them a reset leaves where they were."""

    names: Sequence[str]
    before: torch.Tensor
    """Positions after the last step, metres and radians. Shape (num_envs, joints)."""
    low: torch.Tensor
    """Limits of where the first reset has put them. Shape (joints,)."""
    high: torch.Tensor
    step_s: float
    """Simulated seconds of an env step."""
    resets: Any = 0
    """Number of resets of each joint that was outside of the limits."""
    left: Any = 0
    """Number of these after which it still was, and in the next step too."""
    equal: Any = False
    """Whether a reset of all envs has not written the joint. Shape (joints,), bool."""
    last: tuple[torch.Tensor, ...] = ()
    """The resets before the next step: the joints that were outside, those of them that a reset has not written, their
    positions after it, and how far they may get in a step. Shape (num_envs, joints) each."""

    def note(self, ended: torch.Tensor, now: torch.Tensor, speeds: torch.Tensor) -> None:
        """Compare the joints before and after the resets of envs whose episode has ended."""
        self._judge(now)
        outside = self._outside(self.before) & ended[:, None]
        self.last = outside, outside & self._outside(now), now.clone(), self._reach(speeds)
        self.before = now.clone()

    def note_reset_of_all(self, now: torch.Tensor, speeds: torch.Tensor) -> None:
        """Compare the joints before and after a reset of all envs, between which no physics step has moved them."""
        outside = self._outside(self.before)
        self.last = outside, outside & (now == self.before), now.clone(), self._reach(speeds)

    def note_step_after_it(self, now: torch.Tensor) -> None:
        """Compare the joints after the step that follows a reset of all envs."""
        resets, left = self.resets, self.left
        self._judge(now)
        resets, left = self.resets - resets, self.left - left
        self.equal = (resets >= LEAST_EQUAL) & (left == resets)

    def _judge(self, now: torch.Tensor) -> None:
        """Count the resets that have left a joint. A loop or a mimic moves a joint that a reset need not write."""
        if self.last:
            outside, unwritten, at, reach = self.last
            self.resets = self.resets + outside.sum(dim=0)
            self.left = self.left + (unwritten & ((now - at).abs() <= reach)).sum(dim=0)
            self.last = ()

    def _reach(self, speeds: torch.Tensor) -> torch.Tensor:
        return OUTSIDE + 2 * self.step_s * speeds.abs()

    def _outside(self, values: torch.Tensor) -> torch.Tensor:
        return (values < self.low) | (values > self.high)

    @property
    def kept(self) -> str:
        """The joints that resets leave where they were, as text; empty if there are none."""
        if isinstance(self.resets, int):  # no step was made
            return ""
        judged = (self.resets >= LEAST_RESETS) & (self.left > MOST_KEPT * self.resets) | self.equal
        numbers = judged.nonzero().flatten().tolist()
        named = [f"{self.names[number]!r}" for number in numbers[:MOST_JOINTS]]
        more = f" and {len(numbers) - MOST_JOINTS} more" if len(numbers) > MOST_JOINTS else ""
        return f"the joint{'s' if len(numbers) > 1 else ''} {', '.join(named)}{more}" if numbers else ""


@dataclass(slots=True)
class Sanity:
    """Looks at each step of an env.

    Call :meth:`after_reset` and :meth:`after_step` with what the env returns, then :meth:`after_last_reset` and
    :meth:`after_last_step` if the env is reset and stepped once more, and then :meth:`findings`.
    """

    env: Any
    """The task's own env."""
    held_mib: Callable[[], float] = float
    """Returns the memory that the caller keeps between the steps, in MiB."""
    _observed: dict[str, _Values] = field(default_factory=dict)
    _shapes: dict[str, TaskFinding] = field(default_factory=dict)
    _invalid: dict[str, str] = field(default_factory=dict)
    _terms: dict[str, tuple[float, float]] = field(default_factory=dict)
    _rewards: list[tuple[float, float]] = field(default_factory=list)
    """Smallest and largest reward of each step."""
    _first_ends: Mapping[str, int] = field(default_factory=dict)
    _ages: Any = None
    """Steps of the present episode of each env. Shape (num_envs,), int."""
    _ends: int = 0
    """Number of episodes that have ended after the first step, and of those that had one step only."""
    _short: int = 0
    _joints: dict[str, _Joints] = field(default_factory=dict)
    _state: Any = None
    _distance: float = 0.0
    _memory_mib: list[float] = field(default_factory=list)
    _shortages: dict[str, Shortage] = field(default_factory=dict)
    _log: TaskLog = field(default_factory=TaskLog)

    def after_reset(self, observations: Any, extras: Any = None) -> None:
        """Look at the first observations, and at what the env has logged."""
        self._log.extras(extras)
        if not isinstance(observations, Mapping):
            self._refuse("What the env observes", observations, 'a dict of tensors, such as {"policy": tensor}')
            return
        for name in _missing(observations, _space(self.env)):
            what = f"The env has a space for the observation {name!r}, but does not return it."
            fix = f"Return it beside the others, as observations[{name!r}]."
            self._shapes[name] = TaskFinding(level="warning", what=what, fix=fix)
        self._observe(observations, 0)
        self._state = isaaclab.positions(self.env)
        self._joints = {
            name: _Joints(
                names, at.clone(), at.amin(dim=0) - OUTSIDE, at.amax(dim=0) + OUTSIDE, float(self.env.step_dt)
            )
            for name, (names, at, _) in isaaclab.joints(self.env).items()
        }

    def after_step(
        self,
        observations: Any,
        reward: torch.Tensor,
        terminated: torch.Tensor,
        cut: torch.Tensor,
        *,
        extras: Any = None,
    ) -> None:
        """Look at what a step has returned.

        Args:
            observations: Observations by group, or by agent.
            reward: Shape (num_envs,), float.
            terminated: Shape (num_envs,), bool.
            cut: Whether the time is up. Shape (num_envs,), bool.
            extras: What else the env has returned, with what it logs.
        """
        self._log.extras(extras)
        if not _is_tensor(reward):
            self._refuse("The reward", reward, "a tensor")
            return
        step = len(self._rewards) + 1
        if isinstance(observations, Mapping):
            self._observe(observations, step)
        self._check("the reward", reward, (), step)
        self._rewards.append((float(reward.min()), float(reward.max())))
        self._look_at_terms(step)
        self._look_at_resets(terminated | cut, step)
        if step == 1:
            self._first_ends = _ends(self.env, terminated, cut)
        if self._state is not None and self._state.numel():
            moved = (isaaclab.positions(self.env) - self._state).abs().max()
            self._distance = max(self._distance, float(moved))
        for limit, shortage in solver.look_for_shortages(self.env).items():
            self._shortages[limit] = shortage.joined(self._shortages.get(limit, shortage))
        self._memory_mib.append(_memory_mib() - self.held_mib())

    def after_last_reset(self) -> None:
        """Look at the joints after a reset of all envs that follows the last step."""
        for name, (_, values, speeds) in isaaclab.joints(self.env).items() if self._joints else ():
            self._joints[name].note_reset_of_all(values, speeds)

    def after_last_step(self) -> None:
        """Look at the joints after the step that follows the last reset."""
        for name, (_, values, _) in isaaclab.joints(self.env).items() if self._joints else ():
            self._joints[name].note_step_after_it(values)

    def findings(self) -> list[TaskFinding]:
        """Return the mistakes, the certain ones first."""
        lost = [TaskFinding(level="warning", what=each.what, fix=each.fix) for each in self._shortages.values()]
        returned = [*self._shapes.values(), *self._of_values(), *self._of_rewards(), *self._of_ends()]
        unlogged = [TaskFinding(level="warning", what=what, fix=FIX) for what in self._log.faults.values()]
        found = [*returned, *lost, *unlogged, *self._of_memory()]
        return sorted(found, key=lambda finding: finding.level == "note")

    def _refuse(self, label: str, value: Any, expected: str) -> None:
        """Note a value of a wrong type."""
        what = f"{label} is {type(value).__name__}, not {expected}."
        self._shapes[label] = TaskFinding(level="warning", what=what, fix="Look for a missing return in the task.")

    def _observe(self, observations: Any, step: int) -> None:
        for name, value, space in _leaves(observations, _space(self.env)):
            label = f"the observation {name!r}"
            if not _is_tensor(value):
                self._refuse(_sentence(label), value, "a tensor")
                continue
            self._check(label, value, None if space is None else space.shape, step)
            if not value.numel():
                continue
            flat = value.detach().reshape(len(value), -1)
            low, high = flat.amin(dim=0), flat.amax(dim=0)
            if (known := self._observed.get(label)) is None:
                self._observed[label] = _Values(flat.clone(), low, high)
            elif known.first.shape == flat.shape:
                known.low, known.high = known.low.minimum(low), known.high.maximum(high)
                known.moved = known.moved or not bool((flat == known.first).all())

    def _check(self, label: str, value: torch.Tensor, shape: tuple[int, ...] | None, step: int) -> None:
        """Note a wrong shape or device, or the first value that is not finite."""
        import torch

        if label not in self._shapes:
            if shape is not None and tuple(value.shape) != (self.env.num_envs, *shape):
                expected = _text((self.env.num_envs, *shape))
                if shape:
                    what = f"{label} has the shape {_text(value.shape)}, but its space says {expected}."
                    fix = "Correct the size of the space in the config, or what the env returns."
                else:
                    what = (
                        f"{label} has the shape {_text(value.shape)}, but it needs one value for each env: {expected}."
                    )
                    fix = "Return a tensor of that shape, such as reward.squeeze(-1)."
                self._shapes[label] = TaskFinding(level="warning", what=_sentence(what), fix=fix)
            elif value.device.type != torch.device(self.env.device).type:
                what = f"{label} is on {value.device}, but the simulation is on {self.env.device}."
                self._shapes[label] = TaskFinding(
                    level="warning", what=_sentence(what), fix="Make tensors with device=self.device."
                )
        if label not in self._invalid and value.dim() and not bool(torch.isfinite(value).all()):
            wrong = ~torch.isfinite(value).reshape(len(value), -1)
            env, index = (int(number) for number in wrong.nonzero()[0])
            place = f"index {index}, " if wrong.shape[1] > 1 else ""
            self._invalid[label] = (
                f"{label} is {float(value.reshape(len(value), -1)[env, index])} in step {step} ({place}env {env}; "
                f"{int(wrong.any(dim=1).sum())} of {len(wrong)} envs)."
            )

    def _look_at_resets(self, ended: torch.Tensor, step: int) -> None:
        """Count the episodes of one step, and the joints that a reset has left where they were."""
        import torch

        self._ages = torch.ones_like(ended, dtype=torch.long) if self._ages is None else self._ages + 1
        if step > 1:
            self._ends += int(ended.sum())
            self._short += int((ended & (self._ages == 1)).sum())
        self._ages[ended] = 0
        for name, (_, values, speeds) in isaaclab.joints(self.env).items() if self._joints else ():
            self._joints[name].note(ended, values, speeds)

    def _look_at_terms(self, step: int) -> None:
        for name, values in isaaclab.reward_terms(self.env).items():
            self._check(f"the reward term {name!r}", values, (), step)
            low, high = self._terms.get(name, (0.0, 0.0))
            self._terms[name] = min(low, float(values.min())), max(high, float(values.max()))

    def _of_values(self) -> Iterator[TaskFinding]:
        for what in self._invalid.values():
            fix = "Look for a division by zero, the root or logarithm of a negative number, or too large forces."
            yield TaskFinding(level="warning", what=_sentence(what), fix=fix)
        if len(self._rewards) < 2:
            return
        for label, values in self._observed.items():
            if self._is_frozen(label) and self._distance > MOVED:
                what = f"{label} never changed, although bodies or joints moved by {self._distance:.2f} m or rad."
                yield TaskFinding(
                    level="warning", what=_sentence(what), fix="Compute it in each step, from the newest state."
                )
                continue
            same = (values.low == values.high).nonzero().flatten().tolist()
            noted = len(self._rewards) >= NOTED_STEPS and label not in self._invalid
            if noted and same and 1 < len(values.low) <= MOST_INDICES:
                what = f"{label} has the same value in all envs and steps at {_indices(same)}."
                yield TaskFinding(level="note", what=_sentence(what), fix="A policy learns nothing from it.")

    def _is_frozen(self, label: str) -> bool:
        """Return whether no part of an observation's group ever changed. A part alone may be constant, as a command."""
        group = label.partition("/")[0].rstrip("'")
        parts = [values for name, values in self._observed.items() if name.partition("/")[0].rstrip("'") == group]
        return len(self._rewards) >= SETTLED_STEPS and not any(values.moved for values in parts)

    def _of_rewards(self) -> Iterator[TaskFinding]:
        if len(self._rewards) < 2 or "the reward" in self._invalid:
            return
        low, high = min(low for low, _ in self._rewards), max(high for _, high in self._rewards)
        sizes = [max(abs(low), abs(high)) for low, high in self._rewards]
        if low == high and len(self._rewards) >= NOTED_STEPS:
            what = f"The reward was {low:g} in all envs and steps."
            fix = "That is right for a reward that only a good policy reaches. Otherwise, check its terms."
            yield TaskFinding(level="note", what=what, fix=fix)
        elif sizes[-1] > UNBOUNDED and sizes[-1] > GROWTH * (1.0 + sizes[0]):
            what = f"The reward grew from {sizes[0]:.3g} to {sizes[-1]:.3g} within {len(sizes)} steps."
            yield TaskFinding(level="warning", what=what, fix="Bound it, for example with torch.tanh or torch.exp(-x).")
        for name, (least, most) in self._terms.items():
            never = least == most == 0.0 and f"the reward term {name!r}" not in self._invalid
            if never and len(self._rewards) >= NOTED_STEPS and self.env.reward_manager.get_term_cfg(name).weight:
                what = f"The reward term {name!r} was 0 in all envs and steps, so it had no effect."
                fix = "That is right for a reward that only a good policy reaches. Otherwise, check its function."
                yield TaskFinding(level="note", what=what, fix=fix)

    def _of_ends(self) -> Iterator[TaskFinding]:
        for cause, count in self._first_ends.items():
            if 2 * count >= self.env.num_envs:
                what = f"{count} of {self.env.num_envs} episodes ended in their first step{cause}."
                fix = "Compare the condition with the state after the reset."
                yield TaskFinding(level="warning", what=what, fix=fix)
        for name, joints in self._joints.items():
            if kept := joints.kept:
                stay = "they stay" if kept.startswith("the joints") else "it stays"
                what = f"A reset does not change {kept} of {name!r}: {stay} where the episode has ended."
                fix = "Write the state of all joints in _reset_idx(), or add a reset event for them."
                yield TaskFinding(level="warning", what=what, fix=fix)
        is_told = any(2 * count >= self.env.num_envs for count in self._first_ends.values())
        if not is_told and self._ends >= LEAST_RESETS and 2 * self._short >= self._ends:
            what = f"{self._short} of {self._ends} episodes ended in their first step after a reset."
            fix = "Write the state of robots and objects in _reset_idx(), or add reset events for them."
            yield TaskFinding(level="warning", what=what, fix=fix)

    def _of_memory(self) -> Iterator[TaskFinding]:
        settled = self._memory_mib[SETTLED_STEPS:]
        if len(settled) < SETTLED_STEPS:
            return
        grown, half = settled[-1] - settled[0], len(settled) // 2
        steady = min(settled[half] - settled[0], settled[-1] - settled[half]) > 0.25 * grown
        if steady and grown > LEAK_MIB and grown / len(settled) > LEAK_MIB_PER_STEP:
            what = f"The memory grew by {grown / len(settled):.1f} MiB in each of {len(settled)} steps."
            fix = "Look for a list or buffer of the task that grows. Tensors kept with their gradients grow too."
            yield TaskFinding(level="warning", what=what, fix=fix)


def _space(env: Any) -> Any:
    """Return the observation space of one env, by group or by agent."""
    spaces = getattr(env, "observation_spaces", None)
    return spaces if isinstance(spaces, Mapping) else getattr(env, "single_observation_space", None)


def _leaves(value: Any, space: Any, name: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the tensors of nested observations with their names and spaces; None where there is no space.

    A tuple without a space for tuples is one that a step should not have returned.
    """
    is_tuple = isinstance(value, tuple | list) and isinstance(getattr(space, "spaces", None), tuple | list)
    if isinstance(value, Mapping) or is_tuple:
        for key, part in value.items() if isinstance(value, Mapping) else enumerate(value):
            try:
                inner = space[key] if space is not None else None
            except (KeyError, IndexError, TypeError):
                inner = None
            yield from _leaves(part, inner, name=f"{name}/{key}" if name else str(key))
    else:
        yield name, value, space if getattr(space, "shape", None) else None


def _missing(value: Any, space: Any) -> list[str]:
    """Return the groups or agents that have a space, but no observation."""
    names = getattr(space, "spaces", space)
    return [str(key) for key in names if key not in value] if isinstance(names, Mapping) else []


def _ends(env: Any, terminated: Any, cut: Any) -> dict[str, int]:
    """Return the number of episodes that have ended, by cause."""
    causes = {"": terminated, " because their time was up": cut & ~terminated}
    manager = getattr(env, "termination_manager", None)
    if manager is not None:
        causes = {f" (termination term {name!r})": manager.get_term(name) for name in manager.active_terms}
    return {cause: int(ended.sum()) for cause, ended in causes.items()}


def _memory_mib() -> float:
    """Return the memory of this process and that of its tensors on the GPU, in MiB."""
    import torch

    on_gpu = torch.cuda.memory_allocated() if torch.cuda.is_initialized() else 0
    return float(psutil.Process(os.getpid()).memory_info().rss + on_gpu) / 2**20


def _is_tensor(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor)


def _text(shape: Any) -> str:
    return f"({', '.join(str(int(size)) for size in shape)}{',' if len(shape) == 1 else ''})"


def _indices(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:8]))
    more = f" and {len(numbers) - 8} more" if len(numbers) > 8 else ""
    return f"{'index' if len(numbers) == 1 else 'the indices'} {shown}{more}"


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


# -- infinite loops --------------------------------------------------------------------------------------------------


CALL_LIMIT_S = 20.0
"""Seconds that one call of a function of the task may take. Steps of an env take milliseconds."""
CALL_LOOK_S = 0.5
COMPILERS = (
    *("/torch/_inductor/", "/torch/_dynamo/", "/torch/jit/", "/torch/utils/cpp_extension", "/triton/"),
    *("/warp/_src/build", "/numba/"),
)
"""Parts of the paths of compilers, which a function may have to wait for at first."""


class _Watch(threading.Thread):
    """Looks at the main thread; interrupts it once a call of the task's own code takes too long."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(daemon=True, name="watch for endless loops")
        self._limit_s, self._main = limit_s, threading.main_thread().ident or 0
        self.over = threading.Event()
        self.place = ""
        """Where the main thread was when it was interrupted."""

    def run(self) -> None:
        call: FrameType | None = None
        since_s = time.monotonic()
        current_frames = release.required(sys, "_current_frames", "the watch for endless loops")
        while not self.over.wait(CALL_LOOK_S):
            frames = [*_frames(current_frames().get(self._main))]
            own = [frame for frame in frames if _is_own(frame)]
            compiles = any(part in frame.f_code.co_filename for frame in frames for part in COMPILERS)
            outermost = own[-1] if own else None
            if outermost is None or outermost is not call or compiles:
                call, since_s = outermost, time.monotonic()
            elif time.monotonic() - since_s > self._limit_s:
                innermost = own[0]
                code = innermost.f_code
                self.place = f"{code.co_filename}, line {innermost.f_lineno}, in {code.co_name}"
                signal.pthread_kill(self._main, signal.SIGINT)
                return


def _is_own(frame: FrameType) -> bool:
    """Return whether a frame is of the task's own code. Isaac Lab and Isaac Sim may be source checkouts."""
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return not is_library(frame.f_code.co_filename) and not package.startswith(("isaac", "omni", "newton", "warp"))


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and those that called it."""
    while frame is not None:
        yield frame
        frame = frame.f_back


@contextlib.contextmanager
def ends_infinite_loops(limit_s: float | None = None) -> Iterator[None]:
    """End the block if a call of the task's own code in it does not return.

    SIGINT has to raise :class:`rlnb.errors.InterruptedRequest`. A loop in C++ cannot be ended in this way; the kernel's
    limit for a request ends that.

    Args:
        limit_s: Seconds that a call may take; None is ``CALL_LIMIT_S``.

    Raises:
        RlnbError: A call did not return. The error says where it was.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    watch = _Watch(CALL_LIMIT_S if limit_s is None else limit_s)
    watch.start()
    try:
        yield
    except InterruptedRequest:
        if not watch.place:
            raise
        raise RlnbError(
            f"The task has not returned from a step or reset for {watch._limit_s:.0f} s: it is in {watch.place}. "
            "Look for an endless loop there."
        ) from None
    finally:
        watch.over.set()
        watch.join()
