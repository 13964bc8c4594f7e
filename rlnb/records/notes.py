"""Notes, tags, the name and the archived flag of a run. Every change adds a file; no file is ever modified."""

from __future__ import annotations

import getpass
import html
import secrets
import time
from collections.abc import Iterable, Iterator, MutableSet, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from rlnb.errors import RlnbError
from rlnb.storage import entries, files
from rlnb.storage.cache import Kept, is_settled, stamp_of
from rlnb.storage.serial import from_json, to_json

Kind = Literal["note", "tag", "untag", "name", "archive", "restore"]
MOST = 1000
"""Largest number of entries that are read, since a list of runs reads the entries of each run."""
MOST_NAME = 100
"""Largest number of characters of a run's name, which has to fit into a line."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Note:
    """One entry in the notes folder of a run."""

    kind: Kind
    text: str = ""
    """Text of the note, the tag, or the new name."""
    time: str
    """Time of writing, UTC, ISO 8601."""
    author: str = ""


_kept: Kept[list[Note]] = Kept()
"""Entries by their folder."""


def read(folder: Path) -> list[Note]:
    """Return the entries in a run's notes folder, oldest first; files of any other format are skipped.

    Of very many, only the newest are read, which a warning says.
    """
    stamp = stamp_of(folder)  # changes with each entry, since no file is ever modified
    if (known := _kept.get(folder, stamp)) is not None:
        return [*known]
    notes, paths, skipped = list[Note](), sorted(entries.matching(folder, "*.json")), 0
    if len(paths) > MOST:
        files.warn_once(f"{folder} has {len(paths):,} entries. Only the newest {MOST:,} are read.")
    for path in paths[-MOST:]:
        try:
            data = files.read_json(path, files.RECORD_BYTES)
            if data is not None and data.get("kind") in get_args(Kind):
                notes.append(from_json(Note, data, ignore_unknown=True))
        except RlnbError as exc:
            skipped += 1
            files.warn_once(f"The note {path} is skipped. {exc}")
    if not skipped and is_settled([stamp]):
        _kept.put(folder, stamp, [*notes])
    return notes


def write(folder: Path, kind: Kind, text: str = "") -> None:
    """Add an entry to the notes folder of a run.

    Raises:
        RlnbError: The folder is not writable, or the text is too long.
    """
    try:
        author = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in containers
        author = ""
    note = to_json(Note(kind=kind, text=text, time=files.now(), author=author))
    try:
        files.make_subfolder(folder)
        files.write_once(
            folder / f"{time.time_ns():020d}-{secrets.token_hex(4)}.json", note, limit_bytes=files.RECORD_BYTES
        )
    except OSError as exc:
        raise RlnbError(f"Notes and tags cannot be written to {folder}: {exc.strerror or exc}") from exc


class Notes(Sequence[Note]):
    """The notes of a run, oldest first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._notes = [note for note in read(folder) if note.kind == "note"]

    def add(self, text: str) -> None:
        """Add a note.

        Raises:
            RlnbError: The text is empty, or the notes folder is not writable.
        """
        if not isinstance(text, str) or not text.strip():
            raise RlnbError(f"{text!r} is not the text of a note. Write at least one word.")
        write(self._folder, "note", text)
        self._notes = Notes(self._folder)._notes

    def __len__(self) -> int:
        return len(self._notes)

    def __getitem__(self, index: Any) -> Any:
        return self._notes[index]

    def __repr__(self) -> str:
        return "\n".join(f"{note.time[:16]} {note.author}: {note.text}" for note in self._notes) or "no notes"

    def _repr_html_(self) -> str:
        lines = (
            f"<li><small>{html.escape(n.time[:16])} {html.escape(n.author)}</small> {html.escape(n.text)}</li>"
            for n in self._notes
        )
        return f"<ul>{''.join(lines)}</ul>" if self._notes else "<i>no notes</i>"


class Tags(MutableSet[str]):
    """The tags of a run: those given at its start, with all later changes applied."""

    def __init__(self, folder: Path, first: Iterable[str]) -> None:
        self._folder, self._tags = folder, dict.fromkeys(map(str, first))
        for note in read(folder):
            if note.kind == "tag":
                self._tags[note.text] = None
            elif note.kind == "untag":
                self._tags.pop(note.text, None)

    def add(self, value: str) -> None:
        """Add a tag.

        Raises:
            RlnbError: The tag is empty, or the notes folder is not writable.
        """
        if not isinstance(value, str) or not value.strip():
            raise RlnbError(f"{value!r} is not a tag. Use text with at least one letter.")
        if value not in self._tags:
            write(self._folder, "tag", value)
            self._tags[value] = None

    def discard(self, value: str) -> None:
        """Remove a tag if the run has it."""
        if value in self._tags:
            write(self._folder, "untag", value)
            del self._tags[value]

    def __contains__(self, value: object) -> bool:
        return value in self._tags

    def __iter__(self) -> Iterator[str]:
        return iter(self._tags)

    def __len__(self) -> int:
        return len(self._tags)

    def __repr__(self) -> str:
        return f"Tags({', '.join(self._tags)})"


def name_of(folder: Path, first: str) -> str:
    """Return the name of a run: the one given at its start, or the newest one since."""
    return next((note.text for note in reversed(read(folder)) if note.kind == "name"), first)


def name_problem(name: object) -> str:
    """Return what is wrong with the name of a run, as the rest of a sentence; empty if nothing is."""
    if not isinstance(name, str):
        return "is not text."
    if name.strip() != name or not name.isprintable():
        return "has spaces around it, line breaks, or characters that cannot be shown."
    return f"has {len(name)} characters, and {MOST_NAME} fit into a line." if len(name) > MOST_NAME else ""


def rename(folder: Path, name: str) -> None:
    """Name a run; an empty name removes the present one.

    Raises:
        RlnbError: The name is not a line of text, or the notes folder is not writable.
    """
    if problem := name_problem(name):
        raise RlnbError(f"name={name!r} {problem} Use one like 'small steps'.")
    write(folder, "name", name)


def archived(folder: Path) -> bool:
    """Return whether a run is archived: kept on disk, but omitted from lists."""
    last = [note.kind for note in read(folder) if note.kind in ("archive", "restore")]
    return bool(last) and last[-1] == "archive"
