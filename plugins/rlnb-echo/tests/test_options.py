"""The agent options of echo, read from an agent config."""

from rlnb_echo.options import Options


def test_an_agent_config_sets_the_options_it_names() -> None:
    assert Options.of({"crash_at": 3, "iteration_s": 0.5}) == Options(crash_at=3, iteration_s=0.5)


def test_values_for_other_libraries_are_ignored() -> None:
    assert Options.of({"algorithm.learning_rate": 1e-3}) == Options()
