"""The words of the project: one term for each thing, and no address of a package index."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
HOUSE_WORDS = {
    "fix": r"\bmen" + r"d(s|ed|ing)?\b",
    "warm simulator": r"\bliving (worker|simulator)\b",
    "request": r"\b(was|were|is|are) asked\b",
    "the user, the viewer, no page": r"\b(some" + r"body|no" + r"body|who" + r"ever|who lo" + r"oks)\b",
    "the names of the things": r"\b(stu" + r"dio(?!\.)|audi" + r"ence|ga" + r"ngs?|meet" + r"ing)\b(?<!viser.studio)",
}
"""The term to use, and the words that it replaces. The patterns are in parts, so that this file keeps its own law."""
INDEX = re.compile("pypi" + r"\.org|python" + "hosted|anaconda" + r"\.org", re.IGNORECASE)
NOT_PROSE = re.compile(
    r"^tests/records/of_0_1_0/|^tests/metrics/event_files/|\.(lock|png|gif)$|^constraints\.txt$|^benchmarks/RESULTS\.md$"
)
"""Recorded data, pins, pictures, and the names of earlier measurements."""
FROM_AN_INDEX = re.compile(r"pip install (?!.*(--constraint|--editable|-e )).*\brlnb\b")


def texts() -> list[tuple[str, str]]:
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPO, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is not a git checkout")
    names = [name for name in listed.stdout.split("\0") if name and not NOT_PROSE.search(name)]
    return [(name, (REPO / name).read_text(encoding="utf-8")) for name in names if (REPO / name).is_file()]


def lines_with(pattern: str | re.Pattern[str]) -> list[str]:
    return [
        f"{name}:{number}: {line.strip()[:140]}"
        for name, text in texts()
        for number, line in enumerate(text.splitlines(), 1)
        if re.search(pattern, line, 0 if isinstance(pattern, re.Pattern) else re.IGNORECASE)
    ]


@pytest.mark.parametrize("term", HOUSE_WORDS)
def test_one_term_stands_for_each_thing(term: str) -> None:
    assert lines_with(HOUSE_WORDS[term]) == [], f"use: {term}"


def test_no_file_has_the_address_of_a_package_index() -> None:
    assert lines_with(INDEX) == []


def test_no_line_installs_a_package_of_ours_from_an_index() -> None:
    builds_the_line = ("tests/", "rlnb/machine/packages.py")
    assert [line for line in lines_with(FROM_AN_INDEX) if not line.startswith(builds_the_line)] == []
