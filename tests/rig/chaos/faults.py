"""The faults. Each is a function of the world that returns whether it could do anything."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Mapping

import psutil

import rlnb
from chaos import damage
from chaos.cluster import cancel_job, controller_down, node_down
from chaos.kernels import Call, at_once, second_host
from chaos.world import World
from rlnb.spec import ENDED
from rlnb.storage.clock import SILENT_AFTER_S

Fault = Callable[[World], bool]


def _agent(world: World) -> psutil.Process | None:
    run = world.folder()
    agents = world.agents(run) if run else []
    return agents[0] if agents else None


def _worker(world: World) -> psutil.Process | None:
    run = world.folder()
    return world.worker(run) if run else None


def _signal(number: signal.Signals, victim: Callable[[World], psutil.Process | None]) -> Fault:
    def fault(world: World) -> bool:
        process = victim(world)
        if process is None:
            return False
        try:
            process.send_signal(number)
        except psutil.Error:
            return False
        if number == signal.SIGSTOP:
            world.heals.append(lambda: process.send_signal(signal.SIGCONT))
        return True

    return fault


def kill_kernel(world: World) -> bool:
    """Kill a kernel while it trains, resumes, evaluates, prunes, tags or archives."""
    run, kernel = world.resumable(), world.kernel()
    verb = world.rng.choice(["train", "resume", "evaluate", "prune", "tag", "archive"]) if run else "train"
    arguments: dict[str, object] = {"max_iterations": 20 + (run.progress[1] if run else 0)}
    if verb not in ("train", "resume"):
        arguments = {}
    path = run.path if run and verb != "train" else None
    kernel.ready()
    kernel.begin(Call(verb=verb, run=path, arguments=arguments))
    time.sleep(world.rng.uniform(0.0, 0.1))
    kernel.kill()
    return True


def resume_at_once(world: World) -> bool:
    """Let two to four processes of two hosts resume a run at the same moment."""
    run = world.resumable()
    if run is None:
        return False
    before = len(run.jobs)
    count = world.rng.randint(2, 4)
    kernels = [world.kernel(elsewhere=number == 1 and second_host()) for number in range(count)]
    call = Call(verb="resume", run=run.path, arguments={"max_iterations": run.progress[1] + 20})
    answers = at_once(kernels, [call] * count)
    if any(answer.startswith("foreign") for answer in answers):
        world.report("an error is no RlnbError", "\n".join(answers))
    if answers.count("accepted") != 1:
        world.report("one resume of several is accepted", f"{run.id}: {answers}, {len(run.jobs) - before} more jobs")
    return True


def delete_and_resume(world: World) -> bool:
    """Let one kernel delete a run while another one resumes it."""
    run = world.resumable()
    if run is None:
        return False
    calls = [
        Call(verb="resume", run=run.path, arguments={"max_iterations": run.progress[1] + 20}),
        Call(verb="delete", run=run.path, at_s=world.rng.uniform(-0.004, 0.02)),
    ]
    answers = at_once([world.kernel(), world.kernel()], calls)
    if any(answer.startswith("foreign") for answer in answers):
        world.report("an error is no RlnbError", "\n".join(answers))
    if answers == ["accepted", "accepted"] and not run.path.exists():
        world.report("a training that has begun was deleted", run.id)
    if run.path.exists() and not (run.path / "manifest.json").exists():
        world.report("a folder that no list shows", str([str(path) for path in run.path.rglob("*")][:8]))
    return True


def storm(world: World) -> bool:
    """Let three kernels tag, archive, prune and list the same runs."""
    kernels = [world.kernel() for _ in range(3)]
    for _ in range(4):
        folders = world.folders()
        if not folders:
            return False
        verbs = [world.rng.choice(["tag", "archive", "prune", "look"]) for _ in kernels]
        calls = [Call(verb=verb, run=None if verb == "look" else world.rng.choice(folders)) for verb in verbs]
        for kernel, call in zip(kernels, calls, strict=True):
            kernel.begin(call)
        world.look()
        for answer in [kernel.answer() for kernel in kernels]:
            if answer.startswith("foreign"):
                world.report("an error is no RlnbError", answer)
    return True


def partition(world: World) -> bool:
    """Freeze a training on a host that cannot be seen, resume its run after a minute, and thaw the training."""
    candidates = [run for run in rlnb.runs() if run.state == "running" and not world.damage[run.id] and run.checkpoints]
    run = world.rng.choice(candidates) if candidates else None
    agents = world.agents(run.path) if run else []
    if run is None or not agents:
        return False
    frozen = []
    with contextlib.suppress(psutil.Error):
        frozen = [agents[0], *agents[0].children(recursive=True)]
        for process in frozen:
            process.suspend()
    handle = run.record.training.folder.handle  # type: ignore[union-attr]
    record = json.loads(handle.read_text())
    handle.write_text(json.dumps({**record, "host": "elsewhere"}))
    then = time.time() - SILENT_AFTER_S - 1.0
    for path in (*handle.parent.glob("*.alive"), handle.parent / "command.json"):
        os.utime(path, (then, then))
    with contextlib.suppress(rlnb.RlnbError):
        run.resume(max_iterations=run.progress[1] + 10)
    time.sleep(world.rng.uniform(0.0, 1.0))
    for process in frozen:
        with contextlib.suppress(psutil.Error):
            process.resume()
    return True


def cancel(world: World) -> bool:
    """Cancel a run."""
    active = [run for run in rlnb.runs() if run.state not in ENDED]
    if active:
        world.rng.choice(active).cancel()
    return bool(active)


def cancel_at_the_end(world: World) -> bool:
    """Cancel a run about when it ends."""
    try:
        run = world.train(world.rng.randrange(1, 8))
    except rlnb.RlnbError:  # Slurm's controller is down
        return False
    deadline = time.monotonic() + world.subject.begin_s
    while not run.started and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(world.rng.uniform(0, 0.12))
    run.cancel()
    return True


def reuse_pid(world: World) -> bool:
    """Kill an agent and give its process id to another process."""
    run = world.folder()
    agents = world.agents(run) if run else []
    handles = sorted(run.glob("jobs/*-train/handle.json")) if run else []
    if not agents or not handles:
        return False
    with contextlib.suppress(psutil.Error, OSError, ValueError):
        record = json.loads(handles[-1].read_text())
        agents[0].kill()
        handles[-1].write_text(json.dumps({**record, "pid": os.getpid()}))
        return True
    return False


def reboot(world: World) -> bool:
    """Kill every process and let a day pass."""
    return _all_down(world, -86_400.0)


def clock_back(world: World) -> bool:
    """Kill every process and set the clock back by an hour, so that all records lie in the future."""
    return _all_down(world, 3600.0)


def _all_down(world: World, later_s: float) -> bool:
    for process in world.processes():
        with contextlib.suppress(psutil.Error):
            process.kill()
    then = time.time() + later_s
    for path in (*(world.root / "runs").glob("*/jobs/*"), *(world.root / "runs").glob("*/jobs/*/*")):
        with contextlib.suppress(OSError):
            os.utime(path, (then, then))
    return True


def kill_sweep(world: World) -> bool:
    """Kill the kernel of a sweep, and let another one continue it."""
    name = f"sweep{world.rng.randrange(10**6)}"
    arguments: dict[str, object] = {"n_trials": 3, "name": name, "max_iterations": 10, "parallel": 1}
    kernel = world.kernel()
    kernel.begin(Call(verb="sweep", arguments=arguments))
    time.sleep(world.rng.uniform(1.5, 4.5))
    kernel.kill()
    world.heal()  # a run that is stopped keeps its slot, and the trials would wait for it
    second = world.kernel()
    second.begin(Call(verb="sweep", arguments=arguments))
    answer = second.answer()
    trials = rlnb.runs(tag=f"sweep:{name}")
    if answer != "accepted" or sum(run.state == "completed" for run in trials) < 3:
        world.report("a sweep is continued", f"{answer}, {[(run.id, run.state) for run in trials]}")
    return True


FAULTS: Mapping[str, Fault] = {
    "kill_agent": _signal(signal.SIGKILL, _agent),
    "kill_worker": _signal(signal.SIGKILL, _worker),
    "term_agent": _signal(signal.SIGTERM, _agent),
    "segv_worker": _signal(signal.SIGSEGV, _worker),
    "stop_agent": _signal(signal.SIGSTOP, _agent),
    "stop_worker": _signal(signal.SIGSTOP, _worker),
    **{
        fault.__name__: fault
        for fault in (
            kill_kernel,
            resume_at_once,
            delete_and_resume,
            storm,
            partition,
            cancel,
            cancel_at_the_end,
            reuse_pid,
            reboot,
            clock_back,
            damage.other_host,
            damage.damage_record,
            damage.delete_record,
            damage.tear_events,
            damage.tear_checkpoint,
            damage.fill_disk,
            damage.read_only,
            damage.remove_run,
            damage.rename_and_back,
            damage.move_root,
            damage.odd_entries,
            damage.no_permission,
            kill_sweep,
            cancel_job,
            controller_down,
            node_down,
        )
    },
}
