"""The public names of rlnb.backend, for editors and type checkers. ``rlnb/backend.py`` reads the list from here."""

from .contracts.libraries import Backend as Backend
from .contracts.libraries import Evaluating as Evaluating
from .contracts.libraries import Exporting as Exporting
from .contracts.libraries import Naming as Naming
from .contracts.libraries import Policy as Policy
from .contracts.libraries import TrainContext as TrainContext
from .spec import EvaluationResult as EvaluationResult
from .worker.jobs.checkpoints import RandomState as RandomState
from .worker.jobs.checkpoints import random_state as random_state
from .worker.jobs.checkpoints import read_tensors as read_tensors
from .worker.jobs.checkpoints import remove_older as remove_older
from .worker.jobs.checkpoints import restore_random_state as restore_random_state
from .worker.jobs.checkpoints import vet_checkpoint as vet_checkpoint
from .worker.jobs.checkpoints import write_tensors as write_tensors
from .worker.jobs.checkpoints import write_whole as write_whole
from .worker.jobs.export import export_module as export_module

__all__: list[str]
