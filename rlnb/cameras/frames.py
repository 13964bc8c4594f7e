"""The arrays of a preview, their meaning, and the faults in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rlnb.configs.cameras import CameraPose, kind_of
from rlnb.protocol.requests import TaskFinding

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, kw_only=True, slots=True)
class Frames:
    """Camera frames of a task at some moments."""

    task: str
    """Task id."""
    clip: Mapping[str, Mapping[str, np.ndarray]]
    """Frames by camera, then by data type. Shape (times, envs, height, width, channels). uint8 for ``rgb``, ``rgba``
    and ``albedo``; float32 metres for the depth types, inf where nothing was hit; float32 in -1 to 1 for
    ``normals``; int32 ids for segmentation."""
    times_s: tuple[float, ...]
    """Simulated time of each moment since the reset, in seconds. The first is 0."""
    envs: tuple[int, ...]
    """Index in the task of each env in the arrays."""
    state: np.ndarray
    """Poses relative to the env's origin, and joint positions. Shape (times, envs,
    values), float32, metres and radians."""
    labels: Mapping[str, Mapping[int, str]]
    """Label of each segmentation id, by ``"<camera>/<data type>"``."""
    ranges_m: Mapping[str, tuple[float, float]]
    """Near and far clipping distance of each camera, in metres."""
    noisy: tuple[str, ...] = ()
    """Names of the cameras with an RTX renderer. The noise in their colours can hide faults from the inspector."""
    steps: int
    """Number of env steps between the first and the last moment."""
    added: bool
    """Whether a camera was added to the scene because the task has none."""
    place: CameraPose | None = None
    """Eye and target of an added camera in the frame of the first env, in metres, at the last moment. They are values
    for ``eye=`` and ``target=``."""
    findings: tuple[Finding, ...]
    """Faults that the inspector found in the pictures."""
    task_findings: tuple[TaskFinding, ...] = ()
    """Mistakes in what the env returned: shapes, values that are not finite, rewards, episodes that end at once."""
    seconds: Mapping[str, float]
    """Seconds that the worker took to ``make`` the env, until the ``first`` frame, and in ``total``."""

    @property
    def frames(self) -> dict[str, dict[str, np.ndarray]]:
        """Frames of the last moment, by camera and data type.

        Shape (envs, height, width, channels); dtypes as in ``clip``.
        """
        return {camera: {kind: clip[-1] for kind, clip in types.items()} for camera, types in self.clip.items()}

    @property
    def num_envs(self) -> int:
        """Number of envs in the arrays."""
        return len(self.envs)


# -- inspector -------------------------------------------------------------------------------------------------------


Fault = Literal["blank", "stale", "duplicate", "drift", "nan", "unlabelled", "range"]

MOVED = 0.05
"""Movement in metres or radians from which on a picture should change by a few pixels."""
FLAT = 2
"""Largest range of a channel's values (0 to 255) in a picture that counts as one colour."""
DRIFT = 1.15
"""Brightness ratio to the other envs from which on a picture is a fault, if its dark, middle and bright parts agree."""
ENOUGH_PIXELS = 4096
"""Approximate number of pixels per env that are sampled to measure brightness."""
HIDDEN_BY_NOISE: tuple[Fault, ...] = ("stale", "duplicate")
"""Faults of equal pictures. No two pictures with noise are equal."""
_UNNAMED = {"BACKGROUND", "UNLABELLED"}
"""Labels that the renderers of Isaac Lab 3.0 give to pixels without a semantic label."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """A fault in the output of a camera."""

    camera: str
    """Name of the camera."""
    data_type: str
    """Isaac Lab's name of the output."""
    fault: Fault
    """Kind of fault."""
    envs: tuple[int, ...]
    """Envs with the fault; empty if it does not depend on the env."""
    what: str
    """Description of the fault, with measured values."""

    def __str__(self) -> str:
        where = f" in env {ranges(self.envs)}" if self.envs else ""
        return f"{self.fault}{where}: {self.what}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Shot:
    """One output of one camera, with the facts that the checks need."""

    camera: str
    data_type: str
    clip: np.ndarray
    """Frames. Shape (times, envs, height, width, channels)."""
    state: np.ndarray
    """Poses and joint positions. Shape (times, envs, values), metres and radians."""
    labels: Mapping[int, str]
    """Label of each id of a segmentation."""
    range_m: tuple[float, float] | None
    """Near and far clipping distance, in metres."""
    envs: Sequence[int]
    """Index in the task of each env in the arrays."""


def inspect(shot: Shot) -> list[Finding]:
    """Return the faults of one output of one camera."""
    return [
        Finding(
            camera=shot.camera,
            data_type=shot.data_type,
            fault=fault,
            envs=tuple(shot.envs[index] for index in indices),
            what=what,
        )
        for fault, check in _CHECKS.items()
        for indices, what in check(shot)
    ]


def hidden_faults(data_type: str) -> tuple[Fault, ...]:
    """Return the faults that the inspector can miss in an output of a camera whose renderer adds noise to colours."""
    return HIDDEN_BY_NOISE if kind_of(data_type) == "color" else ()


def ranges(numbers: Sequence[int]) -> str:
    """Return numbers as text, with runs of numbers shortened: ``0, 2 to 7``."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(
        str(run[0]) if len(run) == 1 else f"{run[0]}{' to ' if len(run) > 2 else ', '}{run[-1]}" for run in runs
    )


Found = Iterator[tuple[list[int], str]]
"""Indices of envs in the arrays, and the description of their fault."""


def _blank(shot: Shot) -> Found:
    import numpy as np

    last = shot.clip[-1]
    if kind_of(shot.data_type) == "depth":
        envs = [index for index, image in enumerate(last) if not np.isfinite(image).any()]
        between = f" between {shot.range_m[0]:g} and {shot.range_m[1]:g} m" if shot.range_m else ""
        if envs:
            yield envs, f"no ray hits anything{between}"
    elif kind_of(shot.data_type) == "color":
        pixels = last[..., :3].reshape(len(last), -1, 3)
        envs = [index for index, image in enumerate(last) if _flat(image[..., :3])]
        if envs:
            color = ", ".join(str(int(value)) for value in pixels[envs[0]].mean(axis=0).round())
            yield envs, f"all pixels have one colour ({color})"
    elif kind_of(shot.data_type) == "normal":
        envs = [index for index, image in enumerate(last) if not np.nan_to_num(image).any()]
        if envs:
            yield envs, "no ray hits a surface"


def _stale(shot: Shot) -> Found:
    import numpy as np

    if len(shot.clip) < 2 or not shot.state.shape[-1]:
        return
    moved = np.abs(shot.state[-1] - shot.state[0]).max(axis=-1)
    envs = [
        index
        for index, by in enumerate(moved)
        if by > MOVED and _same(shot.clip[0][index], shot.clip[-1][index]) and not _flat(shot.clip[-1][index])
    ]
    if envs:
        yield envs, f"no pixel changed although bodies or joints moved by up to {moved[envs].max():.2f} m or rad"


def _duplicate(shot: Shot) -> Found:
    import numpy as np

    if not shot.state.shape[-1]:
        return
    last, state = shot.clip[-1], shot.state[-1]
    numbers: dict[bytes, int] = {}
    copies: dict[int, list[int]] = {}
    for index, image in enumerate(last):
        first = numbers.setdefault(image.tobytes(), index)
        if first != index and not _flat(image) and np.abs(state[index] - state[first]).max() > MOVED:
            copies.setdefault(first, []).append(index)
    for first, indices in copies.items():
        yield indices, f"same picture as env {shot.envs[first]}, although bodies or joints are elsewhere"


def _drift(shot: Shot) -> Found:
    import numpy as np

    if kind_of(shot.data_type) != "color" or len(shot.clip[-1]) < 2:
        return
    count, height, width, _ = shot.clip[-1].shape
    every = max(1, height * width // ENOUGH_PIXELS)
    pixels = shot.clip[-1][..., :3].reshape(count, height * width, 3)[:, ::every]
    light = pixels.astype(np.float32).mean(axis=-1)
    parts = np.percentile(light, (25, 50, 75, 95), axis=1).T + 1.0
    lit = [index for index, image in enumerate(shot.clip[-1]) if not _flat(image[..., :3])]
    if len(lit) < 2:
        return
    # The median of three or more envs is normal. Of two envs, either may be the odd one.
    reference, whose = (
        (parts[lit[0]], f"env {shot.envs[lit[0]]}")
        if len(lit) == 2
        else (
            np.median(parts[lit], axis=0),
            "most envs",
        )
    )
    ratios = parts / reference
    for word, odd in (("brighter", (ratios > DRIFT).all(axis=1)), ("darker", (ratios < 1 / DRIFT).all(axis=1))):
        envs = [index for index in lit if odd[index]]
        if envs:
            most = ratios[envs].mean(axis=1)
            factor = most.max() if word == "brighter" else most.min()
            yield envs, f"{word} than {whose}, with {factor:.2f} times the brightness"


def _nan(shot: Shot) -> Found:
    import numpy as np

    if not np.issubdtype(shot.clip.dtype, np.floating):
        return
    # Depth is inf where nothing was hit. In other outputs, inf has no meaning.
    wrong = np.isnan(shot.clip) if kind_of(shot.data_type) == "depth" else ~np.isfinite(shot.clip)
    counts = wrong.sum(axis=(0, 2, 3, 4))
    envs = np.flatnonzero(counts).tolist()
    if envs:
        yield envs, f"{int(counts.sum())} values are not valid numbers"


def _unlabelled(shot: Shot) -> Found:
    if kind_of(shot.data_type) == "label" and not set(shot.labels.values()) - _UNNAMED:
        yield [], 'no asset has a semantic label. Set one with spawn.semantic_tags=[("class", "cube")]'


def _range(shot: Shot) -> Found:
    import numpy as np

    if kind_of(shot.data_type) != "depth" or shot.range_m is None:
        return
    near, far = shot.range_m
    depth = shot.clip[-1]
    hit = np.isfinite(depth)
    for word, outside in ((f"nearer than {near:g}", hit & (depth < near)), (f"beyond {far:g}", hit & (depth > far))):
        counts = outside.sum(axis=(1, 2, 3))
        envs = np.flatnonzero(counts).tolist()
        if envs:
            share = counts[envs].max() / depth[0].size
            yield envs, f"depth {word} m, outside the clipping range, in up to {share:.1%} of the pixels"


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    import numpy as np

    return bool(np.array_equal(one, other, equal_nan=np.issubdtype(one.dtype, np.floating)))


def _flat(image: np.ndarray) -> bool:
    """Return whether a picture has one colour or value, so that movement in it would be invisible."""
    import numpy as np

    if image.dtype == np.uint8:
        pixels = image.reshape(-1, image.shape[-1])
        return int((pixels.max(axis=0).astype(int) - pixels.min(axis=0)).max()) <= FLAT
    return _same(image, np.broadcast_to(image[:1, :1], image.shape))


_CHECKS: dict[Fault, Callable[[Shot], Found]] = {
    "blank": _blank,
    "stale": _stale,
    "duplicate": _duplicate,
    "drift": _drift,
    "nan": _nan,
    "unlabelled": _unlabelled,
    "range": _range,
}
