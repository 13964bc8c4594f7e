"""Paths of files that leave the notebook. A cell shows them as text, and in JupyterLab with links to open or download.

The links come from rlnb's JupyterLab extension (``ts/lab/links.ts``): only the server knows which files it serves, and
at which address. Every other front end, and a page without the extension, shows the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlnb.display import front_end
from rlnb.display.table import table

if TYPE_CHECKING:
    from pathlib import PosixPath as _Path

    from rlnb.spec import Json
else:
    _Path = type(Path())  # before Python 3.12, Path itself cannot be a base

FILES = "application/vnd.rlnb.files+json"
"""Mime type of a list of files. The extension shows the rest of the bundle, and below it a link to each file."""


class LinkedPath(_Path):
    """A path that a cell shows with links to its file. Paths that are made from it have them too."""

    def __repr__(self) -> str:
        return repr(Path(self))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Json]:
        return linked({self.name: self}, {"text/plain": str(self)})


class LinkedPaths(dict[str, Path]):
    """Paths by format, which a cell shows with links to their files."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        super().__init__({name: LinkedPath(path) for name, path in paths.items()})

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Json]:
        return linked(self, {"text/html": self._repr_html_(), "text/plain": repr(self)})

    def _repr_html_(self) -> str:
        return table(["format", "file"], [(name, str(path)) for name, path in self.items()])


def linked(files: Mapping[str, Path], bundle: Mapping[str, Json]) -> dict[str, Json]:
    """Return a mime bundle with links to the files that exist.

    Args:
        files: The files, by the names that the links show.
        bundle: What is shown above the links, and alone where there are none.
    """
    found = [{"path": str(path.absolute()), "name": name} for name, path in files.items() if path.is_file()]
    if not found or front_end.in_marimo():  # marimo shows each type of a bundle in a tab
        return dict(bundle)
    return {**bundle, FILES: {"files": found}}
