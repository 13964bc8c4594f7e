"""Videos: written, and shown inline."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from users import as_root, given, link

from rlnb.display.links import FILES
from rlnb.records import video
from rlnb.records.video import Mp4, Video
from rlnb.reports import sections

GREYS = (0, 120, 240)


@pytest.fixture
def film(tmp_path: Path) -> Video:
    """Three grey pictures, from black to white."""
    pytest.importorskip("av")
    writer = Mp4(tmp_path / "made" / "<b>.mp4", fps=5)
    for grey in GREYS:
        writer.add(np.full((32, 48, 3), grey, np.uint8))
    writer.close()
    return Video(tmp_path / "made" / "<b>.mp4")


def test_a_video_of_odd_size_is_written_too(tmp_path: Path) -> None:
    av = pytest.importorskip("av")
    film = Mp4(tmp_path / "odd.mp4", fps=5)
    film.add(np.zeros((241, 321, 3), np.uint8))
    film.close()
    with av.open(str(tmp_path / "odd.mp4")) as read_back:
        assert (read_back.streams.video[0].height, read_back.streams.video[0].width) == (242, 322)


def test_a_video_plays_inline_unless_it_is_too_large(film: Video, monkeypatch: pytest.MonkeyPatch) -> None:
    assert '<video controls loop muted autoplay src="data:video/mp4;base64,' in film._repr_html_()
    monkeypatch.setattr(video, "INLINE_BYTES", 10)
    page = film._repr_html_()
    assert "too large to be shown inline" in page
    assert "<b>" not in page


def test_a_cell_shows_the_video_and_names_its_file(film: Video) -> None:
    data = film._repr_mimebundle_()
    assert data["text/html"] == film._repr_html_()
    assert data[FILES] == {"files": [{"path": str(film.path), "name": "<b>.mp4"}]}


def test_its_still_is_the_picture_in_its_middle(film: Video) -> None:
    still = film.still()
    assert still is not None
    assert still.size == (48, 32)
    assert np.asarray(still).mean() == pytest.approx(GREYS[1], abs=4)


def test_a_file_that_is_not_a_video_has_no_still(tmp_path: Path) -> None:
    (tmp_path / "odd.mp4").write_bytes(b"no film")
    assert Video(tmp_path / "odd.mp4").still() is None


@as_root
def test_anothers_link_instead_of_a_video_is_not_read(film: Video) -> None:
    path = film.path.with_name("linked.mp4")
    link(path, film.path)
    video = Video(path)
    assert video.still() is None
    assert "linked.mp4 is a link of the user" in video._repr_html_()
    assert sections._content(video, 1 << 30) is None
    given(path, 0)
    assert video.still() is not None, "a link of this user is followed"
    assert sections._content(video, 1 << 30) == film.path.read_bytes()


def test_a_pipe_or_a_playlist_is_no_video(film: Video) -> None:
    """A playlist names other files, such as videos of this user, whose pictures would be shown."""
    playlist, pipe = film.path.with_name("list.mp4"), film.path.with_name("pipe.mp4")
    film.path.rename(film.path.with_name("film.mp4"))
    playlist.write_text("ffconcat version 1.0\nfile film.mp4\n")
    os.mkfifo(pipe)
    assert Video(playlist).still() is None
    assert Video(pipe).still() is None
    assert "is not a regular file" in Video(pipe)._repr_html_()


def test_a_video_without_pictures_leaves_no_file(tmp_path: Path) -> None:
    pytest.importorskip("av")
    Mp4(tmp_path / "none.mp4", fps=5).close()
    assert not (tmp_path / "none.mp4").exists()


def test_the_name_of_a_film_that_is_gone_is_escaped() -> None:
    page = Video(Path("/runs/<script>.mp4"))._repr_html_()
    assert "&lt;script&gt;" in page
    assert "<script" not in page
