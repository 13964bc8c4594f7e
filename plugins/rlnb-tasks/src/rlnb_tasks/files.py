"""Which files the pack holds: their paths below the asset root, licences and sources. Imports nothing heavy."""

from __future__ import annotations

CARTPOLE = "Isaac/IsaacLab/Robots/Classic/Cartpole/cartpole.usd"
DOUBLE_PENDULUM = "Isaac/IsaacLab/Robots/Classic/CartDoublePendulum/cart_double_pendulum.usd"
ANT = "Isaac/Robots/IsaacSim/Ant/ant_instanceable.usd"
HUMANOID = "Isaac/Robots/IsaacSim/Humanoid/humanoid_instanceable.usd"
GROUND = "Isaac/IsaacLab/Environments/Grid/default_ground_plane_checker_v1/default_ground_plane.usda"
CHECKER = "Isaac/IsaacLab/Environments/Grid/default_ground_plane_checker_v1/checker.png"
ARROW = "Isaac/Props/UIElements/arrow_x.usd"
FRAME = "Isaac/Props/UIElements/frame_prim.usd"
SKY = "Isaac/Materials/Textures/Skies/PolyHaven/kloofendal_43d_clear_puresky_4k.hdr"

AUTHORED: tuple[str, ...] = (CARTPOLE, DOUBLE_PENDULUM, GROUND, CHECKER, ARROW, FRAME, SKY)
"""Files written from primitives by this package; they hold nobody else's work."""

FROM_NEWTON: dict[str, str] = {ANT: "ant.usda", HUMANOID: "humanoid.usda"}
"""Files made from one in ``newton/examples/assets`` of the installed newton wheel."""

LICENCES: dict[str, str] = {
    **dict.fromkeys(AUTHORED, "BSD-3-Clause"),
    # The wheel's LICENSE.md is Apache-2.0 and names no other licence for these two.
    **dict.fromkeys(FROM_NEWTON, "Apache-2.0"),
}
"""Path below the asset root, to the SPDX id of that file's licence."""
