"""The conformance kit: the requirements on a plugin, as tests that its author runs with pytest.

:class:`LibraryConformance` tests an RL library that trains Isaac Lab envs, :class:`NoSimulatorConformance` an RL
library without a simulator, :class:`LauncherConformance` a launcher, and :class:`TrackerConformance` an experiment
tracker. The kit needs ``pytest``.
"""

from rlnb.testing.exports import run_export
from rlnb.testing.launchers import LauncherConformance
from rlnb.testing.libraries import LibraryConformance
from rlnb.testing.no_simulator import NoSimulatorConformance
from rlnb.testing.trackers import TrackerConformance

__all__ = ["LauncherConformance", "LibraryConformance", "NoSimulatorConformance", "TrackerConformance", "run_export"]
