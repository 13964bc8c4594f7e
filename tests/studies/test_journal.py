"""The journal of a sweep."""

import dataclasses
import os

import pytest
from users import ANN, EVE, as_root, as_user, given, link, shared_root

import rlnb
from rlnb.launchers import LocalLauncher
from rlnb.studies.trials import SearchDescription, common, hold, storage

optuna = pytest.importorskip("optuna")

SUBJECT = SearchDescription(
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
    with pytest.raises(
        rlnb.RlnbError, match=r"Another kernel drives 'one'\. Read its trials with rlnb\.studies\.get_sweep"
    ):
        hold(tmp_path / "one.lock", "one")
    lock.close()
    hold(tmp_path / "one.lock", "one").close()


def test_the_common_arguments_leave_out_those_without_an_effect_on_results():
    task = rlnb.Task(id="Echo", num_envs=4)
    text = common(task, max_iterations=20, tags=["mine"], launcher=LocalLauncher(), agent=None)
    assert text == '{"max_iterations": 20, "num_envs": 4}'


def test_the_common_arguments_name_the_inputs(root):
    run = rlnb.train("Echo", library="echo", max_iterations=1).wait(60)
    text = common(rlnb.Task(id="Echo"), inputs={"teacher": run, "demos": "a/demos.npz"})
    assert text == f'{{"inputs": {{"demos": "a/demos.npz", "teacher": "{run.id}"}}}}'


IMPORTS = """
import optuna, optuna.storages.journal, pandas, rlnb.studies.sweep, rlnb.launch.local
study = optuna.create_study()
study.sampler, study.pruner
study.trials_dataframe()
"""
USE = """
from rlnb.studies import sweep, trials
from rlnb.studies.trials import Search, runs_of
folder = rlnb.options.folders.sweeps
what = {"task": "Echo", "library": "echo", "metric": "reward", "direction": "maximize", "space": "", "arguments": "{}"}
described = trials.SearchDescription(**what)
search = Search(space={}, n_trials=0, at_once=1, metric="reward", objective=None, start=print, start_array=None)
def drive(name):
    return sweep._begin(name, folder / f"{name}.journal", described, search, sampler=None, pruner=None)
for use, name in CASES:
    try:
        found = drive(name) if use == "drive" else rlnb.studies.get_sweep(name)
        print(use, name, found.study.user_attrs["task"], [run.id for run in found.runs])
    except rlnb.RlnbError as exc:
        print(use, name, exc)
"""


@pytest.fixture
def shared(root, monkeypatch):
    with shared_root() as folder:
        monkeypatch.setattr(rlnb.options, "root", folder)
        yield folder


def used(user, shared, *cases):
    """Use sweeps as a user, and return what is printed for each."""
    printed = as_user(user, f"CASES = {cases!r}\n{USE}", shared, before=IMPORTS).splitlines()
    return {case: next((line for line in printed if line.startswith(" ".join(case))), printed[-9:]) for case in cases}


@as_root
@pytest.mark.slow  # imports Optuna for each of two users
def test_a_sweep_goes_nowhere_through_a_file_or_a_link_of_another_user(shared):
    home, theirs = shared.parent / "ann", {}
    (home / "notes").write_text("mine")
    given(home, ANN)
    for suffix in ("journal", "lock", "journal.lock"):
        for kind in ("notes", "new", "file"):
            file = shared / "sweeps" / f"{kind}-{len(theirs)}.{suffix}"
            theirs[file.name.partition(".")[0]] = file
            if kind == "file":
                file.touch()
                given(file, EVE)
            else:
                link(file, home / kind)
    runs = [rlnb.train("Echo", library="echo", max_iterations=1, tags=["sweep:free", f"trial:{n}"]) for n in (0, 1)]
    for run, owner in zip(runs, (EVE, ANN), strict=True):
        given(run.wait(60).path, owner)
    link(shared / "sweeps" / "linked.journal", home / "notes")
    printed = used(ANN, shared, ("read", "linked"), ("drive", "free"), *(("drive", name) for name in theirs))
    for name, file in theirs.items():
        what = f"drive {name} The sweep {name!r} is the user {EVE}'s: {file} belongs to that user. Use another name."
        assert printed["drive", name] == what
    assert "is a link of the user" in printed["read", "linked"]
    assert printed["drive", "free"] == f"drive free Echo {[runs[1].id]}", "the run of another user is no trial"
    assert [path.name for path in home.iterdir()] == ["notes"]
    assert (home / "notes").read_text() == "mine"
    assert used(EVE, shared, ("read", "free"))["read", "free"].startswith("read free Echo"), "others can read a sweep"


def test_a_pipe_is_no_journal(tmp_path):
    os.mkfifo(tmp_path / "one.journal")
    with pytest.raises(rlnb.RlnbError, match="is not a regular file"):
        storage(tmp_path / "one.journal")
