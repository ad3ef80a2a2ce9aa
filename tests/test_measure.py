"""Measures of a step can tell a good one from a bad one."""

import jax
from support import start, tight, wheel

import kamino_jax as kj
from kamino_jax.dynamics import assemble


def test_the_equations_of_motion_notice_a_mass_that_disagrees_with_its_inverse(monkeypatch):
    model, state, _ = start(wheel(1.0, mass=2.0, com=(0.5, 0, 0), gravity=(0, 0, -9.81)))

    def error():
        stepped = jax.jit(lambda model, state: kj.step(model, state, dt=0.01, config=tight(compute_solution_metrics=True)))
        return float(stepped(model, state)[1].metrics.eom.value)

    assert error() < 1e-6
    right = assemble.inverse_mass
    monkeypatch.setattr(assemble, "inverse_mass", lambda model: 0.5 * right(model))
    assert error() > 1e-2
