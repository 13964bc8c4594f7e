"""The warm simulator: one process with torch, Isaac Lab and Warp loaded, that answers requests.

Calls come as JSON lines on stdin. Answers go as JSON lines to a named pipe, since stdout is the log, and a wrapper of
the interpreter passes no other descriptor on.
Requests are handled one at a time. After an adoption by a run, the process trains that run. If the training ends
without an error, the process serves the kernel again.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from rlnb.configs.card import AssetRoot, TaskCard
from rlnb.errors import FreshProcessError, InterruptedRequest, RlnbError
from rlnb.protocol import messages, requests
from rlnb.protocol.messages import Adoption, Answer, Call, Failure, Meanwhile, Message, Ready, Returned
from rlnb.protocol.requests import EnvData, JobFiles, Reading, Request, RunJobThere
from rlnb.protocol.wire import Lines
from rlnb.records.layout import JobDir, run_dir_of
from rlnb.spec import Result
from rlnb.storage import files
from rlnb.storage.entries import files_below
from rlnb.storage.serial import from_json, to_json
from rlnb.version import __version__
from rlnb.worker.isaac import isaaclab, release, term_errors
from rlnb.worker.isaac.sources import Sources
from rlnb.worker.jobs.job import do, exit_as_error, work
from rlnb.worker.requests import debug, warmup
from rlnb.worker.requests.tuner import TunerEnv
from rlnb.worker.requests.warmup import Warmup, prewarm

IDLE_S = 0.2
"""Seconds without a call before the process does a chore."""


class SideCalls:
    """Calls about a 3D view, which come while it is shown.

    Args:
        calls: Lines of the kernel.
        replies: The named pipe to the agent.
    """

    def __init__(self, calls: Lines, replies: IO[bytes]) -> None:
        self._calls, self._replies = calls, replies

    def answer(self, handle: Callable[[Any], None]) -> bool:
        """Answer the calls about a view that have come; return whether another call has come, or the end of the input.

        Args:
            handle: Function that does a request.
        """
        while self._calls.waiting(0.0):
            values = json.loads(self._calls.peek() or b"{}")
            if values.get("verb") not in OF_VIEW:
                return True
            self._calls.next()
            call = from_json(Call, values)
            message: Answer | Failure = Answer(id=call.id, value=None)
            try:
                handle(messages.request_of(call))
            except InterruptedRequest:
                raise
            except Exception as exc:
                message = messages.failure(call.id, exc)
            _send(self._replies, message)
        return False


@dataclass
class RequestLoop:
    """Objects that a handler gets in addition to its request."""

    tell: Callable[[Any], None]
    """Sends an interim value at once, for example a first picture."""
    after: contextlib.ExitStack
    """Closed once the answer is sent, so that the user sees a picture before its env is closed."""
    sources: Sources
    """Files of the user's own packages that this process has imported."""
    kept_env: TunerEnv
    """The env that is kept between requests."""
    root: AssetRoot
    """The asset root of this process."""
    side_calls: SideCalls
    """Calls that come while the request is worked on."""


Handler = Callable[[Any, RequestLoop], Any]


def serve(pipe: Path) -> int:
    """Answer calls until stdin ends, through a named pipe that the agent reads; return the exit status.

    Args:
        pipe: The named pipe.
    """
    calls, replies = Lines(sys.stdin.fileno()), open(pipe, "wb")  # noqa: SIM115 - open until the process ends
    signal.signal(signal.SIGINT, _pass)
    sources = Sources().watch()
    environment = dict(os.environ)  # Isaac Lab and rlnb change it when they load
    root = _load()
    _send(replies, Ready(rlnb=__version__, pid=os.getpid()))
    kept_env = TunerEnv()
    warm_up = Warmup(kept_env)
    while True:
        while not calls.waiting(IDLE_S) and warm_up.do_one():
            pass
        line = calls.next()
        if line is None:
            return 0
        values = json.loads(line)
        call = None if "adopt" in values else from_json(Call, values)
        if call is None or call.verb not in KEEPS_ENV:  # a process can have only one simulation at a time
            with _logged():
                kept_env.close()
        if call is None:
            if status := _become(from_json(Adoption, values), environment, sources):
                return status
            warmup.free_memory()
            _send(replies, Returned(rlnb=__version__, pid=os.getpid()))
            continue
        side_calls = SideCalls(calls, replies)
        loop = RequestLoop(_teller(replies, call.id), contextlib.ExitStack(), sources, kept_env, root, side_calls)
        _send(replies, reply(call, loop, warm_up))
        with _logged():
            loop.after.close()
        if call.verb not in KEEPS_ENV:
            warmup.free_memory()


@contextlib.contextmanager
def _logged() -> Iterator[None]:
    """Write an error from closing an env to the log, since no request is waiting for an answer."""
    try:
        yield
    except Exception:
        sys.stderr.write(traceback.format_exc())


def _send(replies: IO[bytes], message: Message) -> None:
    replies.write(messages.line(message))
    replies.flush()


def _teller(replies: IO[bytes], number: int) -> Callable[[Any], None]:
    return lambda value: _send(replies, Meanwhile(id=number, meanwhile=to_json(value)))


def reply(call: Call, loop: RequestLoop, warm_up: Warmup) -> Answer | Failure:
    """Handle a call; return its answer, or the error that it ended with."""
    try:
        request = messages.request_of(call)
        warm_up.note(request)
        if call.verb not in USES_ENV:
            loop.sources.refuse_edited()
        if call.verb not in KEEPS_ENV:
            debug.refuse_if_attached()
        with _interruptible():
            value = to_json(_HANDLERS[type(request)](request, loop))
    except (Exception, SystemExit) as exc:
        # The warm simulator has to survive any error of a cell's code, and Isaac Lab exits if
        # Isaac Sim is needed.
        release.annotate(exc)
        return messages.failure(call.id, exit_as_error(term_errors.explained(exc)))
    finally:
        loop.sources.note()
    return Answer(id=call.id, value=value)


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Let SIGINT, by which the kernel interrupts a request, raise an error. Outside, it has no effect."""
    signal.signal(signal.SIGINT, _raise)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, _pass)


def _raise(*_: object) -> None:
    raise InterruptedRequest("The request was interrupted.")


def _pass(*_: object) -> None:
    """Do nothing. Unlike SIG_IGN, it is not inherited by the processes that a request starts."""


def _become(adoption: Adoption, environment: Mapping[str, str], sources: Sources) -> int:
    """Become the worker of a run, which writes to the job's log; return the exit status.

    Args:
        adoption: The kernel's message.
        environment: Environment of a fresh process, if the run needs one.
        sources: Files of the user's own packages. If one was edited, the run needs a fresh process.
    """
    job = JobDir(Path(adoption.adopt))
    with _standard_streams(job.log()) as agent:
        try:
            sources.refuse_edited()
            debug.refuse_if_attached()
            return work("train", job.path, fresh=False)
        except FreshProcessError as exc:
            sys.stderr.write(f"The run continues in a fresh process. {exc}\n")
            sys.stderr.flush()
            os.dup2(agent, 0)  # the pipe that ends the worker with its agent
            options = [option for option in sys.orig_argv[1 : sys.orig_argv.index("-m")] if option != "-P"]
            worker = ["-P", "-m", "rlnb.worker", "train", str(run_dir_of(job.path).path), str(job.path)]
            os.execve(sys.executable, [sys.executable, *options, *worker], environment)


@contextlib.contextmanager
def _standard_streams(log: Path) -> Iterator[int]:
    """Write all output to a log, and let ``input()`` end at once, as in any job.

    Yields:
        A descriptor of the standard input as it was before.
    """
    kept = [os.dup(descriptor) for descriptor in (0, 1, 2)]
    null = os.open(os.devnull, os.O_RDONLY)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o644)

    def use(*others: int) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        for descriptor, other in enumerate(others):
            os.dup2(other, descriptor)

    use(null, output, output)
    try:
        yield kept[0]
    finally:
        use(*kept)
        for descriptor in (*kept, null, output):
            os.close(descriptor)


def _card(request: requests.Card, loop: RequestLoop) -> TaskCard:
    from rlnb.worker.requests.card import card

    return card(request.task, loop.root)


def _tasks(request: requests.Tasks, loop: RequestLoop) -> requests.TaskIds:
    for name in request.imports:
        isaaclab.import_tasks(name)
    return requests.TaskIds(ids=tuple(isaaclab.task_ids()))


def _preview(request: requests.Preview, loop: RequestLoop) -> requests.Clip:
    from rlnb.worker.requests.preview import preview

    return preview(request, tell=loop.tell, after=loop.after)


def _examine(request: requests.Examine, loop: RequestLoop) -> requests.Examination:
    from rlnb.worker.requests.preview import examine

    return examine(request)


def _budget(request: requests.Budget, loop: RequestLoop) -> requests.Costs:
    from rlnb.worker.requests.budget import budget

    return budget(request, loop.tell)


def _run_job(request: requests.RunJob, loop: RequestLoop) -> None:
    files.restrict_umask(Path(request.job_dir))
    do(request.kind, Path(request.job_dir))


def _run_job_there(request: requests.RunJobThere, loop: RequestLoop) -> requests.JobFiles:
    return do_job_there(request)


def _compile(request: requests.Compile, loop: RequestLoop) -> requests.Compilation:
    import time

    import warp

    start_s = time.monotonic()
    prewarm(request.task)
    cache = Path(str(warp.config.kernel_cache_dir))
    size = sum(path.stat().st_size for path in cache.rglob("*") if path.is_file())
    return requests.Compilation(seconds=time.monotonic() - start_s, cache=str(cache), cache_mib=size / 2**20)


def _view(request: requests.View, loop: RequestLoop) -> requests.ViewAddress:
    from rlnb.worker.requests.viewer import show

    return show(request, loop.tell, loop.side_calls.answer)


def _no_view(request: requests.Push | requests.Hold, loop: RequestLoop) -> None:
    raise RlnbError("There is no view. It has ended, so call rlnb.view again.")


def _ping(request: requests.Ping, loop: RequestLoop) -> None:
    """Do nothing: the answer itself shows that the process has started."""


def _mirror(request: requests.Mirror, loop: RequestLoop) -> requests.Mirrored:
    from rlnb.worker.assets import root as assets
    from rlnb.worker.assets.mirror import mirror
    from rlnb.worker.isaac.env import configured

    names: set[str] = set()
    for task in request.tasks:
        names |= assets.named_in(configured(task, None)[1], loop.root).keys()
    return mirror(names, loop.root, Path(request.folder))


def _open(request: requests.Open, loop: RequestLoop) -> requests.Change:
    return loop.kept_env.open(request)


def _advance(request: requests.Advance, loop: RequestLoop) -> requests.Rewards:
    return loop.kept_env.advance(request.steps)


def _debug(request: requests.Debug, loop: RequestLoop) -> EnvData:
    return loop.kept_env.debug(request)


def _replay(request: requests.Replay, loop: RequestLoop) -> EnvData:
    return loop.kept_env.replay(request)


def _reset(request: requests.Reset, loop: RequestLoop) -> EnvData:
    return loop.kept_env.debugged.reset(request.seed)


def _step(request: requests.Step, loop: RequestLoop) -> EnvData:
    return loop.kept_env.debugged.step(request.steps, request.actions)


def _read(request: requests.Read, loop: RequestLoop) -> Reading:
    return loop.kept_env.debugged.read(request.path)


def _picture(request: requests.Picture, loop: RequestLoop) -> Reading:
    return loop.kept_env.debugged.picture(request)


def _listen(request: requests.Listen, loop: RequestLoop) -> requests.Address:
    return debug.listen(request.token)


def _close(request: requests.Close, loop: RequestLoop) -> None:
    loop.kept_env.close()


_HANDLERS: Mapping[type[Request[Any]], Handler] = {
    requests.Card: _card,
    requests.Tasks: _tasks,
    requests.Preview: _preview,
    requests.Examine: _examine,
    requests.Budget: _budget,
    requests.RunJob: _run_job,
    requests.RunJobThere: _run_job_there,
    requests.View: _view,
    requests.Push: _no_view,
    requests.Hold: _no_view,
    requests.Compile: _compile,
    requests.Ping: _ping,
    requests.Open: _open,
    requests.Advance: _advance,
    requests.Close: _close,
    requests.Debug: _debug,
    requests.Replay: _replay,
    requests.Reset: _reset,
    requests.Step: _step,
    requests.Read: _read,
    requests.Picture: _picture,
    requests.Listen: _listen,
    requests.Mirror: _mirror,
}
OF_VIEW = ("push", "hold")
"""Verbs of requests about an open view."""
USES_ENV = ("ping", "advance", "reset", "step", "read", "picture", "listen", "close", *OF_VIEW)
"""Verbs of requests that import no code of the task: what has an env goes on with it after an edit."""
KEEPS_ENV = ("card", "tasks", "open", "mirror", "debug", "replay", *(verb for verb in USES_ENV if verb != "close"))
"""Verbs of requests that leave the kept env open."""


def _load() -> AssetRoot:
    """Import the modules that every request needs; return the asset root, which is fixed from then on."""
    root = isaaclab.start(os.environ.get("RLNB_ASSET_ROOT") or None)
    gc.freeze()  # Isaac Lab collects garbage when it closes an env; this exempts all imports
    return root


# -- jobs of a run elsewhere -----------------------------------------------------------------------------------------


def do_job_there(request: RunJobThere) -> JobFiles:
    """Do a job, and return copies of the files that it has written. A job that fails leaves no folder."""
    job, out = JobDir(Path(request.job_dir)), Path(request.out)
    run = run_dir_of(job.path)
    files.make_folder(job.path)
    files.write_once(job.job, request.job)
    try:
        do(request.kind, job.path)
    except BaseException:
        shutil.rmtree(job.path, ignore_errors=True)
        raise
    copies = {}
    for number, path in enumerate(_files_of(job)):
        copy = out / f"{number}-{path.name}"
        shutil.copyfile(path, copy)
        copies[path.relative_to(run.path).as_posix()] = str(copy)
    return JobFiles(files=copies)


def _files_of(job: JobDir) -> Iterator[Path]:
    """Yield what a job has written: its records, its film, its exports, and at the end its result."""
    run = run_dir_of(job.path)
    yield from (path for path in (job.evaluation, job.rollout) if files.there(path))
    yield from files_below(run.media, lambda name: Path(name).stem == job.path.name)
    result = from_json(Result, files.read_json(job.result) or {})
    yield from (run.path / str(path) for path in result.values.values() if job.kind == "export")
    yield job.result
