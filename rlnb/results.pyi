"""The public names of rlnb.results, for editors and type checkers. ``rlnb/results.py`` reads the list from here."""

from .accounting.goodput import Goodput as Goodput
from .cameras.budget import CameraBudget as CameraBudget
from .cameras.frames import Finding as Finding
from .cameras.live import CameraFeed as CameraFeed
from .cameras.preview import Preview as Preview
from .cameras.viewer import Viewer as Viewer
from .configs.card import TaskCard as TaskCard
from .curves.tensorboard import TensorBoard as TensorBoard
from .diagnosis.diagnosis import Diagnosis as Diagnosis
from .diagnosis.symptoms import Symptom as Symptom
from .display.live_pictures import LiveView as LiveView
from .interactive.debugger import Debugger as Debugger
from .interactive.debugger import EnvStep as EnvStep
from .interactive.debugger import Stop as Stop
from .interactive.replay import Replay as Replay
from .interactive.simulator import Simulator as Simulator
from .interactive.tuner import Tuner as Tuner
from .metrics.metrics import Metrics as Metrics
from .records.checkpoints import Checkpoints as Checkpoints
from .records.evaluation import Evaluation as Evaluation
from .records.flight import Flight as Flight
from .records.incidents import Alert as Alert
from .records.incidents import Restart as Restart
from .records.incidents import Shortage as Shortage
from .records.incidents import Waits as Waits
from .records.notes import Notes as Notes
from .records.notes import Tags as Tags
from .records.progress import Progress as Progress
from .records.record import JobRecord as JobRecord
from .records.source_diff import SourceDiff as SourceDiff
from .records.summary import RunSummary as RunSummary
from .records.video import Video as Video
from .run.listing import Archiving as Archiving
from .run.pruning import Pruning as Pruning
from .spec import Manifest as Manifest
from .spec import Result as Result
from .spec import Started as Started
from .studies.groups import Groups as Groups
from .studies.libraries import Comparison as Comparison
from .studies.scaling import ScalingStudy as ScalingStudy
from .studies.sweep import Sweep as Sweep
from .studies.verify import Determinism as Determinism
from .studies.verify import Synchronisation as Synchronisation
from .tasks.agent import AgentConfig as AgentConfig

__all__: list[str]
