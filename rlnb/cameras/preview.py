"""Camera frames of a task: arrays, pictures and videos, with the faults that the inspector finds in them."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rlnb.cameras.frames import Finding, Frames, Shot, hidden_faults, inspect, ranges
from rlnb.cameras.grid import Panel, panel, picture
from rlnb.cameras.scene import Scene, scene_of
from rlnb.configs.cameras import aim_of, kind_of
from rlnb.configs.card import CameraCard, TaskCard
from rlnb.configs.checks import check_overrides, runtime_problems, tell_chosen
from rlnb.contracts.launchers import Launcher
from rlnb.display.links import LinkedPath
from rlnb.display.live_pictures import clickable
from rlnb.display.status import status
from rlnb.errors import CheckError, Problem, RlnbError, unknown, whole_number
from rlnb.protocol import requests
from rlnb.protocol.requests import Clip
from rlnb.records.facts import RunFacts
from rlnb.simulation import placement
from rlnb.simulation.pool import pool
from rlnb.spec import EnvMode, Task
from rlnb.storage import files
from rlnb.storage.files import whole
from rlnb.tasks.card_cache import keep_term_sizes
from rlnb.tasks.task import task_card

if TYPE_CHECKING:
    import ipywidgets
    import numpy as np
    from PIL.Image import Image

LEAST_MS = 20
"""Shortest frame of a GIF in milliseconds. Browsers slow down GIFs with shorter frames."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Preview(Frames):
    """Camera frames of a task at some moments. A notebook shows a grid of envs per camera and data type."""

    @property
    def image(self) -> Image:
        """All grids of the last moment in one picture. Depth has a scale in metres, segmentation has a legend."""
        return self.at(-1)

    def at(self, moment: int) -> Image:
        """Return the picture of one moment.

        Args:
            moment: Index into ``times_s``.
        """
        return picture(self, moment)

    def browse(self) -> ipywidgets.Widget | Preview:
        """Return a viewer with menus for camera and data type and sliders for env and time.

        In a report and in marimo, which has no such controls, return this preview.
        """
        from rlnb.display import front_end

        return browser(self) if front_end.has_ipywidgets() else self

    def save(self, path: str | Path) -> Path:
        """Write the last moment as a picture (``.png``), or all moments as a video (``.gif`` or ``.mp4``).

        Raises:
            RlnbError: The file has another suffix, or it is an MP4 and PyAV is not installed.
        """
        path = Path(path)
        if path.suffix in (".png", ".gif"):
            files.make_folder(path.absolute().parent)
            files.make_file(path)
        if path.suffix == ".png":
            self.image.save(path)
        elif path.suffix == ".gif":
            first, *rest = (self.at(moment) for moment in range(len(self.times_s)))
            first.save(path, save_all=True, append_images=rest, duration=max(LEAST_MS, 1000 / self._fps), loop=0)
        elif path.suffix == ".mp4":
            self._save_mp4(path)
        else:
            raise RlnbError(f"{path.name!r} is not a .png, .gif or .mp4 file. Use one of these suffixes.")
        return LinkedPath(path)

    def _save_mp4(self, path: Path) -> None:
        import numpy as np

        from rlnb.records.video import Mp4

        video = Mp4(path, self._fps)
        for moment in range(len(self.times_s)):
            video.add(np.asarray(self.at(moment)))
        video.close()

    @property
    def _fps(self) -> float:
        """Frames per second of a video at the speed of the simulation."""
        return 1.0 / (self.times_s[1] - self.times_s[0]) if len(self.times_s) > 1 else 1.0

    def __repr__(self) -> str:
        cameras = "; ".join(f"{camera}: {', '.join(types)}" for camera, types in self.clip.items())
        faults = "".join(f"\n  {finding.camera} {finding.data_type}: {finding}" for finding in self.findings)
        noise = "".join(
            f"\n  {camera} {data_type}: noise can hide: {', '.join(hidden_faults(data_type))}"
            for camera in self.noisy
            for data_type in self.clip[camera]
            if hidden_faults(data_type)
        )
        of_task = "".join(f"\n  {found.level}: {found.what} {found.fix}" for found in self.task_findings)
        place = f", {self.place}" if self.place is not None else ""
        return f"Preview({self.task!r}, env {ranges(self.envs)}, {cameras}{place}){of_task}{faults}{noise}"

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.image.save(buffer, format="PNG")
        return buffer.getvalue()


def read(task: str, steps: int, envs: tuple[int, ...], clip: Clip, *, inspected: bool = True) -> Preview:
    """Return the preview of a clip. The inspector can be skipped for an interim clip."""
    import numpy as np

    frames: dict[str, dict[str, np.ndarray]] = {}
    with np.load(clip.file, allow_pickle=False) as arrays:
        state = arrays["state"]
        for key in arrays.files:
            camera, _, data_type = key.rpartition("/")
            if camera:
                frames.setdefault(camera, {})[data_type] = arrays[key]
    labels = {key: {int(n): text for n, text in names.items()} for key, names in clip.labels.items()}
    findings = _faults(frames, state, labels, clip, envs) if inspected else []
    return Preview(
        task=task,
        clip=frames,
        times_s=clip.times_s,
        envs=envs,
        state=state,
        labels=labels,
        ranges_m=clip.ranges_m,
        noisy=clip.noisy,
        steps=steps,
        added=clip.added,
        place=clip.place,
        findings=tuple(findings),
        task_findings=clip.findings,
        seconds=clip.seconds,
    )


def _faults(
    frames: Mapping[str, Mapping[str, np.ndarray]],
    state: np.ndarray,
    labels: Mapping[str, Mapping[int, str]],
    clip: Clip,
    envs: tuple[int, ...],
) -> list[Finding]:
    """Return what the inspector finds in the pictures."""
    return [
        finding
        for camera, types in frames.items()
        for data_type, array in types.items()
        for finding in inspect(
            Shot(
                camera=camera,
                data_type=data_type,
                clip=array,
                state=state,
                labels=labels.get(f"{camera}/{data_type}", {}),
                range_m=clip.ranges_m.get(camera),
                envs=envs,
            )
        )
    ]


@placement.takes_launcher
def preview(
    task: Task | RunFacts | str,
    *,
    cameras: Sequence[str] | None = None,
    data_types: Sequence[str] | None = None,
    num_envs: int = 4,
    envs: Sequence[int] | None = None,
    steps: int = 30,
    every: int | None = None,
    actions: Literal["random", "zero"] = "random",
    policy: RunFacts | str | None = None,
    checkpoint: str | Path | None = None,
    trust: bool = False,
    mode: EnvMode | None = None,
    size: tuple[int, int] = (160, 120),
    eye: Sequence[float] | None = None,
    target: Sequence[float] | None = None,
    seed: int = 42,
    device: str = "auto",
    python: str | None = None,
    asset_root: str | None = None,
    warm: bool | None = None,
    launcher: Launcher | None = None,
) -> Preview:
    """Show the views of a task's cameras after the reset and after some steps. A task without cameras gets one.

    Args:
        task: A task or its name; or a run, which stands for its task and its policy.
        cameras: Names of the task's cameras; None is all of them.
        data_types: ``"rgb"``, ``"depth"``, ``"semantic_segmentation"``, ``"normals"``, ...; None is each camera's
            configured data types.
        num_envs: Number of envs to make.
        envs: Indices of the envs to show; None is all.
        steps: Number of env steps from the first frame to the last.
        every: Number of steps between two frames of a video; None takes only the first and the last frame.
        actions: ``"random"`` (uniform in -1 to 1) or ``"zero"``.
        policy: A run, or its id, whose policy acts instead.
        checkpoint: Name or path of one of that run's checkpoints; None is the last.
        trust: Whether to show a run of another user, and to load a checkpoint that holds more than weights.
        mode: As in :meth:`rlnb.Run.evaluate`; without a policy, None is ``"train"``.
        size: Width and height of an added camera, in pixels.
        eye: Position of an added camera in the frame of each env, in metres. None shows the robots whole.
        target: Point in the middle of its picture, in the same frame; None is the middle of the robots. A camera with
            eye or target stands still; otherwise it follows robots that leave the picture.
        seed: Seed of the env.
        device: As in :func:`train`.
        python: Command of the worker's interpreter.
        asset_root: Folder or URL of robot assets.
        warm: Whether to use the warm simulator instead of a new process; None is ``rlnb.options.warm``.
        launcher: Launcher whose job holds the simulator; None is ``rlnb.options.simulator``.

    Raises:
        CheckError: The task, a camera name or a number has a problem; no env was made.
        NotFoundError: The task, the run or the checkpoint does not exist.
        WorkerError: The task's own code failed. The error contains the traceback.
    """
    scene = scene_of(
        task, policy=policy, checkpoint=checkpoint, trust=trust, mode=mode, python=python, asset_root=asset_root
    )
    card = task_card(scene.task, python=scene.python, asset_root=scene.asset_root)
    num_envs, steps, every, seed = map(whole, (num_envs, steps, every, seed))
    check_preview(scene.task, card, cameras, data_types, num_envs, envs, steps, every, actions, size, eye, target)
    with tempfile.TemporaryDirectory(prefix="rlnb-preview-") as out, status(f"Previewing {scene.task.id}") as show:
        request = requests.Preview(
            task=scene.task,
            cameras=tuple(cameras) if cameras else None,
            data_types=tuple(data_types) if data_types else None,
            num_envs=num_envs,
            envs=tuple(envs) if envs is not None else None,
            steps=steps,
            every=every,
            actions=actions,
            policy=scene.policy,
            mode=scene.mode,
            size=(size[0], size[1]),
            aim=aim_of(eye, target)[0],
            seed=seed,
            device=device,
            out=out,
        )
        return _preview_of(request, scene, show, warm=warm)


def _preview_of(request: requests.Preview, scene: Scene, show: Callable[[Any], None], *, warm: bool | None) -> Preview:
    """Return the preview that a simulator takes, and show its first frames as soon as they arrive."""
    envs = request.envs if request.envs is not None else tuple(range(request.num_envs))

    def of(clip: Clip, *, inspected: bool = True) -> Preview:
        return read(request.task.id, request.steps, envs, clip, inspected=inspected)

    def show_first(clip: Clip) -> None:
        show(of(clip, inspected=False).image)

    clip = pool.request(request, scene.python, scene.asset_root, warm=warm, meanwhile=show_first)
    keep_term_sizes(scene.task, scene.python, scene.asset_root, clip.term_sizes)
    return of(clip)


# -- a viewer --------------------------------------------------------------------------------------------------------
# A click on an env in the picture shows this env alone, in all of its pixels. Another click shows all envs again.


ALL = "all"


def browser(preview: Frames) -> ipywidgets.Widget:
    """Return a widget with controls and a picture, which is redrawn whenever a control changes."""
    import ipywidgets

    camera = ipywidgets.Dropdown(options=list(preview.clip), description="camera")
    data_type = ipywidgets.Dropdown(options=list(preview.clip[camera.value]), description="output")
    env = ipywidgets.SelectionSlider(options=[ALL, *preview.envs], description="env")
    moment = ipywidgets.SelectionSlider(
        options=[(f"{time_s:.2f} s", index) for index, time_s in enumerate(preview.times_s)],
        value=len(preview.times_s) - 1,
        description="time",
    )

    def current() -> Panel:
        one = None if env.value == ALL else preview.envs.index(env.value)
        return panel(preview, camera.value, data_type.value, moment.value, one)

    def draw(_: Any = None) -> None:
        if data_type.value in preview.clip[camera.value]:
            buffer = io.BytesIO()
            current().image.save(buffer, format="PNG")
            image.value = buffer.getvalue()

    def click(x: float, y: float) -> None:
        index = current().env_at(x, y) if env.value == ALL else None
        env.value = ALL if index is None else preview.envs[index]

    image = clickable(click)

    def choose_camera(_: Any) -> None:
        before = data_type.value
        data_type.options = list(preview.clip[camera.value])  # this selects the first option
        if before in preview.clip[camera.value]:
            data_type.value = before
        draw()

    camera.observe(choose_camera, "value")
    for control in (data_type, env, moment):
        control.observe(draw, "value")
    draw()
    return ipywidgets.VBox([ipywidgets.HBox([camera, data_type]), ipywidgets.HBox([env, moment]), image])


# -- checks ----------------------------------------------------------------------------------------------------------


MOST_GIB = 2.0
"""Largest size of one preview in memory, in GiB."""
BYTES_PER_VALUE = 4
"""Bytes per channel of a pixel. Normals have three channels; every other data type counts as one."""


def check_preview(
    task: Task,
    card: TaskCard,
    cameras: Sequence[str] | None,
    data_types: Sequence[str] | None,
    num_envs: int,
    envs: Sequence[int] | None,
    steps: int,
    every: int | None,
    actions: str,
    size: Sequence[int],
    eye: Sequence[float] | None = None,
    target: Sequence[float] | None = None,
) -> None:
    """Check the arguments of a preview, and say what rlnb has chosen for the task.

    Raises:
        CheckError: The arguments have problems. The error lists all of them.
    """
    problems = [*check_overrides(task, card), *runtime_problems(task, card)]
    problems += whole_number("num_envs", num_envs, example=4)
    problems += whole_number("steps", steps, least=0, example=30)
    problems += [] if every is None else whole_number("every", every, example=2)
    if envs is not None:
        outside = [env for env in envs if not isinstance(env, int) or not 0 <= env < num_envs]
        if outside or not envs:
            fault = f"{outside} is not in 0 to {num_envs - 1}" if envs else "the list is empty"
            what = f"envs={list(envs)!r}: {fault}."
            problems.append(Problem(what=what, fix="Choose envs from those that num_envs makes, or raise num_envs."))
    if actions not in ("random", "zero"):
        problems.append(Problem(what=f"actions={actions!r} is neither 'random' nor 'zero'.", fix='actions="random"'))
    problems += aim_of(eye, target, [*card.cameras])[1]
    cards = card.cameras or {"preview": CameraCard(width=size[0], height=size[1])}
    for name in cameras or ():
        if name not in cards:
            problems.append(Problem(what=str(unknown("camera", name, cards, has=f"{card.task} has"))))
    if not problems:
        moments = 2 + (steps // every if every else 0)
        values = 0
        for name in cameras or cards:
            types = data_types or cards[name].data_types or ["rgb"]
            channels = sum(3 if kind_of(data_type) == "normal" else 1 for data_type in types)
            values += cards[name].width * cards[name].height * channels
        size_gib = moments * (num_envs if envs is None else len(envs)) * values * BYTES_PER_VALUE / 2**30
        if size_gib > MOST_GIB:
            what = f"{moments} frames of these cameras and envs need {size_gib:.1f} GiB, more than {MOST_GIB:g} GiB."
            problems.append(Problem(what=what, fix="Show fewer envs (envs=range(4)) or fewer frames (every=10)."))
    if problems:
        raise CheckError(f"preview of {task.id}", problems)
    tell_chosen(card)
