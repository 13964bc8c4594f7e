"""The sections of a report, as HTML without JavaScript. All strings from runs are escaped."""

from __future__ import annotations

import base64
import bisect
import html
import io
import math
import platform
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rlnb.curves import figure, progress
from rlnb.display.figures import mimebundle, png
from rlnb.display.table import counted, duration, table
from rlnb.errors import RlnbError
from rlnb.records.arguments import common_arguments, resolved_configs
from rlnb.records.checkpoints import saves_of
from rlnb.records.facts import RunFacts, differences
from rlnb.records.find import run_of
from rlnb.records.repetition import versions_of
from rlnb.records.source_diff import read_source, source_diff, source_files
from rlnb.records.stock_record import StockRecord
from rlnb.records.video import read
from rlnb.storage import entries, files
from rlnb.storage.clock import moment_s

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from PIL import Image

    from rlnb.accounting.goodput import Goodput
    from rlnb.records.video import Video
    from rlnb.spec import Json

PICTURE_PX = 720
"""Maximum length of the longer side of a picture in the report. The original stays in the run's folder."""
COLUMNS = 12
"""Maximum number of runs in the table of their goodput, which has a column for each."""
MOST_FURTHER = 60
"""Maximum number of metrics without a name of rlnb that a report draws."""
USAGES = 12
"""Maximum number of curves of the use of the nodes in a report."""
PICTURES_BYTES = 600_000
"""Maximum size of all pictures together, and of all films together, so that a report is small enough for e-mail."""


def heading(runs: Sequence[RunFacts]) -> str:
    """Return the title, with the time and the host at which the report was written."""
    tasks = ", ".join(sorted({run.task for run in runs}))
    name = runs[0].title if len(runs) == 1 else f"{len(runs)} runs"
    origin = f"{name}, written {datetime.now().astimezone():%Y-%m-%d %H:%M %Z} on {platform.node()}"
    return f"<h1>{html.escape(tasks)}</h1><small>{html.escape(origin)}</small>"


def summary(runs: Sequence[RunFacts]) -> str:
    """Return a table of the training of each run (task, devices, speed, last values) with one column per run."""
    columns = [_joined(_summary(run)) for run in runs]
    header = ["", *(run.title for run in runs)] if len(runs) > 1 else ["", ""]
    names: list[str] = []
    for column in columns:  # a name that only some runs have stands where they have it
        place = 0
        for name in column:
            if name not in names:
                names.insert(place, name)
            place = names.index(name) + 1
    return table(header, [[name, *(column.get(name, "-") for column in columns)] for name in names])


def _joined(rows: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return rows by name, those of the same name as one."""
    texts: dict[str, list[str]] = {}
    for name, text in rows:
        texts.setdefault(name, []).append(text)
    return {name: "; ".join(of_name) for name, of_name in texts.items()}


def _summary(run: RunFacts) -> Iterator[tuple[str, str]]:
    manifest, started = run.manifest, run.started
    series = run.metrics["reward"] if "reward" in run.metrics.names else None
    frames = int(series.frames[-1]) if series is not None and len(series) else 0
    seconds = _seconds(run)
    if run.name:
        yield "id", run.id
    yield from progress.rows(run)
    yield "seed", str(manifest.seed)
    yield "num_envs", str(started.num_envs if started else manifest.task.num_envs or "-")
    yield "devices", ", ".join(started.devices) if started else manifest.resources.device
    yield "hosts", ", ".join(started.hosts) if started else "-"
    yield "started", f"{run.created.astimezone():%Y-%m-%d %H:%M}"
    yield "duration", duration(seconds) if seconds else "-"
    yield "frames", f"{frames:,}" if frames else "-"
    yield "steps/s (frames / duration)", f"{frames / seconds:,.0f}" if frames and seconds else "-"
    if flight := run.flight:
        yield "recorded" if flight.kind == "alert" else "not finite", flight.what
    yield "tags", ", ".join(run.tags) or "-"
    yield "notes", "; ".join(note.text for note in run.notes) or "-"


def _seconds(run: RunFacts) -> float:
    """Return the seconds that a run trained in all its jobs.

    A training without an end counts until its last logged point, or until its last checkpoint, since points that were
    trained again are not in the curves any more.
    """
    trainings = [(started, job) for job in run.jobs if job.kind == "train" and (started := job.started)]
    logged_s = sorted(time for name in run.metrics.names for time in run.metrics[name].wall_time_s)
    seconds = 0.0
    for number, (started, job) in enumerate(trainings):
        next_s = trainings[number + 1][0].time_s if number + 1 < len(trainings) else math.inf
        last_s = logged_s[at - 1] if (at := bisect.bisect_left(logged_s, next_s)) else 0.0
        last_s = min(next_s, max([last_s, *(save.end_s for save in saves_of(job.folder) or ())]))
        ended_s = moment_s(job.result.ended) if job.result else None
        seconds += max(0.0, (last_s if ended_s is None else ended_s) - started.time_s)
    return seconds


class Curves:
    """A figure that a notebook shows with Plotly, and a page without JavaScript shows as a picture."""

    def __init__(self, chart: go.Figure, description: str) -> None:
        self._chart, self._description = chart, description

    def _repr_mimebundle_(self, **_: object) -> tuple[dict[str, Json], dict[str, Json]]:
        bundle = {**mimebundle(self._chart, picture=True), "text/plain": self._description}
        return bundle, {"image/png": {"alt": self._description}}


def metric_curves(runs: Sequence[RunFacts]) -> Curves:
    """Return a figure of the usual metrics."""
    return Curves(figure.figure(runs), "Metric curves over frames")


def further_curves(runs: Sequence[RunFacts]) -> str:
    """Return folded pictures of the other metrics, such as the terms of the reward, in groups."""
    parts, room = [], MOST_FURTHER
    for name, tags in figure.metric_groups(runs).items():
        shown, room = tags[:room], max(0, room - len(tags))
        title = f"{name or 'others'}: {counted(len(tags), 'metric')}"
        if not shown:
            parts.append(f"<p>{html.escape(title)}, not drawn</p>")
            continue
        picture = base64.b64encode(png(figure.figure(runs, shown))).decode()
        rest = f"<p>{len(tags) - len(shown)} more are not drawn.</p>" if len(shown) < len(tags) else ""
        image = f"<img alt='Curves of {html.escape(name)} over frames' src='data:image/png;base64,{picture}'>"
        parts.append(_details(title, image + rest))
    return "".join(parts)


def usage(runs: Sequence[RunFacts]) -> Curves | None:
    """Return a figure of the runs' use of their nodes over time; None if nothing was sampled."""
    sampled = sorted({tag for run in runs for tag in run.system.tags})
    tags = [tag for tag in sampled if "/rank" not in tag][:USAGES]
    return Curves(figure.figure(runs, tags, x="wall_time"), "Use of the nodes over time") if tags else None


def goodput(runs: Goodput) -> str:
    """Return tables of what runs cost, with a column for each of the first runs, and of their interruptions."""
    costs, interruptions = runs.run_lines(COLUMNS), runs.interruption_lines()
    names, *columns = [[head, *cells] for head, *cells in zip(costs.heads, *costs.rows, strict=True)]
    page = f"<p>{html.escape(runs.caption(COLUMNS))}</p>"
    page += table(["", *names[1:]], columns) if costs.rows else ""
    return page + (
        table(interruptions.heads, interruptions.rows, caption="Interruptions") if interruptions.rows else ""
    )


def goodput_bars(runs: Goodput) -> Curves | None:
    """Return a bar for each run that consists of the parts of its wall time; None without a training."""
    return Curves(runs.plot(), "Parts of the wall time of each run") if runs.accounts else None


def evaluations(runs: Sequence[RunFacts]) -> str:
    """Return a table of each evaluation with 95 % intervals."""
    tables = []
    for run in runs:
        for evaluation in run.evaluations:
            caption = evaluation.title if len(runs) == 1 else f"{run.id}: {evaluation.title}"
            tables.append(table(["", "value", "95 % interval"], evaluation.rows(), caption=caption))
    modes = {evaluation.mode for run in runs for evaluation in run.evaluations if evaluation.mode}
    note = "<p>Evaluations of mode play and of mode train have different envs, and cannot be compared.</p>"
    tables = [note, *tables] if len(modes) > 1 else tables
    return "".join(tables) or "<p>None: <code>run.evaluate(episodes=100)</code></p>"


def pictures(runs: Sequence[RunFacts]) -> str:
    """Return the camera previews in the folders of the runs, reduced in size, up to 600 KB in total."""
    images, omissions, weight = [], [], 0
    for run in runs:
        for path in sorted(entries.matching(run.path / "media", "*.png")):
            data = _small(path)
            if data is None or weight + len(data) > PICTURES_BYTES:
                omissions.append(str(path))
                continue
            weight += len(data)
            images.append(_image(data, path.stem if len(runs) == 1 else f"{run.id}: {path.stem}"))
    if omissions:
        images.append(f"<p>Not shown: {html.escape(', '.join(omissions))}</p>")
    return "".join(images) or "<p>None.</p>"


def films(runs: Sequence[RunFacts]) -> str:
    """Return the films of evaluations and trainings, up to 600 KB in all; of further films a still or the name."""
    figures, weight = [], 0
    for run in runs:
        of_training = [*run.films.values()]
        kept = [*of_training[:1], *of_training[1:][-2:]]  # the first one, and the newest two
        of_evaluations = [(one.video, one.title) for one in run.evaluations if one.video]
        for film, origin in [*of_evaluations, *((film, "the env of the training") for film in kept)]:
            caption = f"{film.path} ({origin})"
            picture = film.still() if weight < PICTURES_BYTES else None
            still = _palette(picture) if picture is not None else b""
            content = _content(film, PICTURES_BYTES - weight - len(still)) if still else None
            if content is not None:
                weight += len(content) + len(still)
                figures.append(_film(content, still, caption))
            else:
                weight += len(still)
                figures.append(_image(still, caption) if still else f"<p>{html.escape(caption)}</p>")
    return "".join(figures) or "<p>None: <code>run.play()</code></p>"


def _content(film: Video, most_bytes: int) -> bytes | None:
    """Return the content of a film; None if it is larger, or cannot be read."""
    try:
        return read(film.path, most_bytes) if most_bytes > 0 else None
    except (OSError, RlnbError):
        return None


def _film(content: bytes, still: bytes, caption: str) -> str:
    """Return a film that plays in a browser, with a still for print."""
    caption, poster = html.escape(caption), base64.b64encode(still).decode()
    data = base64.b64encode(content).decode()
    return (
        f"<figure><video controls loop muted autoplay poster='data:image/png;base64,{poster}' "
        f"src='data:video/mp4;base64,{data}'></video><figcaption>{caption}</figcaption></figure>"
    )


def _small(path: Path) -> bytes | None:
    """Return a picture file as a palette PNG; None if it cannot be read."""
    from PIL import Image

    try:
        with files.open_regular(path) as file, Image.open(file) as image:
            return _palette(image)
    except (OSError, ValueError, RlnbError, Image.DecompressionBombError):
        return None


def _palette(image: Image.Image) -> bytes:
    picture = image.convert("RGB")
    picture.thumbnail((PICTURE_PX, PICTURE_PX))
    with io.BytesIO() as file:
        picture.quantize(256).save(file, format="PNG", optimize=True)
        return file.getvalue()


def _image(data: bytes, caption: str) -> str:
    text = html.escape(caption)
    encoded = base64.b64encode(data).decode()
    return f"<figure><img alt='{text}' src='data:image/png;base64,{encoded}'><figcaption>{text}</figcaption></figure>"


def parameters(runs: Sequence[RunFacts]) -> str:
    """Return the arguments of each run, without those that were left to its task or library."""
    return "".join(table(["", ""], _parameters(run), caption=run.id) for run in runs)


def _parameters(run: RunFacts) -> list[tuple[str, str]]:
    manifest = run.manifest
    arguments = {
        **common_arguments(manifest),
        "max_iterations": _iterations(run),
        "success": manifest.task.success,
        **{f"overrides: {name}": value for name, value in manifest.task.overrides.items()},
        **{f"launcher_args: {name}": value for name, value in manifest.task.launcher_args.items()},
        **{f"agent: {name}": value for name, value in manifest.agent.items()},
    }
    return [(name, str(value)) for name, value in arguments.items() if value is not None]


def _iterations(run: RunFacts) -> int | None:
    """Return the last requested number of iterations. A resumed run may have been extended."""
    return run.started.max_iterations if run.started else run.manifest.max_iterations


def provenance(runs: Sequence[RunFacts]) -> str:
    """Return the command, versions, source, assets and git state of each run."""
    sections = []
    for run in runs:
        command = html.escape(run.command or "no command yet")
        sections.append(f"{table(['', ''], list(_provenance(run)), caption=run.id)}<pre>{command}</pre>")
    return "".join(sections)


def _provenance(run: RunFacts) -> Iterator[tuple[str, str]]:
    manifest, started = run.manifest, run.started
    versions = {**manifest.versions, **(started.versions if started else {})}
    yield "folder", str(run.path)
    yield "git", " ".join(manifest.git.values()) or "not a repository"
    yield "versions", ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    if started and started.gpu:
        yield "GPU", started.gpu
    if started and started.communication:
        yield "communication", ", ".join(f"{name}={value}" for name, value in started.communication.items())
    if manifest.task.source:
        copy = run.record.folder.source / Path(manifest.task.source).name
        yield "task module", f"{copy} (sha256 {manifest.task.source_sha256}), a copy of {manifest.task.source}"
    for name, digest in {**manifest.task.files, **(started.sources if started else {})}.items():
        yield name, f"sha256 {digest}"
    yield "asset root", (started.asset_root if started else "") or manifest.asset_root or "-"
    for name, digest in (started.assets if started else {}).items():
        yield f"asset {name}", f"sha256 {digest}" if digest else "remote file without hash"


def reproduce(runs: Sequence[RunFacts]) -> str:
    """Return a cell for each run that trains it again."""
    return "".join(f"<pre>{html.escape(_cell(run))}</pre>" for run in runs)


def _cell(run: RunFacts) -> str:
    """Return Python lines that repeat a run from the code, the config and the seed in its folder."""
    manifest = run.manifest
    digest, name = manifest.task.source_sha256, "script" if manifest.script else "task's module"
    contents = [f"the {name} (sha256 {digest[:12]})"] if digest else []
    if isinstance(run.record, StockRecord):
        return f"# {run.path} was written by stock Isaac Lab, so rlnb does not know its arguments."
    versions = ", ".join(f"{name} {version}" for name, version in sorted(versions_of(run.record).items()))
    lines = [
        "import rlnb",
        "",
        f"# The folder of the run has {', '.join([*contents, 'the resolved configs'])} and the seed, {manifest.seed}.",
        "# If the folder was moved or copied, write its new path here. A run of another user needs trust=True.",
        f"run = rlnb.train(like={str(run.path)!r})",
        f"# The curve is the same with the same machine and versions: {versions}.",
    ]
    return "\n".join(lines)


# -- configs ---------------------------------------------------------------------------------------------------------


SOURCE_BYTES = 200_000
"""Maximum size of all source code of a run in a report. Further files are named."""


def hyperparameters(runs: Sequence[RunFacts]) -> str:
    """Return every value of each run's agent config as its library got it, and what differs from the run's parent."""
    return "".join(_agent(run) + _changes(run) for run in runs)


def _agent(run: RunFacts) -> str:
    config = {name: value for name, value in resolved_configs(run.record.folder).items() if name.startswith("agent.")}
    if not config:
        return f"<p>{html.escape(run.id)} has written no agent config: {html.escape(run.library)} dumps none.</p>"
    lines = "\n".join(f"{name.removeprefix('agent.')} = {value!r}" for name, value in config.items())
    return _details(f"{run.id}: {counted(len(config), 'hyperparameter')}", f"<pre>{html.escape(lines)}</pre>")


def _changes(run: RunFacts) -> str:
    """Return a table of the arguments and config values that differ from the parent; empty without a parent."""
    parent = parent_of(run)
    if parent is None:
        return _absence(run)
    names = differences([parent, run]).items()
    rows = [[name, _text(values[parent.id]), _text(values[run.id])] for name, values in names]
    return table(["", parent.id, run.id], rows, caption=f"{run.id}: changes since its parent")


def _absence(run: RunFacts) -> str:
    """Return a sentence on a parent that cannot be read; empty for a run without one."""
    if run.manifest.parent is None:
        return ""
    text = f"The first weights of {run.id} come from {run.manifest.parent}, whose run is not here."
    return f"<p>{html.escape(text)}</p>"


def _text(value: Json) -> str:
    return value if isinstance(value, str) else repr(value)


def sources(runs: Sequence[RunFacts]) -> str:
    """Return the source code of each run's task as the run kept it, and its difference to that of the run's parent."""
    return "".join(_source(run) for run in runs)


def _source(run: RunFacts) -> str:
    names = source_files(run.record)
    if not names:
        text = f"{run.id}: the task {run.task} belongs to a package, of whose source a run keeps no copy."
        return f"<p>{html.escape(text)}</p>"
    parts, size = [], 0
    for name in names:
        text = read_source(run.record, name)
        size += len(text.encode())
        content = f"<pre>{html.escape(text)}</pre>" if size <= SOURCE_BYTES else "<p>Not shown: it is too long.</p>"
        parts.append(_details(f"{run.id}: {name}, {counted(text.count(chr(10)), 'line')}", content))
    parent = parent_of(run)
    return "".join(parts) + (_source_changes(run, parent) if parent is not None else "")


def _source_changes(run: RunFacts, parent: RunFacts) -> str:
    """Return the unified diff of the task's source from the parent's; a sentence if there is none."""
    diff = source_diff(parent.record, run.record)
    if not diff:
        return f"<p>The source is that of its parent {html.escape(parent.id)}.</p>"
    return _details(f"{run.id}: changes of the source since its parent", diff._repr_html_(), is_open=True)


def parent_of(run: RunFacts) -> RunFacts | None:
    """Return the run that a run's first weights come from; None if there is none, or if it is not here."""
    for checkpoint in _origins(run):
        if (record := run_of(Path(checkpoint))) is not None and record.id != run.id:
            return RunFacts.of(record)
    return None


def _origins(run: RunFacts) -> Iterator[str]:
    """Yield the checkpoints whose weights the run's trainings started from."""
    for job in run.jobs:
        if job.kind == "train" and isinstance(origin := job.options.get("init_from"), str):
            yield origin


def _details(summary: str, content: str, *, is_open: bool = False) -> str:
    """Return content that opens without JavaScript."""
    state = " open" if is_open else ""
    return f"<details{state}><summary>{html.escape(summary)}</summary>{content}</details>"
