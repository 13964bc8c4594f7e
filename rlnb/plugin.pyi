"""The public names of rlnb.plugin, for editors and type checkers. ``rlnb/plugin.py`` reads the list from here."""

from .contracts.libraries import Input as Input
from .contracts.libraries import Library as Library
from .contracts.libraries import Role as Role
from .contracts.libraries import Space as Space
from .contracts.plugin_types import AssetPack as AssetPack
from .contracts.plugin_types import Panel as Panel
from .errors import Problem as Problem
from .hooks.hookspecs import hookimpl as hookimpl
from .machine.gpus import GpuFacts as GpuFacts
from .machine.gpus import gpu_facts as gpu_facts
from .spec import ENDED as ENDED
from .spec import Command as Command
from .spec import Manifest as Manifest
from .spec import Result as Result
from .training.arguments import TRAIN_ARGUMENTS as TRAIN_ARGUMENTS
from .training.arguments import Argument as Argument
from .training.arguments import recorded_arguments as recorded_arguments

__all__: list[str]
