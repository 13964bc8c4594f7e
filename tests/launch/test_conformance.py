"""The launchers that rlnb itself brings keep what it asks of a plugin's."""

from rlnb.testing import LauncherConformance


class TestLocal(LauncherConformance):
    launcher = "local"
    one_at_a_time = {"max_running": 1}
    cut_short = {"walltime_s": 1.0}
