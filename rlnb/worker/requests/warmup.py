"""Warm-up of the warm simulator: work between calls that makes later requests faster."""

from __future__ import annotations

import dataclasses
import gc
import sys
import traceback
from typing import Any

from rlnb.errors import FreshProcessError, RlnbError
from rlnb.hooks import plugins
from rlnb.launch.slots import holders
from rlnb.protocol import requests
from rlnb.protocol.requests import Request, TaskRequest
from rlnb.spec import Task
from rlnb.worker.isaac.device import ANY_DEVICE, torch_device
from rlnb.worker.requests.tuner import TunerEnv


class Warmup:
    """Work for the time between calls that makes later requests faster: rehearsing new tasks, importing libraries.

    The work is split into pieces, since a call has to wait for the end of the current piece.
    """

    def __init__(self, kept_env: TunerEnv) -> None:
        self._kept_env = kept_env
        self._ids: set[str] = set()
        self._tasks: dict[str, Task] = {}
        self._libraries = [library.backend for library in plugins.libraries().values() if library.simulator]

    @property
    def left(self) -> bool:
        """Whether there is something to do."""
        return bool(self._tasks or self._libraries)

    def note(self, request: Request[Any]) -> None:
        """Note the task of a request. A task whose card is requested is warmed up, since its env may be made next."""
        if not isinstance(request, TaskRequest):
            return
        if isinstance(request, requests.Card) and request.task.id not in self._ids:
            self._tasks[request.task.id] = request.task
        elif isinstance(request, requests.Preview | requests.Compile):
            self._tasks.pop(request.task.id, None)
        self._ids.add(request.task.id)

    def do_one(self) -> bool:
        """Do one chore; return whether there was one. No chore is done before the first request about a task."""
        if not (self._ids and self.left):
            return False
        try:
            if self._tasks and not self._kept_env.is_open and not _gpu_trains():
                prewarm(self._tasks.pop(next(iter(self._tasks))), any_runtime=False)
            elif self._libraries:
                plugins.load(self._libraries.pop(0))
                if not self._kept_env.is_open:  # gc.freeze would keep its memory after its end
                    gc.freeze()
            else:
                return False
        except (_Unsuitable, FreshProcessError):
            pass
        except (Exception, SystemExit):
            # This was only a rehearsal: a request with the same error will report it.
            sys.stderr.write(traceback.format_exc())
        free_memory()
        return True


def _gpu_trains() -> bool:
    """Return whether a run of this machine may be using the GPU that a rehearsal would use.

    The run may need all of the GPU's memory, and would then fail because of the rehearsal.
    """
    try:
        return bool(holders()) and torch_device(ANY_DEVICE) != "cpu"
    except (RlnbError, OSError):  # without a queue, nothing is known about runs
        return True


class _Unsuitable(Exception):
    """Raised for a task whose rehearsal would start Isaac Sim, for which calls would have to wait."""


def prewarm(task: Task, *, any_runtime: bool = True) -> None:
    """Make a small env of the task, step it, read its cameras and close it, so that all kernels are loaded.

    Args:
        task: The task.
        any_runtime: Whether a runtime such as Isaac Sim may be started for it.
    """
    from rlnb.worker.actions import actions
    from rlnb.worker.cameras.rig import Plan
    from rlnb.worker.isaac import isaaclab, kit
    from rlnb.worker.isaac.env import environment
    from rlnb.worker.requests.preview import shoot

    plan = Plan(None, None, (64, 48))

    def configure(env_cfg: Any) -> None:
        plan.apply(env_cfg)
        if not any_runtime and kit.needs_runtime(env_cfg, kit.arguments_of(env_cfg.sim.device)):
            raise _Unsuitable

    with environment(dataclasses.replace(task, num_envs=2), None, configure=configure) as (env, _):
        env.reset()
        raw = isaaclab.task_env(env)
        plan.begin(raw)
        env.step(actions(raw, "zero"))
        shoot(raw, plan, None)


# -- memory ----------------------------------------------------------------------------------------------------------


def free_memory() -> None:
    """Give the memory of closed envs back to the GPU's driver.

    In a process that has not used a GPU, do nothing: a call of CUDA would take memory. The process keeps its CUDA
    contexts, and JAX keeps all memory that it has used.
    """
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return
    import warp

    gc.collect()
    try:
        torch.cuda.empty_cache()
        for device in warp.get_cuda_devices():
            if device.has_context and device.is_mempool_supported:
                warp.set_mempool_release_threshold(device, 0)  # bytes that the pool keeps at a synchronisation
        warp.synchronize()
    except RuntimeError as exc:  # after an error in a kernel, all calls of CUDA fail; the next request reports it
        sys.stderr.write(f"The GPU memory was not freed: {exc}\n")
