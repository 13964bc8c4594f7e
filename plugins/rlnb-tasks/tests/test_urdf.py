"""Merging links preserves the mass and inertia of the whole."""

from __future__ import annotations

from pathlib import Path

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("scipy")

ROBOT = """
<robot name="two">
  <link name="base">
    <inertial><mass value="2"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.2" iyz="0" izz="0.3"/></inertial>
  </link>
  <link name="motor">
    <inertial><origin xyz="0 0 0.1"/><mass value="1"/>
      <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.03"/></inertial>
    <visual><geometry><box size="1 1 1"/></geometry></visual>
  </link>
  <link name="foot"><inertial><mass value="0.5"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
  <link name="leg"/>
  <joint name="weld" type="fixed"><origin xyz="1 0 0" rpy="0 0 1.5707963267948966"/>
    <parent link="base"/><child link="motor"/></joint>
  <joint name="hip" type="revolute"><origin xyz="0 0.5 0"/><parent link="motor"/><child link="leg"/></joint>
  <joint name="ankle" type="fixed"><parent link="leg"/><child link="foot"/></joint>
</robot>
"""


def test_a_fixed_link_is_merged_into_its_parent_with_its_mass_in_place(tmp_path: Path) -> None:
    from rlnb_tasks.urdf import _inertial, _pose, merged

    (tmp_path / "two.urdf").write_text(ROBOT)
    robot = merged(tmp_path / "two.urdf", keep=["foot"]).getroot()
    assert [link.get("name") for link in robot.findall("link")] == ["base", "foot", "leg"]
    assert [joint.get("name") for joint in robot.findall("joint")] == ["hip", "ankle"]
    base = robot.find("link")
    mass, centre, inertia = _inertial(base)
    assert mass == 3.0
    assert centre == pytest.approx([1 / 3, 0, 0.1 / 3])  # the motor's centre is at (1, 0, 0.1) in the base
    # A quarter turn about z swaps the motor's x and y; each part adds m d^2 about the common centre.
    near, far = np.array([-1 / 3, 0, -0.1 / 3]), np.array([2 / 3, 0, 0.2 / 3])
    expected = np.diag([0.1 + 0.02, 0.2 + 0.01, 0.3 + 0.03])
    for m, d in ((2.0, near), (1.0, far)):
        expected += m * (d @ d * np.eye(3) - np.outer(d, d))
    np.testing.assert_allclose(inertia, expected, atol=1e-12)
    hip = robot.find("joint")
    assert hip.find("parent").get("link") == "base"
    np.testing.assert_allclose(_pose(hip)[:3, 3], [0.5, 0, 0], atol=1e-12)
    np.testing.assert_allclose(_pose(base.find("visual"))[:3, :2], [[0, -1], [1, 0], [0, 0]], atol=1e-12)
