"""The public names of rlnb.launchers, for editors and type checkers. ``rlnb/launchers.py`` reads the list from here."""

from .contracts.launchers import ArrayLauncher as ArrayLauncher
from .contracts.launchers import Launcher as Launcher
from .contracts.plugin_types import LauncherType as LauncherType
from .contracts.plugin_types import QueueTable as QueueTable
from .hooks.plugins import make_launcher as make_launcher
from .jobs.detached_job import DetachedJob as DetachedJob
from .launch.detached import DetachedLauncher as DetachedLauncher
from .launch.local import LocalLauncher as LocalLauncher
from .mirror.launcher import RemoteLauncher as RemoteLauncher
from .run.index import RunIndex as RunIndex
from .spec import Resources as Resources

__all__: list[str]
