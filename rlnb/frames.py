"""What the cameras of a task see: arrays, pictures and films of them, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlnb.errors import RlnbError
from rlnb.inspector import Finding, Shot, inspect, ranges

if TYPE_CHECKING:
    import ipywidgets
    import numpy as np
    from PIL.Image import Image

LEAST_MS = 20
"""Milliseconds of a frame in a GIF: browsers slow down what is faster."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Preview:
    """Camera frames of some moments of a task, shown inline as a grid per camera and data type."""

    task: str
    """Task id."""
    clip: Mapping[str, Mapping[str, np.ndarray]]
    """By camera, then by data type. Shape (times, envs, height, width, channels): uint8 for ``rgb``, ``rgba``
    and ``albedo``; float32 metres for ``depth`` and its kin, inf where nothing was hit; float32 for
    ``normals``, in -1 to 1; int32 ids for segmentation."""
    times_s: tuple[float, ...]
    """Simulated time of each moment since the reset: first 0, last after all steps."""
    envs: tuple[int, ...]
    """Number of each env in the arrays."""
    state: np.ndarray
    """What can be seen to move: poses, relative to the env's origin, and joint positions. Shape (times, envs,
    values), float32, metres and radians."""
    labels: Mapping[str, Mapping[int, str]]
    """``"<camera>/<data type>"`` of a segmentation, to the label of each id."""
    ranges_m: Mapping[str, tuple[float, float]]
    """Near and far clip of each camera."""
    steps: int
    """Env steps between the first and the last moment."""
    added: bool
    """Whether the task has no camera and one was added to its scene."""
    findings: tuple[Finding, ...]
    """What is wrong with the pictures; nothing, as far as can be told, where it is empty."""
    seconds: Mapping[str, float]
    """How long the worker took: ``make`` the env, to the ``first`` frame, in ``total``."""

    @property
    def frames(self) -> dict[str, dict[str, np.ndarray]]:
        """The last moment, by camera and data type. Shape (envs, height, width, channels); dtypes as in ``clip``."""
        return {camera: {kind: clip[-1] for kind, clip in types.items()} for camera, types in self.clip.items()}

    @property
    def num_envs(self) -> int:
        """Envs in the picture."""
        return len(self.envs)

    @property
    def image(self) -> Image:
        """All grids of the last moment in one picture, depth with its range in metres, segmentation with a legend."""
        return self.at(-1)

    def at(self, moment: int) -> Image:
        """Return the picture of one moment.

        Args:
            moment: Index into ``times_s``.
        """
        from rlnb.notebook.grid import picture

        return picture(self, moment)

    def browse(self) -> ipywidgets.Widget | Preview:
        """Return a viewer with a choice of camera and data type, and sliders for env and time; itself in a report."""
        from rlnb.notebook import display
        from rlnb.notebook.browse import viewer

        return viewer(self) if display.is_live() else self

    def save(self, path: str | Path) -> Path:
        """Write the last moment (``.png``), or all of them as a film (``.gif``, ``.mp4``).

        Raises:
            RlnbError: Another suffix; or a film of MP4 without PyAV.
        """
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".png":
            self.image.save(path)
        elif path.suffix == ".gif":
            first, *rest = (self.at(moment) for moment in range(len(self.times_s)))
            first.save(path, save_all=True, append_images=rest, duration=max(LEAST_MS, 1000 / self._fps), loop=0)
        elif path.suffix == ".mp4":
            self._save_mp4(path)
        else:
            raise RlnbError(f"{path.name!r}: a preview is written as .png, .gif or .mp4.")
        return path

    def _save_mp4(self, path: Path) -> None:
        import numpy as np

        from rlnb.video import Mp4

        film = Mp4(path, self._fps)
        for moment in range(len(self.times_s)):
            film.add(np.asarray(self.at(moment)))
        film.close()

    @property
    def _fps(self) -> float:
        """Frames per second at the task's own speed."""
        return 1.0 / (self.times_s[1] - self.times_s[0]) if len(self.times_s) > 1 else 1.0

    def __repr__(self) -> str:
        shown = "; ".join(f"{camera}: {', '.join(types)}" for camera, types in self.clip.items())
        wrong = "".join(f"\n  {finding.camera} {finding.data_type}: {finding}" for finding in self.findings)
        return f"Preview({self.task!r}, env {ranges(self.envs)}, {shown}){wrong}"

    def _repr_png_(self) -> bytes:
        import io

        buffer = io.BytesIO()
        self.image.save(buffer, format="PNG")
        return buffer.getvalue()


def read(task: str, steps: int, envs: tuple[int, ...], reply: Mapping[str, Any], *, inspected: bool = True) -> Preview:
    """Build a preview from the worker's answer; the first picture, which the rest follows, need not be inspected."""
    import numpy as np

    clip: dict[str, dict[str, np.ndarray]] = {}
    with np.load(reply["frames"], allow_pickle=False) as arrays:
        state = arrays["state"]
        for key in arrays.files:
            camera, _, data_type = key.rpartition("/")
            if camera:
                clip.setdefault(camera, {})[data_type] = arrays[key]
    labels = {key: {int(n): text for n, text in names.items()} for key, names in reply["labels"].items()}
    ranges_m = {camera: (near, far) for camera, (near, far) in reply["ranges_m"].items()}
    findings = [
        finding
        for camera, types in (clip if inspected else {}).items()
        for data_type, array in types.items()
        for finding in inspect(
            Shot(
                camera=camera,
                data_type=data_type,
                clip=array,
                state=state,
                labels=labels.get(f"{camera}/{data_type}", {}),
                range_m=ranges_m.get(camera),
                envs=envs,
            )
        )
    ]
    return Preview(
        task=task,
        clip=clip,
        times_s=tuple(reply["times_s"]),
        envs=envs,
        state=state,
        labels=labels,
        ranges_m=ranges_m,
        steps=steps,
        added=reply["added"],
        findings=tuple(findings),
        seconds=reply["seconds"],
    )
