"""Echo keeps the contract of a library without a simulator."""

from rlnb.testing import NoSimulatorConformance


class TestEcho(NoSimulatorConformance):
    library = "echo"
    task = "Echo"
    agent = {"iteration_s": 0.02}
    resume_iterations = 300
