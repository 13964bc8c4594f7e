"""The queries of a queue, and the words for the end of a job."""

from __future__ import annotations

import pytest
from rlnb_dask.queues import queries


def test_a_command_that_fails_is_no_answer() -> None:
    assert queries.ask(["echo", "7 r"]) == "7 r\n"
    assert queries.ask(["false"]) is None
    assert queries.ask(["/nowhere/qstat"]) is None


def test_a_name_in_another_encoding_is_no_error() -> None:
    """A queue may show the jobs and the comments of others."""
    assert queries.ask(["printf", r"7 r M\374ller\n"]) == "7 r M\N{REPLACEMENT CHARACTER}ller\n"


def test_a_job_that_the_queue_no_longer_knows_is_an_answer() -> None:
    argv = ["sh", "-c", "echo '8 r'; echo 'Unknown Job Id 7' >&2; exit 153"]
    assert queries.ask(argv, unless=("Unknown Job Id",)) == "8 r\n"
    assert queries.ask(argv, unless=("not found",)) is None


@pytest.mark.parametrize(
    ("state", "text", "by_itself"),
    [
        (queries.done(0), "done (exit status 0)", False),
        (queries.done(127), "done (exit status 127)", True),
        (queries.done(137), "killed (SIGKILL)", False),
        (queries.done(250), "killed (signal 122)", False),
        (queries.stuck("no folder"), "stuck in the queue (no folder)", True),
        (queries.LEFT, "no longer in the queue", False),
    ],
)
def test_the_state_of_an_ended_job_tells_whether_another_would_fail_too(state: str, text: str, by_itself: bool) -> None:
    assert (state, queries.by_itself(state)) == (text, by_itself)
