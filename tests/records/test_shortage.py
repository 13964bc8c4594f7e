"""Tests of rlnb.records.incidents."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlnb.records.incidents import Shortage, read_shortages, write_shortage

CONSTRAINTS = Shortage(limit="njmax", size=300, needed=412, envs=3, num_envs=64)
CONTACTS = Shortage(limit="nconmax", size=20, needed=25, envs=64, num_envs=64)


def test_the_needs_of_all_ranks_are_joined(tmp_path: Path) -> None:
    paths = [tmp_path / "shortages0.json", tmp_path / "shortages1.json"]
    assert read_shortages(paths) == ()
    write_shortage(paths[0], [CONSTRAINTS])
    write_shortage(paths[0], [CONSTRAINTS, CONTACTS])
    write_shortage(paths[1], [Shortage(limit="njmax", size=300, needed=500, envs=2, num_envs=64)])
    assert read_shortages(paths) == (Shortage(limit="njmax", size=300, needed=500, envs=3, num_envs=64), CONTACTS)
    assert sorted(tmp_path.iterdir()) == paths, "no part is left"


@pytest.mark.parametrize("text", ["[]", "{", '{"njmax": 3}', '{"njmax": {"limit": "njmax"}}'])
def test_a_damaged_record_is_skipped(text: str, tmp_path: Path) -> None:
    write_shortage(tmp_path / "1.json", [CONTACTS])
    (tmp_path / "0.json").write_text(text)
    assert read_shortages([tmp_path / "0.json", tmp_path / "1.json"]) == (CONTACTS,)


def test_the_texts_have_the_numbers_and_a_size_with_some_room() -> None:
    assert CONSTRAINTS.what == (
        "The physics solver dropped constraints in 3 of 64 envs, because an env needed at least 412 and njmax is "
        "300. Bodies can pass through each other."
    )
    assert CONSTRAINTS.fix == 'Use overrides={"sim.physics.solver_cfg.njmax": 576}, or set it in the task.'
    assert CONTACTS.what == (
        "The physics solver dropped contacts. All envs share a buffer of nconmax=20 for each env, and the mean need of "
        "an env was at least 25. Bodies can pass through each other."
    )
