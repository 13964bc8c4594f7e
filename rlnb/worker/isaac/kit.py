"""The runtime of Isaac Sim (Kit) in this process.

Kit ends the process when its launcher is closed, so a runtime that has started lives as long as the process. A process
runs either with Kit or without it, and Kit's choices at its start hold until the end. An env that does not fit them
needs a fresh process.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlnb.errors import FreshProcessError, RlnbError
from rlnb.machine.packages import isaacsim_folder, isaacsim_terms

if TYPE_CHECKING:
    from isaaclab.app import Scan

OWN_RUNTIME = ("ovphysx", "ovrtx")
"""Modules that load their own copies of Kit's libraries, so that Kit cannot start after them."""
KIT = "isaaclab_physx.app:KitLauncher"
"""Isaac Lab's launcher of Kit, which does nothing if Kit runs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """The choices of Kit at its start."""

    cameras: bool
    """Whether it can render cameras. It loads no renderer for an env without cameras."""
    arguments: Mapping[str, Any]
    """Launcher arguments. Kit stays on the GPU that the device selects."""


_start: Start | None = None
"""How Kit was started in this process; None if it was not."""
_runtimes = contextlib.ExitStack()
"""Launched runtimes. The stack is never closed, because closing Kit's launcher ends the process, and unwritten output
is lost. Isaac Lab's own tests keep Kit in the same way."""


def arguments_of(device: str, world_size: int = 1, own: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return Isaac Lab's launcher arguments, which on a GPU are those of ``--distributed`` for several ranks.

    With ``multi_gpu`` false, Kit renders on the GPU of the simulation, also if ``CUDA_VISIBLE_DEVICES`` renumbers the
    GPUs. With ``distributed``, each rank takes its share of the CPU's threads.

    Args:
        device: ``"cpu"`` or ``"cuda:N"``.
        world_size: Number of ranks.
        own: Arguments of the task.
    """
    arguments: dict[str, Any] = {"device": device, **(own or {})}
    if device.startswith("cuda"):
        arguments |= {"multi_gpu": False, "distributed": world_size > 1}
    return arguments


def needs_runtime(env_cfg: Any, arguments: Mapping[str, Any]) -> bool:
    """Return whether an env needs a runtime that this process has to start, which takes up to minutes."""
    from isaaclab.app import validate_launch

    scan, sources = validate_launch(env_cfg, dict(arguments))
    return bool(sources or scan.launcher_types)


def missing_for(env_cfg: Any, own: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the parts of a task that need Isaac Sim, if this interpreter has none.

    Args:
        env_cfg: The env's config, whose automatic physics and renderers are resolved in place.
        own: Launcher arguments of the task.
    """
    from isaaclab.app import validate_launch

    if isaacsim_folder() is not None:
        return ()
    try:
        return validate_launch(env_cfg, dict(own))[1]
    except ValueError:  # physics and renderer do not fit together, which the launch reports
        return ()


@contextlib.contextmanager
def launched(env_cfg: Any, arguments: Mapping[str, Any]) -> Iterator[None]:
    """Launch the runtime that an env needs. A runtime other than plain Newton stays until the end of the process.

    Args:
        env_cfg: The env's config. Isaac Lab resolves its automatic physics and renderers in place.
        arguments: Isaac Lab's launcher arguments, see :func:`arguments_of`.

    Raises:
        FreshProcessError: This process cannot run the env, but a fresh one can.
        RlnbError: Isaac Sim is needed and is not installed, or the user has not accepted its terms.
    """
    from isaaclab.app import launch_simulation, validate_launch
    from isaaclab.utils import has_kit

    global _start
    scan, sources = validate_launch(env_cfg, passed := dict(arguments))
    start = _start_of(scan, arguments)
    _check_process(sources, start)
    runs = has_kit() and {*scan.launcher_types} <= {KIT}
    if runs or not (sources or scan.launcher_types or scan.has_ovrtx):
        with contextlib.ExitStack() as stack:
            with _gpu_of(passed["device"], bool(passed.get("distributed"))):
                stack.enter_context(launch_simulation(env_cfg, passed))
            yield
        return
    with _without_command_line(), _gpu_of(passed["device"], bool(passed.get("distributed"))):
        _runtimes.enter_context(launch_simulation(env_cfg, passed))
    if sources and _start is None:
        _start = start
    yield


@contextlib.contextmanager
def _gpu_of(device: str, distributed: bool) -> Iterator[None]:
    """Let Isaac Lab start on the GPU of its launcher arguments.

    With ``distributed``, it takes the GPU whose number is the local rank. Ranks that stay on the CPU have a local rank
    too, so that the GPU of a rank behind them has a lower number.
    """
    if not distributed:
        yield
        return
    names = {"LOCAL_RANK": device.partition(":")[2] or "0", "JAX_LOCAL_RANK": "0"}
    before = {name: os.environ.get(name) for name in names}
    os.environ |= names
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def _start_of(scan: Scan, arguments: Mapping[str, Any]) -> Start:
    """Return the choices that an env needs at Kit's start."""
    cameras = scan.has_kit_camera or bool(scan.visualizer_intent.get("has_kit_streaming_view"))
    return Start(cameras=cameras, arguments=dict(arguments))


def _check_process(sources: tuple[str, ...], start: Start) -> None:
    """Check that this process can run an env, given its needs and what it has loaded."""
    if _start is not None:
        if not sources:
            raise FreshProcessError("Isaac Sim runs in this process, but the env does not use it.")
        if start.cameras and not _start.cameras:
            raise FreshProcessError("Isaac Sim runs in this process without a renderer, but the env has cameras.")
        if start.arguments != _start.arguments:
            raise FreshProcessError("Isaac Sim runs in this process on another device or with other launcher_args.")
    elif sources:
        _check_isaac_sim(sources)
        loaded = [name for name in OWN_RUNTIME if name in sys.modules]
        if loaded:
            raise FreshProcessError(f"Isaac Sim cannot start in this process, because {loaded[0]} is already loaded.")
        if "pxr" in sys.modules:  # Kit brings its own build of USD, which the one from PyPI breaks
            raise FreshProcessError(
                "Isaac Sim cannot start in this process, because USD (pxr) is already loaded. If the task's module "
                "imports isaaclab.sensors, isaaclab.envs.ManagerBasedRLEnv or pxr at its top, move these imports into "
                "functions, or below `if TYPE_CHECKING:`."
            )


def _check_isaac_sim(sources: tuple[str, ...]) -> None:
    """Check that Isaac Sim can start: it is installed, and its terms were accepted. Its import would ask on stdin."""
    if terms := isaacsim_terms():
        raise RlnbError(terms)
    from isaaclab_physx.app import KitLauncher

    if not KitLauncher.is_available():
        raise RlnbError(
            f"The env needs Isaac Sim, which is not installed in {sys.executable}: it uses {', '.join(sources)}. "
            'Use a physics= and renderer= that do not need it, such as physics="newton_mjwarp", or python= with an '
            "interpreter that has Isaac Sim."
        )


@contextlib.contextmanager
def _without_command_line() -> Iterator[None]:
    """Hide this process's own arguments from Kit, which parses ``sys.argv``."""
    arguments, sys.argv[1:] = sys.argv[1:], []
    try:
        yield
    finally:
        sys.argv[1:] = arguments
