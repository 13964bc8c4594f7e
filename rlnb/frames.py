"""What the cameras of a task see: arrays, and a picture of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image


@dataclass(frozen=True, kw_only=True, slots=True)
class Preview:
    """Camera frames of one moment of a task, shown inline as a grid per camera and data type."""

    task: str
    """Task id."""
    frames: Mapping[str, Mapping[str, np.ndarray]]
    """By camera, then by data type. Shape (num_envs, height, width, channels): uint8 for ``rgb``, ``rgba``
    and ``albedo``; float32 metres for ``depth`` and its kin, inf where nothing was hit; float32 for
    ``normals``, in -1 to 1; int32 ids for segmentation."""
    labels: Mapping[str, Mapping[int, str]]
    """``"<camera>/<data type>"`` of a segmentation, to the label of each id."""
    ranges_m: Mapping[str, tuple[float, float]]
    """Near and far clip of each camera."""
    steps: int
    """Env steps before the frames."""
    added: bool
    """Whether the task has no camera and one was added to its scene."""
    seconds: float
    """How long the worker took."""

    @property
    def num_envs(self) -> int:
        """Envs in the picture."""
        return next(len(array) for types in self.frames.values() for array in types.values())

    @property
    def image(self) -> Image:
        """All grids in one picture, depth with its range in metres, segmentation with a legend."""
        from rlnb.notebook.grid import picture

        return picture(self)

    def save(self, path: str | Path) -> Path:
        """Write the picture; the suffix decides the format (``.png``)."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        self.image.save(path)
        return path

    def __repr__(self) -> str:
        shown = "; ".join(f"{camera}: {', '.join(types)}" for camera, types in self.frames.items())
        return f"Preview({self.task!r}, {self.num_envs} envs, {shown})"

    def _repr_png_(self) -> bytes:
        import io

        buffer = io.BytesIO()
        self.image.save(buffer, format="PNG", optimize=True)
        return buffer.getvalue()


def read(task: str, steps: int, reply: Mapping[str, Any]) -> Preview:
    """Build a preview from the worker's answer."""
    import numpy as np

    frames: dict[str, dict[str, np.ndarray]] = {}
    with np.load(reply["frames"], allow_pickle=False) as arrays:
        for key in arrays.files:
            camera, _, data_type = key.rpartition("/")
            frames.setdefault(camera, {})[data_type] = arrays[key]
    return Preview(
        task=task,
        frames=frames,
        labels={key: {int(n): text for n, text in names.items()} for key, names in reply["labels"].items()},
        ranges_m={camera: (near, far) for camera, (near, far) in reply["ranges_m"].items()},
        steps=steps,
        added=reply["added"],
        seconds=reply["seconds"]["total"],
    )
