"""The descriptions of launchers, asset packs and panels, which plugins register."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueTable:
    """A command that prints the jobs or the nodes of a launcher's queue."""

    title: str
    """Heading of the table, e.g. ``"jobs"``."""
    argv: tuple[str, ...]
    """Program and arguments."""
    columns: tuple[str, ...] = ()
    """Headings of the columns. The command separates the fields of a line with ``|``. Empty shows each line whole."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LauncherType:
    """A launcher, described without importing its module."""

    name: str
    """Name of the launcher, which ``rlnb.<name>(...)`` makes."""
    factory: str
    """``"module:attr"`` of a callable that returns a :class:`rlnb.launchers.Launcher`."""
    tables: tuple[QueueTable, ...] = ()
    """Tables of the launcher's queue. The panel in JupyterLab shows each table whose command is installed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AssetPack:
    """Robot and scene files that can be built on this machine, without a download."""

    name: str
    """Name of the pack's folder."""
    version: str
    """Version of the files. Change it whenever the built files change."""
    build: str
    """``"module:function"``, called in the worker as ``function(folder)``. It writes the files and returns a source for
    each."""
    files: Mapping[str, str]
    """SPDX licence of each file, by path below the asset root."""
    on_request: bool = False
    """Whether only ``rlnb assets build --robots`` builds the pack, because it takes long or needs further packages."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Panel:
    """One figure of a dashboard."""

    title: str
    """Heading of the figure."""
    figure: Callable[[], Any]
    """Function that returns a ``plotly.graph_objects.Figure``. It is called when the panel is shown."""
