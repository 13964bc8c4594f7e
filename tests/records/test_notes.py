"""Notes and tags of a run, which any kernel may change."""

import pytest

import rlnb

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
