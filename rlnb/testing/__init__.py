"""The conformance kit: what rlnb asks of a plugin, as tests that its author runs with pytest.

A library's are :class:`LibraryConformance`, a launcher's :class:`LauncherConformance`. Needs ``pytest``.
"""

from rlnb.testing.launchers import LauncherConformance
from rlnb.testing.libraries import LibraryConformance, run_export

__all__ = ["LauncherConformance", "LibraryConformance", "run_export"]
