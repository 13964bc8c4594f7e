"""The conformance kit: the requirements on a plugin, as tests that its author runs with pytest.

:class:`LibraryConformance` tests an RL library, :class:`LauncherConformance` a launcher. The kit needs ``pytest``.
"""

from rlnb.testing.files import run_export
from rlnb.testing.launchers import LauncherConformance
from rlnb.testing.libraries import LibraryConformance

__all__ = ["LauncherConformance", "LibraryConformance", "run_export"]
