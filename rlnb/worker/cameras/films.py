"""Films of evaluations, and films during a training: one every few iterations, within a small share of its time."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlnb.display.pictures import tiled
from rlnb.records.video import Mp4
from rlnb.storage import entries
from rlnb.worker.cameras import rig
from rlnb.worker.cameras.rig import Plan
from rlnb.worker.cameras.spectator import Spectator

if TYPE_CHECKING:
    import numpy as np

logger = logging.getLogger(__name__)

ENVS = 4
"""Envs in the picture."""
SIZE = (160, 120)
"""Width and height of an env's picture in pixels."""
LENGTH_S = 4.0
"""Simulated seconds of a film. It plays at the speed of the simulation."""
FPS = 15.0
"""Largest number of frames per second."""
FEWEST = 8
"""Fewest frames of a film. If they would take too long, the film is left out."""
SHARE = 0.02
"""Largest share of the training's time that the pictures of all films together may take. The first film also takes
about half a second to prepare."""


class Films:
    """Films an env that is being stepped.

    Args:
        env: The task's own env.
        path: Function from a learning iteration to the path of its film, ``.mp4``.
        every: Learning iterations between two films.
        iteration: Returns the learning iteration of an env step.
    """

    def __init__(
        self, env: Any, path: Callable[[int], Path], every: int, iteration: Callable[[int], int | None]
    ) -> None:
        self._env, self._path, self._every, self._iteration = env, path, every, iteration
        self._begin_s = time.monotonic()
        self._spent_s = self._ready_s = 0.0
        self._cost_s = 0.0
        """Seconds that the newest picture took."""
        self._steps = 0
        self._film: _Film | None = None
        self._spectator: Spectator | None = None
        self._last: int | None = None
        """Newest iteration whose film was made or left out."""

    def attach(self) -> None:
        """Film the env's steps from now on."""
        step = self._env.step

        def stepped(action: Any) -> Any:
            outcome = step(action)
            number, self._steps = self._steps, self._steps + 1
            if self._every:
                try:
                    self._after(number)
                except Exception as exc:
                    self._give_up(exc)
            return outcome

        self._env.step = stepped

    def _give_up(self, exc: Exception) -> None:
        """Stop filming: a film that fails must not end a training."""
        logger.warning("This training is not filmed any more. %s: %s", type(exc).__name__, exc)
        self._every, self._film = 0, None

    def _after(self, step: int) -> None:
        """Begin a film, or take a frame, if it is time."""
        film = self._film
        if film is None:
            iteration = self._iteration(step)
            if not iteration or iteration % self._every or iteration == self._last:
                return
            if self._spectator is None:
                self._prepare()  # the first picture is slow, since it compiles kernels
            else:
                self._last = iteration
                self._begin(iteration, step)
        elif (step - film.first) % film.stride == 0:
            self._frame(film, self._timed()[0])

    def _prepare(self) -> None:
        start_s = time.monotonic()
        # If the policy does not read a camera of the task, each of its pictures renders all envs.
        self._spectator = Spectator(self._env, range(min(ENVS, self._env.num_envs)), SIZE)
        self._picture()  # compiles kernels
        self._ready_s = time.monotonic() - start_s

    def _begin(self, iteration: int, step: int) -> None:
        """Begin a film, if its frames do not take too long."""
        picture = None
        if self._left_s() >= FEWEST * self._cost_s:  # otherwise even this picture would be too much
            picture, self._cost_s = self._timed()
        frames = min(int(LENGTH_S * FPS), 1 + int(self._left_s() / max(self._cost_s, 1e-6)))
        if picture is None or frames < FEWEST:
            logger.info("There is no film of iteration %d: it would take too much of the training's time.", iteration)
            return
        stride = max(1, round(LENGTH_S / frames / self._env.step_dt))
        path = self._path(iteration)
        file = Mp4(path.with_suffix(".part.mp4"), 1.0 / (stride * self._env.step_dt))
        self._film = _Film(path=path, file=file, first=step, stride=stride, remaining=frames)
        self._frame(self._film, picture)

    def _frame(self, film: _Film, picture: np.ndarray) -> None:
        start_s = time.monotonic()
        film.file.add(picture)
        film.remaining -= 1
        if not film.remaining or self._left_s() < 0.0:
            self._film = None
            film.close()
        self._spent_s += time.monotonic() - start_s

    def _left_s(self) -> float:
        """Return the seconds that films may still take."""
        return SHARE * (time.monotonic() - self._begin_s) - self._spent_s

    def _timed(self) -> tuple[np.ndarray, float]:
        """Return the current picture, and the seconds that it took."""
        rig.finish_gpu(self._env.device)  # the step's own work is no cost of the picture
        start_s = time.monotonic()
        picture = self._picture()
        cost_s = time.monotonic() - start_s
        self._spent_s += cost_s
        return picture, cost_s

    def _picture(self) -> np.ndarray:
        """Return the current picture of the first envs."""
        assert self._spectator is not None
        return tiled(self._spectator.picture())

    def close(self) -> None:
        """End the film that is under way, and log the time that all films took."""
        film, self._film, self._every = self._film, None, 0
        try:
            if film is not None:
                film.close()
        except Exception as exc:
            self._give_up(exc)
        logger.info("Films took %.2f s of %.2f s.", self.took_s, time.monotonic() - self._begin_s)

    @property
    def took_s(self) -> float:
        """Seconds that all films have taken, with their preparation."""
        return self._spent_s + self._ready_s


@dataclass(kw_only=True, slots=True)
class _Film:
    """A film that is being made."""

    path: Path
    """The film, once it is whole."""
    file: Mp4
    first: int
    """Env step of the first frame."""
    stride: int
    """Env steps from frame to frame."""
    remaining: int
    """Frames to take."""

    def close(self) -> None:
        """Write the remaining frames, and give the film its name."""
        self.file.close()
        part = self.path.with_suffix(".part.mp4")
        if part.exists():
            entries.rename(part, self.path.name)


# -- films of evaluations --------------------------------------------------------------------------------------------


FILM_FPS = 30.0
"""Target frame rate. A film plays in real time and has at most one frame per env step."""
LONGEST_S = 60.0


class Film:
    """Takes frames while a policy acts, and writes them as MP4.

    Args:
        path: The file, ``.mp4``.
        camera: Name of one of the task's cameras; None for the first, or for an added one if the task has none.
        size: Width and height of an added camera, in pixels.
    """

    def __init__(self, path: Path, camera: str | None, size: tuple[int, int] = (320, 240)) -> None:
        self.path = path
        self.plan = Plan([camera] if camera else None, ["rgb"], size)
        """Adds the camera to the env's config."""
        self._file = Mp4(path, FILM_FPS)
        self._steps = self._every = 0

    def begin(self, env: Any) -> None:
        """Set the camera up in an env that was just reset."""
        self.plan.begin(env)
        self._every = max(1, round(1.0 / (FILM_FPS * env.step_dt)))
        self._file.fps = 1.0 / (self._every * env.step_dt)
        self._limit = int(LONGEST_S / env.step_dt)
        self._camera = next(iter(self.plan.cameras))

    def take(self, env: Any) -> None:
        """Take a frame of the current state, if one is due."""
        if self._steps % self._every == 0 and self._steps < self._limit:
            self.plan.follow(env)
            self._file.add(tiled(self.plan.read(env, self._camera, "rgb")[:ENVS].cpu().numpy()))
        self._steps += 1

    @contextlib.contextmanager
    def whole(self) -> Iterator[None]:
        """End the film with the block. If the block fails, there is no film."""
        try:
            yield
            self._file.close()
        except BaseException:
            with contextlib.suppress(Exception):  # frames that the codec still holds
                self._file.close()
            entries.remove(self.path)
            raise
