"""Videos: writing them, and showing them in a notebook."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlnb.display.links import linked
from rlnb.errors import RlnbError
from rlnb.storage import files

if TYPE_CHECKING:
    import numpy as np
    from PIL import Image

    from rlnb.spec import Json

INLINE_BYTES = 20 * 2**20
"""Maximum size of a video that is embedded in the notebook."""


@dataclass(frozen=True, slots=True)
class Video:
    """An MP4 file. A notebook plays it without JavaScript and without a server."""

    path: Path
    """Path of the file."""

    def still(self) -> Image.Image | None:
        """Return the frame in the middle; None if PyAV is not installed or the video cannot be read.

        A file of another format, such as a playlist, is not read: it could name other files.
        """
        try:
            import av
        except ImportError:
            return None
        still = None
        try:
            with files.open_regular(self.path) as file, av.open(file, "r", format="mp4") as film:
                middle = film.streams.video[0].frames // 2
                for number, frame in enumerate(film.decode(video=0)):
                    still = frame if number <= middle else still
                    if number >= middle:
                        break
        except (OSError, RlnbError, av.FFmpegError):
            return None
        return still.to_image() if still is not None else None

    def __repr__(self) -> str:
        return f"Video({str(self.path)!r}, {self.path.stat().st_size / 2**20:.1f} MiB)"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Json]:
        return linked({self.path.name: self.path}, {"text/html": self._repr_html_(), "text/plain": str(self.path)})

    def _repr_html_(self) -> str:
        import html

        try:
            content = read(self.path, INLINE_BYTES)
        except (OSError, RlnbError) as exc:  # of another user, in whose run there may be anything
            return f"<p>{html.escape(str(exc))}</p>"
        if content is None:
            return f"<p>{html.escape(str(self))}: too large to be shown inline.</p>"
        data = base64.b64encode(content).decode()
        return f'<video controls loop muted autoplay src="data:video/mp4;base64,{data}"></video>'


def read(path: Path, most_bytes: int) -> bytes | None:
    """Return the content of a video; None if it is larger than a number of bytes.

    Raises:
        RlnbError: The path is not a regular file, or leads through a link that another user has made.
        OSError: The file does not exist, or cannot be read.
    """
    with files.open_regular(path) as file:
        content = file.read(most_bytes + 1)
    return content if len(content) <= most_bytes else None


class Mp4:
    """A writer of H.264 videos, which browsers can play.

    Args:
        path: Path of the file.
        fps: Frames per second, fixed once the first picture is added.

    Raises:
        RlnbError: PyAV (https://pyav.basswood-io.com) is not installed.
    """

    def __init__(self, path: Path, fps: float) -> None:
        try:
            import av
        except ImportError as exc:
            raise RlnbError("Films are written by PyAV, which this interpreter lacks: pip install av") from exc
        self._av, self._path = av, path
        self.fps = fps
        self._container: Any = None
        self._stream: Any = None

    def add(self, picture: np.ndarray) -> None:
        """Add a picture, padded to even sizes for the codec. Shape (height, width, 3), uint8."""
        import numpy as np

        height, width, _ = picture.shape
        picture = np.pad(picture, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
        if self._container is None:
            files.make_folder(self._path.absolute().parent)
            files.make_file(self._path)  # which PyAV overwrites
            self._container = self._av.open(str(self._path), "w", format="mp4")
            self._stream = self._container.add_stream("libx264", rate=Fraction(self.fps).limit_denominator(1000))
            self._stream.height, self._stream.width = picture.shape[:2]
            self._stream.pix_fmt = "yuv420p"
        frame = self._av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
        self._container.mux(self._stream.encode(frame))

    def close(self) -> None:
        """Write the remaining frames and close the file."""
        if self._container is not None:
            self._container.mux(self._stream.encode())
            self._container.close()
