"""The command of every node."""

from __future__ import annotations

from collections.abc import Callable

from rlnb.manifests import shell
from rlnb.manifests.job import Request


def test_it_has_one_command_for_all_nodes_and_comments_with_one_per_node(request_of: Callable[..., Request]) -> None:
    made = request_of("shell", nodes=2, python="/my env/python")
    command = f"'/my env/python' -P -m rlnb.pods {made.path}"
    text = shell.render(made)
    assert [line for line in text.splitlines() if not line.startswith("#")] == [command]
    for node in (0, 1):
        assert f"# MASTER_ADDR=FIRST_NODE MASTER_PORT=29500 WORLD_SIZE=2 RANK={node} {command}\n" in text
