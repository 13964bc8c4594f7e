"""The files in the packs: their paths below the asset root, licences and sources. Imports nothing heavy."""

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
DEX_CUBE = "Isaac/Props/Blocks/DexCube/dex_cube_instanceable.usd"
DEX_CUBE_PICTURE = "Isaac/Props/Blocks/DexCube/dex_cube.png"
SHADOW_HAND = "Isaac/Robots_Multiphysics/ShadowRobot/ShadowHandMultiPhysics_v0/right_hand/right_hand.usda"
GO2 = "Isaac/IsaacLab/Robots/Unitree/Go2/go2.usd"
PANDA = "Isaac/IsaacLab/Robots/FrankaEmika/franka_panda.usda"
MARBLE = "Isaac/IsaacLab/Materials/TilesMarbleSpiderWhiteBrickBondHoned/TilesMarbleSpiderWhiteBrickBondHoned.mdl"

AUTHORED = (CARTPOLE, DOUBLE_PENDULUM, GROUND, CHECKER, ARROW, FRAME, SKY, MARBLE, DEX_CUBE, DEX_CUBE_PICTURE)
"""Files that this package writes from primitives, without third-party content."""

FROM_NEWTON: dict[str, str] = {ANT: "ant.usda", HUMANOID: "humanoid.usda"}
"""Files made from a file in ``newton/examples/assets`` of the installed newton wheel, mapped to that file's name."""

PRIMITIVES: dict[str, str] = {
    **dict.fromkeys(AUTHORED, "BSD-3-Clause"),
    # The wheel's LICENSE.md is Apache-2.0 and names no other licence for these two.
    **dict.fromkeys(FROM_NEWTON, "Apache-2.0"),
}
"""Paths below the asset root, mapped to the SPDX id of each file's licence."""

# The stage is part of the isaaclab wheel (BSD-3-Clause). isaaclab_assets names MuJoCo Menagerie, whose hand is
# Apache-2.0, as the model's origin.
HANDS: dict[str, str] = {SHADOW_HAND: "BSD-3-Clause AND Apache-2.0"}
"""The same for the file from the installed isaaclab wheel."""

# The licences stated by the READMEs in the URDFs' folders in example-robot-data.
ROBOTS: dict[str, str] = {GO2: "MPL-2.0", PANDA: "Apache-2.0"}
"""The same for the robots that are converted from URDF on request."""
