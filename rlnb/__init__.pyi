"""The public names of rlnb, for editors and type checkers. ``rlnb/__init__.py`` reads the list from here."""

import collections.abc
import typing

import rlnb.contracts.launchers as _launchers
import rlnb.launch.injected as _injected
import rlnb.launch.local as _local

from . import backend as backend
from . import launchers as launchers
from . import plugin as plugin
from . import results as results
from . import studies as studies
from .cameras.budget import camera_budget as camera_budget
from .cameras.preview import preview as preview
from .cameras.viewer import view as view
from .curves.live import watch as watch
from .errors import CheckError as CheckError
from .errors import NotFoundError as NotFoundError
from .errors import RlnbError as RlnbError
from .errors import RunError as RunError
from .errors import WorkerError as WorkerError
from .hooks.plugins import libraries as libraries
from .hooks.registry import register as register
from .interactive.debugger import debug as debug
from .interactive.simulator import simulator as simulator
from .interactive.tuner import tune as tune
from .notebook.define import define as define
from .reports.report import report as report
from .run.listing import Runs as Runs
from .run.run import Run as Run
from .run.selection import get_run as get_run
from .run.selection import runs as runs
from .run.train import check as check
from .run.train import train as train
from .settings import options as options
from .studies.groups import compare as compare
from .studies.sweep import sweep as sweep
from .tasks.task import Task as Task
from .tasks.task import task as task
from .version import __version__ as __version__

__all__: list[str]

def _lazy_names(
    module: str, file: str
) -> tuple[collections.abc.Callable[[str], typing.Any], collections.abc.Callable[[], list[str]], list[str]]: ...
def _every_name() -> set[str]: ...
def load_ipython_extension(ipython: typing.Any) -> None: ...

# The launchers of rlnb itself. __getattr__ covers the launchers of plugins.
local = _local.LocalLauncher
injected = _injected.InjectedLauncher

def __getattr__(name: str) -> collections.abc.Callable[..., _launchers.Launcher]: ...
