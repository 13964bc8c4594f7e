"""The public names of rlnb.backend, for editors and type checkers. ``rlnb/backend.py`` reads the list from here."""

from .contracts import Backend as Backend
from .contracts import Exporting as Exporting
from .contracts import Policy as Policy
from .contracts import TrainContext as TrainContext
from .worker.jobs.checkpoints import RandomState as RandomState
from .worker.jobs.checkpoints import random_state as random_state
from .worker.jobs.checkpoints import restore_random_state as restore_random_state
from .worker.jobs.checkpoints import vet_checkpoint as vet_checkpoint
from .worker.jobs.checkpoints import write_whole as write_whole
from .worker.jobs.export import export_module as export_module
from .worker.jobs.tensors import read_tensors as read_tensors
from .worker.jobs.tensors import write_tensors as write_tensors

__all__: list[str]
