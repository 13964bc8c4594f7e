"""The requests of a page, a handler for each; the names in the responses are those of ``ts/server/protocol.ts``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from jupyter_server.auth.decorator import authorized
from tornado import web

import rlnb
from rlnb_jupyterlab import actions, code, detail, goodput, lineage, logs, queues, subprocesses
from rlnb_jupyterlab.cameras import Cameras
from rlnb_jupyterlab.check import FormAgent, FormProblem
from rlnb_jupyterlab.choices import FAILURES, Choices, LibraryChoice
from rlnb_jupyterlab.files import FileHandler, ReportHandler
from rlnb_jupyterlab.handler import MOST_RUNS, Handler, Refused
from rlnb_jupyterlab.links import link_to
from rlnb_jupyterlab.open_pages import Link
from rlnb_jupyterlab.opening import size_of
from rlnb_jupyterlab.readers import Readers
from rlnb_jupyterlab.stream import StreamHandler

KEY = r"(?P<key>[0-9a-f]{20})"
MOST_TOGETHER = 2000
"""Maximum number of runs of an action that a single command performs: as many fit into its command line."""
CHECK_S = 240.0
FIGURES_S, MOST_FIGURES = 120.0, 8 << 20
"""Limits of the figures that plugins draw: seconds and bytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Libraries:
    """The installed RL libraries."""

    libraries: Sequence[LibraryChoice]


@dataclass(frozen=True, kw_only=True, slots=True)
class LogPiece:
    """A part of a log; offsets are bytes."""

    text: str
    offset: int
    next: int
    size: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Checked:
    """The problems of a form, and the lines of a notebook that start its run."""

    problems: Sequence[FormProblem]
    agent: FormAgent = field(default_factory=FormAgent)
    code: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionIds:
    """The ids of the messages about an action: one for each command."""

    id: str
    ids: Sequence[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """The address of a page, relative to the server's base."""

    url: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """The empty response to a request that was carried out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """The tables of queues, and links to other pages."""

    queues: Sequence[queues.Table]
    links: Sequence[Link]


class RegistryHandler(Handler):
    """The choices of a form."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        choices: Choices = self.settings["rlnb_choices"]
        self.answer(await choices.offer())


class LibrariesHandler(Handler):
    """The libraries alone, which are listed sooner than the tasks."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        choices: Choices = self.settings["rlnb_choices"]
        self.answer(Libraries(libraries=(await choices.installed()).libraries))


class RunHandler(Handler):
    """A run."""

    @web.authenticated
    @authorized
    async def get(self, key: str) -> None:
        readers: Readers = self.settings["rlnb_readers"]

        def read() -> detail.Detail:
            with readers.reader(self.run_of(key)) as run:
                return detail.detail(run, key)

        self.answer(await self.aside(read))


class LineageHandler(Handler):
    """The runs that a run comes from, and those that come from it."""

    @web.authenticated
    @authorized
    async def get(self, key: str) -> None:
        self.answer(await self.aside(lambda: lineage.lineage(self.run_of(key), self.watcher.listed())))


class NotesHandler(Handler):
    """Adds a note or a tag to a run, removes a tag, renames the run, or takes it out of the lists."""

    @web.authenticated
    @authorized
    async def post(self, key: str) -> None:
        kinds = ("note", "tag", "untag", "name", "archive")
        entries = [(name, value) for name, value in self.body().items() if name in kinds]
        if len(entries) != 1 or not isinstance(text := entries[0][1], str):
            raise Refused(400, "The request is not one note, one tag or one name.")

        def write() -> None:
            run = self.run_of(key)
            if entries[0][0] == "name":
                run.name = text
            elif entries[0][0] == "archive":
                rlnb.Runs([run]).archive().apply()
            else:
                writers = {"note": run.notes.add, "tag": run.tags.add, "untag": run.tags.discard}
                writers[entries[0][0]](text)

        await self.aside(write)
        self.answer(Done())


class LogHandler(Handler):
    """A piece of a log."""

    @web.authenticated
    @authorized
    async def get(self, key: str, job: str, name: str) -> None:
        try:
            offset = int(self.get_argument("offset", "0"))
        except ValueError:
            raise Refused(400, "offset is not a whole number.") from None

        def read() -> LogPiece:
            file = logs.open_log(self.run_of(key), int(job), name)
            if file is None:
                raise Refused(404, "There is no such log.")
            with file:
                text, begin, end = logs.piece(file, offset)
                return LogPiece(text=text, offset=begin, next=end, size=size_of(file))

        self.answer(await self.aside(read))


class LinkHandler(Handler):
    """The link to a file that the output of a cell names."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        path = self.get_argument("path", "")
        self.answer(await self.aside(lambda: link_to(path, self.watcher, self.contents_manager)))


class FrameHandler(Handler):
    """The newest picture of a training's cameras, as a PNG. A training takes pictures as long as requests arrive."""

    @web.authenticated
    @authorized
    async def get(self, key: str) -> None:
        cameras: Cameras = self.settings["rlnb_cameras"]
        png = await self.aside(lambda: cameras.picture(key, lambda: self.run_of(key)))
        self.set_header("Cache-Control", "no-store")
        if png is None:
            self.set_status(204)
            self.finish()
            return
        self.finish(png, set_content_type="image/png")


class FiguresHandler(Handler):
    """The figures that plugins draw of a run, as Jupyter mime bundles."""

    @web.authenticated
    @authorized
    async def get(self, key: str) -> None:
        run = await self.aside(lambda: self.run_of(key))
        tasks: dict[str, asyncio.Task[tuple[int, str]]] = self.settings.setdefault("rlnb_drawing", {})
        if key not in tasks:  # a page requests the figures each time it is shown
            argv = ["rlnb", "plugins", "figures", str(run.path)]
            output = subprocesses.output(argv, run.path.parent.parent, within_s=FIGURES_S, most=MOST_FIGURES + 1)
            tasks[key] = asyncio.create_task(output)
            tasks[key].add_done_callback(lambda _: tasks.pop(key, None))
        try:
            status, text = await asyncio.shield(tasks[key])
        except TimeoutError:
            raise Refused(
                504, f"The plugins' figures took more than {FIGURES_S:.0f} s.", "Draw them in a notebook."
            ) from None
        if len(text) > MOST_FIGURES:
            raise Refused(413, f"The plugins' figures exceed {MOST_FIGURES >> 20} MiB.", "Draw them in a notebook.")
        if status:
            raise Refused(500, "The plugins' figures could not be drawn.", "See the server's log.")
        self.finish(json.dumps({"figures": json.loads(text)}))


class DiffHandler(Handler):
    """The values in which runs differ."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        keys = self.get_argument("keys", "").split(",")
        self.answer(await self.aside(lambda: detail.difference([*self.runs_of(keys).values()])))


class GoodputHandler(Handler):
    """What runs cost. The keys are in the body, since an address has no room for thousands."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        keys = self.body().get("keys")
        self.answer(await self.aside(lambda: goodput.costs(self.runs_of(keys, goodput.MOST))))


class CheckHandler(Handler):
    """The problems of a form's run, and the lines of a notebook that start it."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        fields = {**self.body()}
        try:
            if first := fields.get("init_from"):
                fields["init_from"] = self._id_of(str(first))
            lines = code.code(code.read(fields))
        except code.Malformed as exc:
            self.answer(Checked(problems=[FormProblem(what=str(exc))]))
            return
        problems, agent = [FormProblem(what="The check itself failed. The server's log gives the reason.")], FormAgent()
        try:
            status, text = await subprocesses.output(
                ["rlnb_jupyterlab.check"], self.watcher.roots[0], stdin=json.dumps(fields).encode(), within_s=CHECK_S
            )
            if status:
                raise ValueError(f"exit status {status}")
            answer = json.loads(text[text.rindex('{"problems"') :])  # a task's module may print before the JSON
            problems = [FormProblem(**problem) for problem in answer["problems"]]
            agent = FormAgent(**answer["agent"])
        except (TimeoutError, ValueError) as exc:
            self.log.warning("rlnb_jupyterlab.check failed: %s", exc)
        self.answer(Checked(problems=problems, agent=agent, code=lines))

    def _id_of(self, name: str) -> str:
        """Return the id of the run that a form names by its id or its name. A page names no file.

        Raises:
            Malformed: No run of the list has the name, or several have.
        """
        if len(ids := self.watcher.named(name)) != 1:
            raise code.Malformed(f"{'Several runs have' if ids else 'No run of the list has'} the name or id {name!r}.")
        return ids[0]


class ActionHandler(Handler):
    """Starts an action on runs."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        started: actions.Actions = self.settings["rlnb_actions"]
        action = str(self.body().get("action"))
        commands = await self.aside(lambda: self._commands(action))
        ids = [started.start(action, runs, arguments) for runs, arguments in commands]
        self.answer(ActionIds(id=ids[0], ids=ids))

    def _commands(self, action: str) -> list[tuple[dict[str, rlnb.Run], list[str]]]:
        """Return each command: its runs by their keys, and its arguments."""
        body, together = self.body(), action == actions.TOGETHER
        fields = body.get("options") or {}
        if not isinstance(fields, dict):
            raise Refused(400, "options is not a JSON object.")
        runs = self.runs_of(body.get("keys"), MOST_TOGETHER if together else MOST_RUNS)
        groups = [runs] if together else [{key: run} for key, run in runs.items()]
        commands = []
        for group in groups:
            try:
                arguments = actions.command(action, [*group.values()], actions.Options.of(fields))
            except (StopIteration, ValueError, TypeError, OverflowError):
                raise Refused(400, "The run has no such checkpoint, or an option is not a number.") from None
            if arguments is None:
                raise Refused(400, "There is no such action.")
            commands.append((group, arguments))
        return commands


class TensorBoardHandler(Handler):
    """Starts TensorBoard on runs, on this machine's loopback."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        keys = self.body().get("keys")
        runs_by_key = await self.aside(lambda: self.runs_of(keys))
        runs, name = [*runs_by_key.values()], ",".join(sorted(runs_by_key))
        title = f"TensorBoard of {runs[0].id if len(runs) == 1 else f'{len(runs)} runs'}"
        url = await self.opened(lambda: self.open_pages.get(name, title, lambda: rlnb.Runs(runs).tensorboard()))
        self.answer(Address(url=url))


class SceneHandler(Handler):
    """Opens a 3D view of a run's policy, on this machine's loopback."""

    @web.authenticated
    @authorized
    async def post(self, key: str) -> None:
        run = await self.aside(lambda: self.run_of(key))
        title = f"{run.id} in 3D"
        url = await self.opened(lambda: self.open_pages.get(f"scene {key}", title, lambda: rlnb.view(run)))
        self.answer(Address(url=url))


class CloseHandler(Handler):
    """Ends a page that this server has opened, with all of its processes."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        name = str(self.body().get("name"))
        if not await self.aside(lambda: self.open_pages.end(name)):
            raise Refused(404, "The page is no longer open.")
        self.answer(Done())


class ClusterHandler(Handler):
    """The tables of queues, and links to other pages."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        choices: Choices = self.settings["rlnb_choices"]
        dashboards = await self.aside(lambda: queues.dashboards(self.watcher.active()))
        living = await self.aside(lambda: queues.simulators(self.watcher.simulators()))
        try:
            tables = await queues.queues((await choices.installed()).launchers)
        except FAILURES as exc:
            tables = [queues.Table(launcher="", error="rlnb launchers failed", detail=str(exc))]
        self.answer(Cluster(queues=[*living, *tables], links=[*self.open_pages.links(), *dashboards]))


ROUTES = [
    (r"/rlnb/stream", StreamHandler),
    (r"/rlnb/registry", RegistryHandler),
    (r"/rlnb/libraries", LibrariesHandler),
    (rf"/rlnb/runs/{KEY}", RunHandler),
    (rf"/rlnb/runs/{KEY}/lineage", LineageHandler),
    (rf"/rlnb/runs/{KEY}/notes", NotesHandler),
    (rf"/rlnb/runs/{KEY}/logs/(?P<job>\d{{1,6}})/(?P<name>[^/]+)", LogHandler),
    (rf"/rlnb/runs/{KEY}/files/(?P<path>.+)", FileHandler),
    (r"/rlnb/reports/(?P<root>\d{1,3})/(?P<name>[^/]+)", ReportHandler),
    (r"/rlnb/link", LinkHandler),
    (rf"/rlnb/runs/{KEY}/frame", FrameHandler),
    (rf"/rlnb/runs/{KEY}/figures", FiguresHandler),
    (rf"/rlnb/runs/{KEY}/scene", SceneHandler),
    (r"/rlnb/diff", DiffHandler),
    (r"/rlnb/goodput", GoodputHandler),
    (r"/rlnb/check", CheckHandler),
    (r"/rlnb/actions", ActionHandler),
    (r"/rlnb/tensorboard", TensorBoardHandler),
    (r"/rlnb/close", CloseHandler),
    (r"/rlnb/cluster", ClusterHandler),
]
