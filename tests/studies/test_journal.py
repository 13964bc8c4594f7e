"""The journal of a sweep."""

import dataclasses

import pytest

import rlnb
from rlnb.studies.journal import Subject, common, hold, storage

optuna = pytest.importorskip("optuna")

SUBJECT = Subject(
    task="Echo", library="echo", metric="reward", direction="maximize", space="agent.goal: [0, 1]", arguments="{}"
)


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "one.journal"
    return optuna.create_study(study_name="one", storage=storage(path), direction="maximize")


def test_a_study_keeps_its_subject_and_refuses_another(study, tmp_path):
    SUBJECT.write(study)
    again = optuna.load_study(study_name="one", storage=storage(tmp_path / "one.journal"))
    assert again.user_attrs == dataclasses.asdict(SUBJECT)
    SUBJECT.write(again)
    with pytest.raises(rlnb.RlnbError, match="'one' has library='echo', not 'rsl_rl'"):
        dataclasses.replace(SUBJECT, library="rsl_rl").write(again)


def test_another_direction_than_that_of_the_study_is_refused(study):
    with pytest.raises(rlnb.RlnbError, match="has direction='maximize', not 'minimize'"):
        dataclasses.replace(SUBJECT, direction="minimize").write(study)


def test_one_process_at_a_time_drives_a_sweep(tmp_path):
    lock = hold(tmp_path / "one.lock", "one")
    with pytest.raises(rlnb.RlnbError, match=r"Another kernel drives 'one'\. Read its trials with rlnb\.get_sweep"):
        hold(tmp_path / "one.lock", "one")
    lock.close()
    hold(tmp_path / "one.lock", "one").close()


def test_the_common_arguments_leave_out_those_without_an_effect_on_results():
    task = rlnb.Task(id="Echo", num_envs=4)
    text = common(task, max_iterations=20, tags=["mine"], launcher=rlnb.LocalLauncher(), agent=None)
    assert text == '{"max_iterations": 20, "num_envs": 4}'


def test_the_common_arguments_name_the_inputs(root):
    run = rlnb.train("Echo", library="echo", max_iterations=1).wait(60)
    text = common(rlnb.Task(id="Echo"), inputs={"teacher": run, "demos": "a/demos.npz"})
    assert text == f'{{"inputs": {{"demos": "a/demos.npz", "teacher": "{run.id}"}}}}'
