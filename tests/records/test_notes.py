"""Notes and tags of a run, which any kernel may change."""

import os
import time
from pathlib import Path

import pytest

import rlnb
from rlnb.curves import figure
from rlnb.errors import RlnbError
from rlnb.records import notes

FAST = {"library": "echo", "max_iterations": 3}


@pytest.fixture
def run(root):
    return rlnb.train("Echo", **FAST).wait()


def ids(runs):
    return {run.id for run in runs}


def test_every_kernel_sees_added_and_removed_tags(run):
    run.tags.add("baseline")
    assert ids(rlnb.runs(tag="baseline")) == {run.id}
    other = rlnb.get_run(run.id)
    other.tags.remove("baseline")
    assert not rlnb.runs(tag="baseline")
    assert "baseline" not in run.tags
    with pytest.raises(KeyError):
        other.tags.remove("baseline")
    with pytest.raises(rlnb.RlnbError, match="is not a tag"):
        other.tags.add(" ")


def test_a_tag_given_at_the_start_can_be_removed(root):
    run = rlnb.train("Echo", **FAST, tags=["first"]).wait()
    run.tags.discard("first")
    assert not rlnb.runs(tag="first")
    assert run.manifest.tags == ("first",), "the manifest never changes"


def test_notes_are_added_and_shown_escaped(run):
    run.notes.add("<b>fell</b> over")
    shown = rlnb.get_run(run.id).notes
    assert [note.text for note in shown] == ["<b>fell</b> over"]
    assert "&lt;b&gt;fell" in shown._repr_html_()
    with pytest.raises(rlnb.RlnbError, match="Write at least one word"):
        shown.add("")


def test_files_of_another_format_are_skipped(run):
    folder = run.record.folder.notes
    folder.mkdir()
    (folder / "x.json").write_text('{"kind": "joke"}')
    assert len(run.notes) == 0


def test_a_note_that_would_not_be_read_again_is_refused(run):
    with pytest.raises(rlnb.RlnbError, match="would be larger than 1 MiB"):
        run.notes.add("x" * (1 << 20))
    assert not list((run.path / "notes").iterdir())


def test_of_very_many_entries_the_newest_are_read(run, monkeypatch, caplog):
    monkeypatch.setattr("rlnb.records.notes.MOST", 2)
    for number in range(3):
        run.notes.add(f"note {number}")
    assert [note.text for note in run.notes] == ["note 1", "note 2"]
    assert "has 3 entries. Only the newest 2 are read." in caplog.text


def test_a_note_that_could_not_be_read_for_a_moment_is_not_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes.write(tmp_path, "tag", "mine")
    ago = time.time() - 100
    os.utime(tmp_path, (ago, ago))

    def fail(*_: object) -> None:
        raise RlnbError("stale file handle")

    with monkeypatch.context() as patch:
        patch.setattr("rlnb.storage.files.read_json", fail)
        assert notes.read(tmp_path) == []
    assert [note.text for note in notes.read(tmp_path)] == ["mine"]
    with monkeypatch.context() as patch:
        patch.setattr("rlnb.storage.files.read_json", fail)
        assert [note.text for note in notes.read(tmp_path)] == ["mine"], "nothing has changed since"


# -- name ------------------------------------------------------------------------------------------------------------


def test_a_run_is_found_by_its_name_and_shown_by_it(root, monkeypatch):
    run = rlnb.train("Echo", **FAST, name="small steps").wait()
    assert (run.name, run.title, rlnb.get_run("small steps").id) == ("small steps", "small steps", run.id)
    rlnb.get_run(run.id).name = "tiny <b>steps</b>"
    other = rlnb.get_run("tiny <b>steps</b>")
    assert other.id == run.id
    assert other.manifest.name == "small steps", "the manifest never changes"
    assert rlnb.runs().table().loc[0, "name"] == "tiny <b>steps</b>"
    assert "tiny &lt;b&gt;steps" in rlnb.runs()._repr_html_()
    with pytest.raises(rlnb.NotFoundError):
        rlnb.get_run("small steps")
    other.name = ""
    assert other.title == run.id
    assert "<th style='text-align:left'>name</th>" not in rlnb.runs()._repr_html_()


@pytest.mark.parametrize(
    ("name", "words"), [(3, "is not text"), ("a\nb", "line breaks"), (" a", "spaces"), ("a" * 101, "101 characters")]
)
def test_a_name_that_does_not_fit_into_a_line_is_refused_before_anything_starts(run, name, words):
    with pytest.raises(rlnb.CheckError, match=words):
        rlnb.train("Echo", **FAST, name=name)
    with pytest.raises(rlnb.RlnbError, match=words):
        run.name = name
    assert len(rlnb.runs()) == 1


def test_the_error_for_a_name_of_several_runs_lists_them(root):
    runs = rlnb.train("Echo", **FAST, name="base", seed=[1, 2]).wait()
    with pytest.raises(rlnb.NotFoundError, match="'base' is the name of 2 runs"):
        rlnb.get_run("base")
    assert sorted(figure.labels(runs)) == ["base (seed 1)", "base (seed 2)"]
    runs[0].name = "first"
    assert sorted(figure.labels(runs)) == ["base", "first"]
    assert rlnb.train(like=runs[0], max_iterations=1).name == "", "a name is of one run"
