"""``"shell"``: the command of every node, for a cluster that sets the variables, and for a person who starts nodes."""

from __future__ import annotations

import shlex

from rlnb.manifests.job import PORT, Request


def render(request: Request) -> str:
    command, nodes = shlex.join(request.argv), request.nodes
    where = f"MASTER_ADDR=FIRST_NODE MASTER_PORT={PORT} WORLD_SIZE={nodes}"
    by_hand = [f"{where} RANK={node} {command}" for node in range(nodes)]
    return "\n".join(
        [
            "# Run this on every node. MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK (counting nodes) must be set.",
            command,
            "# If the cluster does not set them, run one line per node, with the first node's address for FIRST_NODE:",
            *(f"# {line}" for line in by_hand),
            "",
        ]
    )
