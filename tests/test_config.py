"""Settings are checked when they are made, with the name, the value and the rule; the status tells the host what to do."""

import dataclasses

import jax.numpy as jnp
import pytest

import kamino_jax as kj
from kamino_jax.status import CONVERGED, MAX_ITERATIONS, NOT_FINITE

REFUSED = [
    (kj.Config, dict(dynamics_solver="gauss"), ValueError, "dynamics_solver.*'padmm'"),
    (kj.Config, dict(integrator="rk4"), ValueError, "integrator.*'euler', 'moreau'"),
    (kj.Config, dict(rotation_correction="pi"), ValueError, "rotation_correction"),
    (kj.Config, dict(angular_velocity_damping=1.5), ValueError, r"in \[0, 1\]"),
    (kj.Config, dict(padmm=None), TypeError, "padmm.*PADMMConfig"),
    (kj.Config, dict(sparse_dynamics=1), TypeError, "sparse_dynamics.*True or False"),
    (kj.Config, dict(sparse_dynamics=True, dynamics=kj.DynamicsConfig(linear_solver_type="LLTB")), ValueError, "'CR'"),
    (kj.Config, dict(dynamics=kj.DynamicsConfig(linear_solver_type="CR")), ValueError, "sparse_dynamics=True"),
    (kj.ConstraintsConfig, dict(alpha=1.1), ValueError, r"alpha.*in \[0, 1\]"),
    (kj.ConstraintsConfig, dict(beta=-0.1), ValueError, "beta"),
    (kj.ConstraintsConfig, dict(gamma=float("nan")), ValueError, "gamma"),
    (kj.ConstraintsConfig, dict(delta=float("inf")), ValueError, "delta"),
    (kj.ConstraintsConfig, dict(joint_recovery_time=-1.0), ValueError, "joint_recovery_time"),
    (kj.ConstraintsConfig, dict(limit_recovery_speed=float("nan")), ValueError, "limit_recovery_speed"),
    (kj.ConstraintsConfig, dict(contact_compliance=1), TypeError, "contact_compliance"),
    (kj.PADMMConfig, dict(primal_tolerance=-1e-6), ValueError, "primal_tolerance"),
    (kj.PADMMConfig, dict(dual_tolerance=float("nan")), ValueError, "dual_tolerance"),
    (kj.PADMMConfig, dict(restart_tolerance=1.0), ValueError, "restart_tolerance"),
    (kj.PADMMConfig, dict(eta=0.0), ValueError, "eta.*> 0"),
    (kj.PADMMConfig, dict(rho_0=0.0), ValueError, "rho_0"),
    (kj.PADMMConfig, dict(alpha=1.0), ValueError, "alpha.*> 1"),
    (kj.PADMMConfig, dict(tau=0.5), ValueError, "tau"),
    (kj.PADMMConfig, dict(max_iterations=0), ValueError, "max_iterations"),
    (kj.PADMMConfig, dict(max_iterations=10.0), ValueError, "max_iterations.*integer"),
    (kj.PADMMConfig, dict(penalty_update_freq=-1), ValueError, "penalty_update_freq"),
    (kj.PADMMConfig, dict(penalty_update_method="adaptive"), ValueError, "'fixed', 'balanced'"),
    (kj.PADMMConfig, dict(warmstart_mode="hot"), ValueError, "'none', 'internal', 'containers'"),
    (kj.PADMMConfig, dict(warmstart_scale=1.1), ValueError, "warmstart_scale"),
    (kj.PADMMConfig, dict(contact_warmstart_method="geom_pair_net_wrench"), ValueError, "key_and_position"),
    (kj.PADMMConfig, dict(rho_0="1"), TypeError, "a number"),
    (kj.CollisionConfig, dict(default_gap=-1.0), ValueError, "default_gap"),
    (kj.MaterialsConfig, dict(friction_mix_mode="median"), ValueError, "'geometric_average'"),
    (kj.DynamicsConfig, dict(linear_solver_type="LU"), ValueError, "linear_solver_type"),
    (kj.DynamicsConfig, dict(linear_solver_maxiter=0), ValueError, "linear_solver_maxiter"),
]


@pytest.mark.parametrize(("cls", "wrong", "error", "message"), REFUSED, ids=lambda x: str(x)[:40])
def test_a_wrong_setting_is_refused_by_name(cls, wrong, error, message):
    with pytest.raises(error, match=message):
        cls(**wrong)


def test_configs_are_hashable_equal_by_value_and_edited_by_replace():
    config = kj.Config()
    assert config == kj.Config() and hash(config) == hash(kj.Config())
    edited = dataclasses.replace(config, padmm=dataclasses.replace(config.padmm, rho_0=0.1))
    assert edited != config
    with pytest.raises(ValueError, match="rho_0"):
        dataclasses.replace(config.padmm, rho_0=-1.0)


def status(code, dropped=0):
    code, zero = jnp.asarray(code), jnp.zeros(())
    count = jnp.broadcast_to(jnp.asarray(dropped), code.shape)
    return kj.Status(code, code == CONVERGED, zero, zero, zero, zero, count, count, count, None)


def test_failed_worlds_are_listed_with_the_remedy():
    kj.raise_if_failed(status([CONVERGED] * 3))
    with pytest.raises(RuntimeError, match=r"not finite.*index 1.*not converged: raise max_iterations.*index 0, 3"):
        kj.raise_if_failed(status([MAX_ITERATIONS, NOT_FINITE, CONVERGED, MAX_ITERATIONS]))
    with pytest.raises(RuntimeError, match=r"max_contacts \(at the world\)"):
        kj.raise_if_failed(status(CONVERGED, dropped=2))
    with pytest.raises(RuntimeError, match=r"index \(0, 1\), .*\(1, 0\) and 3 more"):
        kj.raise_if_failed(status([[0, 2, 2, 2, 2], [2, 2, 2, 2, 0]]))
    kj.raise_if_failed(status([MAX_ITERATIONS]), require_convergence=False)
