"""The public names of rlnb, for editors and type checkers. ``rlnb/__init__.py`` reads the list from here."""

import collections.abc
import typing

import rlnb.launch.injected as _injected

from .accounting.goodput import Goodput as Goodput
from .accounting.goodput import goodput as goodput
from .cameras.budget import CameraBudget as CameraBudget
from .cameras.budget import camera_budget as camera_budget
from .cameras.frames import Finding as Finding
from .cameras.preview import Preview as Preview
from .cameras.preview import preview as preview
from .cameras.viewer import Viewer as Viewer
from .cameras.viewer import view as view
from .contracts.launchers import ArrayLauncher as ArrayLauncher
from .contracts.launchers import Launcher as Launcher
from .contracts.libraries import Input as Input
from .contracts.libraries import Library as Library
from .contracts.libraries import Role as Role
from .contracts.libraries import Space as Space
from .contracts.plugin_types import AssetPack as AssetPack
from .contracts.plugin_types import LauncherType as LauncherType
from .contracts.plugin_types import Panel as Panel
from .contracts.plugin_types import QueueTable as QueueTable
from .curves.live import watch as watch
from .curves.tensorboard import TensorBoard as TensorBoard
from .curves.tensorboard import tensorboard as tensorboard
from .diagnosis.diagnosis import Diagnosis as Diagnosis
from .diagnosis.symptoms import Symptom as Symptom
from .errors import CheckError as CheckError
from .errors import NotFoundError as NotFoundError
from .errors import Problem as Problem
from .errors import RlnbError as RlnbError
from .errors import RunError as RunError
from .errors import WorkerError as WorkerError
from .hooks.hookspecs import hookimpl as hookimpl
from .hooks.plugins import libraries as libraries
from .hooks.plugins import make_launcher as make_launcher
from .hooks.registry import register as register
from .interactive.debugger import Debugger as Debugger
from .interactive.debugger import EnvStep as EnvStep
from .interactive.debugger import Stop as Stop
from .interactive.debugger import debug as debug
from .interactive.replay import Replay as Replay
from .interactive.replay import replay as replay
from .interactive.simulator import Simulator as Simulator
from .interactive.simulator import simulator as simulator
from .interactive.tuner import Tuner as Tuner
from .interactive.tuner import tune as tune
from .jobs.detached_job import HostedJob as HostedJob
from .launch.detached import HostedLauncher as HostedLauncher
from .launch.local import LocalLauncher as LocalLauncher
from .machine.gpus import GpuFacts as GpuFacts
from .machine.gpus import gpu_facts as gpu_facts
from .manifests.render import render as render
from .mirror.launcher import RemoteLauncher as RemoteLauncher
from .notebook.define import define as define
from .records.evaluation import Evaluation as Evaluation
from .records.flight import Flight as Flight
from .records.incidents import Alert as Alert
from .reports.report import report as report
from .run.catalog import Catalog as Catalog
from .run.listing import Runs as Runs
from .run.run import Run as Run
from .run.selection import get_run as get_run
from .run.selection import runs as runs
from .run.train import check as check
from .run.train import train as train
from .settings import options as options
from .spec import ENDED as ENDED
from .spec import Command as Command
from .spec import Manifest as Manifest
from .spec import Resources as Resources
from .spec import Result as Result
from .studies.groups import Groups as Groups
from .studies.groups import compare as compare
from .studies.libraries import Comparison as Comparison
from .studies.libraries import compare_libraries as compare_libraries
from .studies.scaling import ScalingStudy as ScalingStudy
from .studies.scaling import scaling_study as scaling_study
from .studies.sweep import Sweep as Sweep
from .studies.sweep import get_sweep as get_sweep
from .studies.sweep import sweep as sweep
from .studies.verify import verify_determinism as verify_determinism
from .studies.verify import verify_sync as verify_sync
from .tasks.agent import AgentConfig as AgentConfig
from .tasks.task import Task as Task
from .tasks.task import agent as agent
from .tasks.task import task as task
from .tasks.task import task_card as task_card
from .version import __version__ as __version__

__all__: list[str]

def load_ipython_extension(ipython: typing.Any) -> None: ...

# The launchers of rlnb itself. __getattr__ covers the launchers of plugins.
local = LocalLauncher
injected = _injected.InjectedLauncher

def __getattr__(name: str) -> collections.abc.Callable[..., Launcher]: ...
