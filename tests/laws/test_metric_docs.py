"""The guide for plugins lists each metric with its meaning."""

from __future__ import annotations

from pathlib import Path

from rlnb.spec import METRICS, OFF_POLICY_METRICS

REPO = Path(__file__).parents[2]


def row(name: str) -> str:
    end = "; off-policy algorithms only" if name in OFF_POLICY_METRICS else ""
    return f"| `{name}` | {METRICS[name]}{end} |"


def test_the_guide_for_plugins_lists_each_metric_with_its_meaning() -> None:
    lines = (REPO / "docs/plugins.md").read_text().splitlines()
    start = lines.index("| name | meaning |") + 2
    table = lines[start : lines.index("", start)]
    assert table == [row(name) for name in METRICS]
