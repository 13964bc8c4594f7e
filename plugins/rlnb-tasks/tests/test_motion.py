"""The motion of the robots in Newton's physics, compared with the equations of motion."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest
from rlnb_tasks import files

pytestmark = [
    pytest.mark.slow,  # they simulate for long, and only a change of the robots' files can break them
    pytest.mark.skipif(importlib.util.find_spec("newton") is None, reason="newton is not installed here"),
]

GRAVITY = 9.81
DT_S = 1 / 240
HELD_KG = 1e4  # armature that holds the cart still to 1 part in 1e4
AMPLITUDE_RAD = 0.05  # small, because the period of a pendulum grows by amplitude**2 / 16
TOLERANCE = 0.02


def simulate(path: Path, angles: tuple[float, ...], seconds: float, cart_armature_kg: float = 0.0) -> np.ndarray:
    """Return the joint positions after a start at rest. Shape (steps + 1, 1 + len(angles)); metres, then radians."""
    import newton

    builder = newton.ModelBuilder()
    newton.solvers.SolverMuJoCo.register_custom_attributes(builder)
    builder.add_usd(str(path), enable_self_collisions=False)
    builder.joint_q[:] = [0.0, *angles]
    builder.joint_armature[0] = cart_armature_kg
    model = builder.finalize(device="cpu")
    solver = newton.solvers.SolverMuJoCo(model, disable_contacts=True)
    state, following, control = model.state(), model.state(), model.control()
    newton.eval_fk(model, model.joint_q, model.joint_qd, state)
    positions = [state.joint_q.numpy().copy()]
    for _ in range(round(seconds / DT_S)):
        solver.step(state, following, control, None, DT_S)
        state, following = following, state
        positions.append(state.joint_q.numpy().copy())
    return np.array(positions)


def period_s(angle: np.ndarray) -> float:
    """Return the mean time between upward zero crossings, in seconds."""
    before = np.flatnonzero((angle[:-1] < 0) & (angle[1:] >= 0))
    assert len(before) >= 2, "the pole does not oscillate"
    crossings = before + angle[before] / (angle[before] - angle[before + 1])
    return float(np.diff(crossings).mean() * DT_S)


def link(path: Path, name: str) -> tuple[float, float, float]:
    """Return mass (kg), centre of mass above the hinge (m), and moment about the centre of mass along x (kg m^2)."""
    from pxr import Usd, UsdPhysics

    stage = Usd.Stage.Open(str(path))
    mass = UsdPhysics.MassAPI(stage.GetDefaultPrim().GetChild(name))
    return mass.GetMassAttr().Get(), mass.GetCenterOfMassAttr().Get()[2], mass.GetDiagonalInertiaAttr().Get()[0]


def second_hinge_m(path: Path) -> float:
    """Return the distance between the two hinges, in metres."""
    from pxr import Usd, UsdPhysics

    stage = Usd.Stage.Open(str(path))
    return UsdPhysics.Joint(stage.GetDefaultPrim().GetChild("pole_to_pendulum")).GetLocalPos0Attr().Get()[2]


@pytest.mark.parametrize("armature_kg", [0.0, HELD_KG], ids=["free cart", "held cart"])
def test_a_hanging_pole_swings_with_the_period_of_a_physical_pendulum(assets: Path, armature_kg: float) -> None:
    path = assets / files.CARTPOLE
    m, c, i = link(path, "pole")
    cart_kg = link(path, "cart")[0] + armature_kg
    # Linearised at the bottom: (M + m) x'' + m c a'' = 0 and (I + m c^2) a'' + m c x'' + m g c a = 0.
    # With the cart held (M -> infinity), omega^2 is the textbook m g c / (I + m c^2).
    omega2 = m * GRAVITY * c * (cart_kg + m) / ((cart_kg + m) * (i + m * c**2) - (m * c) ** 2)
    positions = simulate(path, (math.pi + AMPLITUDE_RAD,), seconds=3.0, cart_armature_kg=armature_kg)
    assert period_s(positions[:, 1] - math.pi) == pytest.approx(2 * math.pi / math.sqrt(omega2), rel=TOLERANCE)


def test_a_hanging_double_pendulum_swings_in_its_slow_mode(assets: Path) -> None:
    path = assets / files.DOUBLE_PENDULUM
    (m1, c1, i1), (m2, c2, i2) = link(path, "pole"), link(path, "pendulum")
    l1 = second_hinge_m(path)
    # With the cart held and absolute link angles, M a'' + K a = 0.
    inertia = np.array([[i1 + m1 * c1**2 + m2 * l1**2, m2 * l1 * c2], [m2 * l1 * c2, i2 + m2 * c2**2]])
    stiffness = np.diag([(m1 * c1 + m2 * l1) * GRAVITY, m2 * c2 * GRAVITY])
    omega2, modes = (part.real for part in np.linalg.eig(np.linalg.solve(inertia, stiffness)))  # both are symmetric
    slow = int(np.argmin(omega2))
    first, second = modes[:, slow] / np.abs(modes[:, slow]).max() * AMPLITUDE_RAD
    positions = simulate(path, (math.pi + first, second - first), seconds=4.5, cart_armature_kg=HELD_KG)
    assert period_s(positions[:, 1] - math.pi) == pytest.approx(2 * math.pi / math.sqrt(omega2[slow]), rel=TOLERANCE)


@pytest.mark.parametrize("path", [files.CARTPOLE, files.DOUBLE_PENDULUM], ids=["single", "double"])
def test_a_pole_released_at_minus_0_6_rad_falls(assets: Path, path: str) -> None:
    angles = (-0.6,) if path == files.CARTPOLE else (-0.6, 0.0)
    positions = simulate(assets / path, angles, seconds=1.0)
    assert np.all(np.diff(positions[: round(0.5 / DT_S), 1]) <= 0)  # the pole falls towards the side it leans to
    assert positions[:, 1].min() < -math.pi / 2
    assert positions[:, 0].max() > 0.05  # and pushes the cart the other way; the tip is at y = -sin(angle)


def test_a_pole_with_its_mass_on_the_hinge_fails_these_tests(assets: Path, tmp_path: Path) -> None:
    """A negative control: a body with neither colliders nor an explicit centre of mass would have its mass there."""
    from pxr import Gf, Usd, UsdPhysics

    broken = tmp_path / "cartpole.usda"
    stage = Usd.Stage.Open(str(assets / files.CARTPOLE))
    stage.Export(str(broken))
    stage = Usd.Stage.Open(str(broken))
    UsdPhysics.MassAPI(stage.GetPrimAtPath("/cartpole/pole")).GetCenterOfMassAttr().Set(Gf.Vec3f(0.0))
    stage.Save()
    assert simulate(broken, (-0.6,), seconds=1.0)[:, 1].min() == pytest.approx(-0.6, abs=1e-3)
    with pytest.raises(AssertionError, match="does not oscillate"):
        period_s(simulate(broken, (math.pi + AMPLITUDE_RAD,), seconds=3.0)[:, 1] - math.pi)
