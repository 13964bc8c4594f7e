"""A run in one line, its bar, and the reasons for failures."""

import pytest

import rlnb
from rlnb.curves import progress


@pytest.fixture(scope="module")
def run(echo_root):
    return rlnb.train("Echo", library="echo", max_iterations=4).wait()


def test_the_length_of_a_bar_is_the_progress_and_its_name_is_escaped(run):
    page = progress.bar(run, name="<b>mine", colour="#0072B2")
    assert "<b>&lt;b&gt;mine</b> completed" in page
    assert "width:100%;background:#0072B2" in page
    assert f"<b>{run.id}</b>" in progress.bar(run)


def test_the_facts_are_the_progress_and_the_newest_values(run):
    facts = progress.facts(run)
    assert facts.startswith("iteration 4 of 4, reward ")
    assert "fps " in facts
    assert "cores" not in facts, "an ended run uses no resources"


def test_failures_have_the_error_and_the_end_of_the_log_of_failed_runs_only(run, echo_root):
    failed = rlnb.train("Echo", library="echo", agent={"crash_at": 2})
    with pytest.raises(rlnb.RunError):
        failed.wait()
    assert progress.failures([run]) == ""
    page = progress.failures([run, failed])
    assert page.count("<h2>") == 1
    assert "failed: " in page
    assert "echo crashes at iteration 2" in page.partition("<pre>")[2]


def test_progress_is_printed_in_lines_if_no_bar_can_be_drawn(root, monkeypatch, capsys):
    monkeypatch.setattr(progress, "SAY_S", 0.2)
    run = rlnb.train("Echo", library="echo", agent={"iteration_s": 0.1}, max_iterations=30)
    rlnb.watch(run)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) > 1
    assert all(line.startswith(f"{run.id} ") for line in lines)
    assert "iteration" in lines[-1]
