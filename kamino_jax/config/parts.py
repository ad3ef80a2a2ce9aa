"""Settings that all dynamics solvers share."""

import dataclasses
import math

from ..collision.materials import MIX_MODES
from .checks import choice, count, flag, number


@dataclasses.dataclass(frozen=True)
class ConstraintsConfig:
    """How position errors are removed (spec: recovery laws).

    A share `alpha` (joints), `beta` (limits), `gamma` (contacts) of the error per step; or, with a recovery time T, the rate
    1/(dt + T); capped at a recovery speed [m/s, rad/s]. `delta` [m] is the dead zone of contact distances. The compliance
    flags give limits and contacts the stiffness and damping of their joints and materials.
    """

    alpha: float = 0.01
    beta: float = 0.01
    gamma: float = 0.01
    delta: float = 1e-6
    joint_recovery_time: float | None = None
    limit_recovery_time: float | None = None
    contact_recovery_time: float | None = None
    joint_recovery_speed: float = math.inf
    limit_recovery_speed: float = math.inf
    contact_recovery_speed: float = math.inf
    contact_compliance: bool = False
    limit_compliance: bool = False

    def __post_init__(self):
        number(self, ("alpha", "beta", "gamma"), "in [0, 1]", 0, 1)
        number(self, ("delta",), "finite and >= 0", 0)
        times = ("joint_recovery_time", "limit_recovery_time", "contact_recovery_time")
        number(self, [t for t in times if getattr(self, t) is not None], "None or finite and >= 0", 0)
        speeds = ("joint_recovery_speed", "limit_recovery_speed", "contact_recovery_speed")
        number(self, speeds, ">= 0 (inf: no cap)", 0, finite=False)
        flag(self, ("contact_compliance", "limit_compliance"))


@dataclasses.dataclass(frozen=True)
class DynamicsConfig:
    """The linear algebra of D = J M⁻¹ Jᵀ + E.

    `linear_solver_type` None picks "LLTB" (a direct factorisation, of D or of its body-space form, whichever is smaller), or "CR"
    (conjugate residuals) with `sparse_dynamics`. `linear_solver_maxiter` None allows as many CR iterations as there are rows.
    Contacts at a positive distance are dropped unless `cull_speculative_contacts` is False.
    `preconditioning` None means yes for PADMM; DVI has none.
    """

    preconditioning: bool | None = None
    linear_solver_type: str | None = None
    linear_solver_maxiter: int | None = None
    cull_speculative_contacts: bool = True

    def __post_init__(self):
        flag(self, ("cull_speculative_contacts",) + (("preconditioning",) if self.preconditioning is not None else ()))
        choice(self, "linear_solver_type", (None, "LLTB", "CR"))
        if self.linear_solver_maxiter is not None:
            count(self, ("linear_solver_maxiter",))


@dataclasses.dataclass(frozen=True)
class CollisionConfig:
    """Contact detection: `default_gap` [m] is the least detection distance of a shape."""

    default_gap: float = 1e-5

    def __post_init__(self):
        number(self, ("default_gap",), "finite and >= 0", 0)


@dataclasses.dataclass(frozen=True)
class MaterialsConfig:
    """How two materials mix."""

    friction_mix_mode: str = "average"
    restitution_mix_mode: str = "min"

    def __post_init__(self):
        choice(self, "friction_mix_mode", tuple(MIX_MODES))
        choice(self, "restitution_mix_mode", tuple(MIX_MODES))


@dataclasses.dataclass(frozen=True)
class GradientConfig:
    """What a derivative of a step means; nothing here changes a step that is not differentiated.

    `mode` "exact" is the derivative of the step, one-sided at a change of law (stick to slip, open to closed). "smoothed" is not: it blends
    the laws over a region of size `kappa` [J], so that a resting block feels the push that would move it, and shapes up to `gap` [m] apart
    feel each other. Neither touches the step itself.
    `contact_geometry` "full" differentiates normals and contact points as the shapes move; "tangent" holds them fixed to the bodies, which
    is exact for distances and cheaper.
    `polish` Newton steps take the impulses to rounding before they are differentiated, whatever the solver's tolerance was.
    `health` adds `Info.gradient`: how far the derivatives of this step can be trusted.
    """

    mode: str = "exact"
    kappa: float = 1e-4
    gap: float = 0.0
    contact_geometry: str = "full"
    polish: int = 1
    health: bool = False

    def __post_init__(self):
        choice(self, "mode", ("exact", "smoothed"))
        choice(self, "contact_geometry", ("full", "tangent"))
        number(self, ("kappa",), "> 0", 0, open_low=True)
        number(self, ("gap",), "finite and >= 0", 0)
        count(self, ("polish",), low=0)
        flag(self, ("health",))
        if self.gap > 0 and self.mode != "smoothed":
            raise ValueError("GradientConfig.gap lets shapes feel each other at a distance: it needs mode='smoothed'")
