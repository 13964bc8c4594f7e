"""A film of a policy, shown inline."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path

INLINE_BYTES = 20 * 2**20
"""Up to which size a film becomes part of the notebook."""


@dataclass(frozen=True, slots=True)
class Video:
    """An MP4 file; in a notebook it plays, without JavaScript and without a server."""

    path: Path
    """The file."""

    def __repr__(self) -> str:
        return f"Video({str(self.path)!r}, {self.path.stat().st_size / 2**20:.1f} MiB)"

    def _repr_html_(self) -> str:
        import html

        if self.path.stat().st_size > INLINE_BYTES:
            return f"<p>{html.escape(str(self))}: too large to be shown inline.</p>"
        data = base64.b64encode(self.path.read_bytes()).decode()
        return f'<video controls loop muted autoplay src="data:video/mp4;base64,{data}"></video>'
