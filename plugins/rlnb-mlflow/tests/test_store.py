"""Where the local store is, and whose files MLflow's process opens in a folder of runs that several users share."""

from __future__ import annotations

from pathlib import Path

from rlnb_mlflow import store
from users import ANN, EVE, as_root, as_user, given, link, shared_root

START = """
from pathlib import Path
from rlnb_mlflow import store
with store.alone(Path("runs")):
    print(store.tracking_uri(Path("runs")).rpartition("rlnb-runs/")[2])
"""


def test_the_store_is_in_a_folder_of_runs_that_is_not_shared(root: Path) -> None:
    runs = root / "runs"
    runs.mkdir(parents=True)
    with store.alone(runs):
        assert store.tracking_uri(runs) == f"sqlite:///{runs}/mlflow.db"
    runs.chmod(0o2775)
    assert store.folder(runs) == runs, "the members of a team share one store"


@as_root
def test_users_of_a_shared_folder_have_a_store_each() -> None:
    with shared_root() as shared:
        for user in (ANN, EVE, ANN):
            assert as_user(user, START, shared).strip() == f"runs/.mlflow-{user}/mlflow.db"


@as_root
def test_a_link_of_another_user_reaches_no_file_of_this_one() -> None:
    with shared_root() as shared:
        profile = shared.parent / "ann" / ".profile"
        profile.write_text("mine")
        given(profile, ANN)
        for name in (".mlflow.lock", "mlflow.db", "mlflow.db-journal"):
            link(shared / "runs" / name, profile)
        assert as_user(ANN, START, shared).strip() == f"runs/.mlflow-{ANN}/mlflow.db"
        assert profile.read_text() == "mine"


@as_root
def test_a_store_that_another_user_has_made_or_linked_is_refused() -> None:
    with shared_root() as shared:
        home, taken = shared.parent / "ann", shared / "runs" / f".mlflow-{ANN}"
        link(taken, home)
        assert f"{taken.name} is not a folder of yours. Set MLFLOW_TRACKING_URI to a store" in as_user(
            ANN, START, shared
        )
        taken.unlink()
        given(taken, EVE).chmod(0o777)
        assert f"{taken.name} belongs to the user {EVE}. Set MLFLOW_TRACKING_URI" in as_user(ANN, START, shared)
        assert not [*home.iterdir(), *taken.iterdir()]


@as_root
def test_a_lock_of_another_member_of_a_team_stops_nobody() -> None:
    with shared_root() as shared:
        runs = shared / "runs"
        runs.chmod(0o777)
        for user in (ANN, EVE):
            assert as_user(user, START, shared).strip() == "runs/mlflow.db"
        (runs / ".mlflow.lock").unlink()
        link(runs / ".mlflow.lock", shared.parent / "ann" / "new")
        assert ".mlflow.lock cannot be locked" in as_user(ANN, START, shared)
        assert not (shared.parent / "ann" / "new").exists()
