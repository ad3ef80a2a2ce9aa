"""Measures of a step can tell a good one from a bad one."""

from support import start, step, tight, wheel

import kamino_jax as kj


def test_the_equations_of_motion_notice_a_mass_that_disagrees_with_its_inverse():
    model, state, _ = start(wheel(1.0, mass=2.0, com=(0.5, 0, 0), gravity=(0, 0, -9.81)))
    config = tight(compute_solution_metrics=True)
    _, info = step(model, state, dt=0.01, config=config)
    assert float(info.metrics.eom.value) < 1e-6
    wrong = kj.replace(model, bodies=kj.replace(model.bodies, mass=2 * model.bodies.mass))
    _, info = step(wrong, state, dt=0.01, config=config)
    assert float(info.metrics.eom.value) > 1e-2
