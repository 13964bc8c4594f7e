"""The env of the debugger, which stays open between requests, and the port at which a debugger attaches."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlnb.display.own_user import lists_users, refuse_other_users
from rlnb.errors import FreshProcessError, RlnbError, did_you_mean
from rlnb.protocol.requests import Address, Debug, EnvData, Picture, Reading
from rlnb.records.camera_files import FrameRequest
from rlnb.worker.actions import Act, acting
from rlnb.worker.actions import actions as random_or_zero
from rlnb.worker.cameras.live import FrameSource
from rlnb.worker.isaac import isaaclab

if TYPE_CHECKING:
    import numpy as np

Values = Mapping[str, Any]
"""Values by name: tensors, arrays or numbers, or more such values."""
NAMES = 40
"""Largest number of names in an error."""


class DebugEnv:
    """An env that is stepped one call at a time.

    Args:
        env: The env, as gymnasium made it.
        act: Function from observations to the actions of steps that get none.
        out: Folder for npz files.
    """

    def __init__(self, env: Any, act: Act, out: str) -> None:
        self.env, self._act = env, act
        self._raw = isaaclab.task_env(env)
        self._out, self._count = Path(out), 0
        self._observations: Any = None
        self._take: Callable[[], Any] = dict
        self._pictured: Picture | None = None
        """The request whose pictures ``_take`` takes."""

    @classmethod
    def of(cls, request: Debug, stack: contextlib.ExitStack) -> DebugEnv:
        """Make the env of a task, which the stack closes."""
        env, act, _ = stack.enter_context(acting(request, lambda env_cfg: None))
        return cls(env, act, request.out)

    def reset(self, seed: int | None) -> EnvData:
        """Reset the env.

        Args:
            seed: Seed of the env; None goes on with its random numbers.
        """
        import torch

        with torch.inference_mode():  # as its steps: a task may change a tensor of the last step
            self._observations, _ = self.env.reset(seed=seed)
        return self._written({"observations": self._observations})

    def step(self, steps: int, actions: tuple[tuple[float, ...], ...] | None) -> EnvData:
        """Step the env; return what the last step returned.

        Args:
            steps: Number of steps.
            actions: Actions of each step, of shape (num_envs, actions); None takes those of the :class:`Debug` request.

        Raises:
            RlnbError: The actions do not fit the env.
        """
        import torch

        fixed = None if actions is None else self._tensor(actions)
        outcome: Values = {}
        with torch.inference_mode():
            for _ in range(steps):
                outcome = self._advance(self._act(self._observations) if fixed is None else fixed)
        return self._written(outcome)

    def _advance(self, actions: Any) -> Values:
        """Step the env once; return what it returned."""
        self._observations, rewards, terminated, truncated, _info = self.env.step(actions)
        ends = {"terminated": terminated, "truncated": truncated}
        terms = isaaclab.reward_terms(self._raw)
        return {"observations": self._observations, "rewards": rewards, **ends, "terms": terms}

    def _tensor(self, actions: tuple[tuple[float, ...], ...]) -> Any:
        """Return actions as a tensor.

        Raises:
            RlnbError: Their shape is not that of the env's actions.
        """
        import torch

        if isinstance(getattr(self._raw, "action_spaces", None), Mapping):
            raise RlnbError("actions= is not possible for a task with several agents. Leave it out.")
        sample = random_or_zero(self._raw, "zero")
        shape, expected = (len(actions), *{len(row) for row in actions}), tuple(sample.shape)
        if shape != expected:
            raise RlnbError(f"actions= has the shape {shape}, but this env takes {expected}. Use one row for each env.")
        return torch.tensor(actions, device=self._raw.device).to(sample.dtype)

    def _written(self, values: Values) -> EnvData:
        import numpy as np

        self._count += 1
        arrays: Any = {name: array for name, value in _leaves(values) if (array := array_of(value)) is not None}
        np.savez(file := self._out / f"{self._count}.npz", **arrays)
        log = {name: array_of(value) for name, value in (self._raw.extras.get("log") or {}).items()}
        return EnvData(
            file=str(file),
            log={name: float(array) for name, array in log.items() if array is not None and array.size == 1},
        )

    def read(self, path: str) -> Reading:
        """Return a value of the env by its dotted path.

        Args:
            path: Attributes, keys and names of the scene's entities, such as ``"robot.data.joint_pos"``. An empty text
                is the env itself.

        Raises:
            RlnbError: There is no such value.
        """
        import numpy as np

        value: Any = self._raw
        for part in filter(None, path.split(".")):
            value = self._part(value, part, path)
        array = array_of(value)
        if array is None:
            return Reading(text=repr(value), names=tuple(_names(value)))
        self._count += 1
        np.savez(file := self._out / f"{self._count}.npz", value=array)
        return Reading(file=str(file))

    def picture(self, request: Picture) -> Reading:
        """Take a picture of some envs with each camera of the task, or with one that is added.

        Args:
            request: Numbers of the envs; size and place of an added camera.

        Raises:
            RlnbError: There is no such env, or no camera of the task gives colours.
        """
        import numpy as np

        envs = request.envs
        if wrong := [number for number in envs if not 0 <= number < self._raw.num_envs]:
            raise RlnbError(f"envs={wrong[0]} is not an env. Use numbers from 0 to {self._raw.num_envs - 1}.")
        if request != self._pictured:
            wanted = FrameRequest(
                cameras=(), data_types=("rgb",), num_envs=len(envs), size=request.size, share=1.0, aim=request.aim
            )
            self._take, self._pictured = FrameSource(self._raw, wanted, envs), request
        arrays: Any = self._take()
        self._count += 1
        np.savez(file := self._out / f"{self._count}.npz", **arrays)
        return Reading(file=str(file))

    def _part(self, value: Any, name: str, path: str) -> Any:
        for holder in (value, self._raw.scene) if value is self._raw else (value,):
            if hasattr(holder, name):
                return getattr(holder, name)
            with contextlib.suppress(KeyError, TypeError, IndexError, ValueError, AttributeError):
                return holder[int(name) if name.isdigit() else name]
        names = [*_names(value), *(_names(self._raw.scene) if value is self._raw else ())]
        text = ", ".join(names[:NAMES]) + (f" and {len(names) - NAMES} others" if len(names) > NAMES else "")
        raise RlnbError(f"No value {path!r}: {name!r} is not one of {text}.{did_you_mean(name, names)}")


def _names(value: Any) -> Iterator[str]:
    """Yield the names by which the parts of a value are reached."""
    if hasattr(value, "keys"):
        yield from map(str, value.keys())
    if not isinstance(value, Mapping):
        yield from (name for name in dir(value) if not name.startswith("_"))


def _leaves(values: Values, above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{above}{name}/")
        else:
            yield f"{above}{name}", value


def array_of(value: Any) -> np.ndarray | None:
    """Return a tensor, an array of Warp or NumPy, or a number as an array; None for anything else."""
    import numpy as np
    import torch

    value = getattr(value, "torch", value)  # Isaac Lab 3.0's arrays show their tensor
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().numpy().copy()
    if isinstance(value, bool | int | float | np.ndarray | np.generic):
        array = np.asarray(value)
        return None if array.dtype == object else array
    to_numpy = getattr(value, "numpy", None)
    return np.asarray(to_numpy()) if callable(to_numpy) else None


_ports: list[int] = []
"""Port at which a debugger can attach, once there is one."""


def listen(token: str = "") -> Address:
    """Let a debugger of this user attach to this process.

    Args:
        token: Secret that the debugger has to send first; an empty one for the debugger of an editor, which has none.

    Raises:
        RlnbError: debugpy is missing or too old, or this machine does not tell who connects.
    """
    if not _ports:
        os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # its warning about frozen modules
        try:
            import debugpy
        except ImportError as exc:
            raise RlnbError("Breakpoints need debugpy in the worker's interpreter. Use pip install debugpy.") from exc
        if not lists_users():
            raise RlnbError(
                "This machine does not list the users of connections (/proc/net/tcp), so any of them could attach. "
                "Use debugger.step and debugger[path] without breakpoints."
            )
        refuse_other_users()
        _, port = debugpy.listen(("127.0.0.1", 0), in_process_debug_adapter=True)
        if not port:
            raise RlnbError(f"debugpy {debugpy.__version__} does not say its port. Use debugpy 1.8.22 or a newer one.")
        _ports.append(port)
    _authentication().access_token = token or None
    return Address(port=_ports[0])


def _authentication() -> Any:
    """Return the object of debugpy's pydevd that compares tokens. It is private, so its attributes are checked.

    Raises:
        RlnbError: This debugpy has no such object.
    """
    import debugpy
    from debugpy.server import api

    debugger = getattr(api, "get_global_debugger", lambda: None)()
    authentication = getattr(debugger, "authentication", None)
    if not hasattr(authentication, "access_token"):
        raise RlnbError(f"debugpy {debugpy.__version__} cannot ask for a token. Use debugpy 1.8.22.")
    return authentication


def refuse_if_attached() -> None:
    """Refuse other work, since each line that a debugger watches takes longer.

    Raises:
        FreshProcessError: A debugger can attach to this process.
    """
    if _ports:
        raise FreshProcessError("A debugger can attach to this process.")
