"""Settings of a step. Static and hashable: a new `Config` is a new program. Checked when constructed.

The tree mirrors Newton's `SolverKamino.Config`; defaults are its defaults.
"""

import dataclasses
import math
from dataclasses import field

from .collision.materials import MIX_MODES


def _refuse(owner, name, value, rule):
    raise ValueError(f"{type(owner).__name__}.{name} is {value!r}; it must be {rule}")


def _number(owner, names, rule, low=-math.inf, high=math.inf, *, open_low=False, open_high=False, finite=True):
    for name in names:
        value = getattr(owner, name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise TypeError(f"{type(owner).__name__}.{name} is {value!r}; it must be a number")
        above = value > low if open_low else value >= low
        below = value < high if open_high else value <= high
        if not (above and below) or (finite and not math.isfinite(value)):
            _refuse(owner, name, value, rule)


def _count(owner, names, low=1):
    for name in names:
        value = getattr(owner, name)
        if not isinstance(value, int) or isinstance(value, bool) or value < low:
            _refuse(owner, name, value, f"an integer >= {low}")


def _choice(owner, name, known):
    value = getattr(owner, name)
    if value not in known:
        _refuse(owner, name, value, f"one of {', '.join(map(repr, known))}")


def _flag(owner, names):
    for name in names:
        if not isinstance(getattr(owner, name), bool):
            raise TypeError(f"{type(owner).__name__}.{name} is {getattr(owner, name)!r}; it must be True or False")


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
        _number(self, ("alpha", "beta", "gamma"), "in [0, 1]", 0, 1)
        _number(self, ("delta",), "finite and >= 0", 0)
        times = ("joint_recovery_time", "limit_recovery_time", "contact_recovery_time")
        _number(self, [t for t in times if getattr(self, t) is not None], "None or finite and >= 0", 0)
        speeds = ("joint_recovery_speed", "limit_recovery_speed", "contact_recovery_speed")
        _number(self, speeds, ">= 0 (inf: no cap)", 0, finite=False)
        _flag(self, ("contact_compliance", "limit_compliance"))


@dataclasses.dataclass(frozen=True)
class DynamicsConfig:
    """The linear algebra of D = J M⁻¹ Jᵀ + E.

    `linear_solver_type` None picks "LLTB" (a direct factorisation, of D or of its body-space form, whichever is smaller), or "CR"
    (conjugate residuals) with `sparse_dynamics`. `linear_solver_maxiter` None allows as many CR iterations as there are rows.
    Contacts at a positive distance are dropped unless `cull_speculative_contacts` is False.
    """

    preconditioning: bool = True
    linear_solver_type: str | None = None
    linear_solver_maxiter: int | None = None
    cull_speculative_contacts: bool = True

    def __post_init__(self):
        _flag(self, ("preconditioning", "cull_speculative_contacts"))
        _choice(self, "linear_solver_type", (None, "LLTB", "CR"))
        if self.linear_solver_maxiter is not None:
            _count(self, ("linear_solver_maxiter",))


WARM_START_MODES = ("none", "internal", "containers")
CONTACT_WARM_STARTS = (
    "key_and_position",
    "geom_pair_net_force",
    "key_and_position_with_net_force_backup",
    "key_and_position_with_tangential_net_force",
    "key_and_position_with_net_force_backup_and_tangential_net_force",
)


@dataclasses.dataclass(frozen=True)
class PADMMConfig:
    """Proximal ADMM. Tolerances are absolute, in physical units: r_p [N s], r_d [m/s], r_c [J]; 0 runs to the budget.

    `history` records the residuals of every iteration in `Info.history` (runs the whole budget; for plots).
    `contact_warmstart_distance` [m] is how far a contact may be from where its predecessor moved to.
    """

    primal_tolerance: float = 1e-6
    dual_tolerance: float = 1e-6
    compl_tolerance: float = 1e-6
    restart_tolerance: float = 0.999
    eta: float = 1e-5
    rho_0: float = 1.0
    rho_min: float = 1e-5
    a_0: float = 1.0
    alpha: float = 10.0
    tau: float = 1.5
    max_iterations: int = 200
    penalty_update_freq: int = 1
    penalty_update_method: str = "fixed"
    linear_solver_tolerance: float = 0.0
    linear_solver_tolerance_ratio: float = 0.0
    use_acceleration: bool = True
    warmstart_mode: str = "containers"
    warmstart_scale: float = 0.9
    contact_warmstart_method: str = "key_and_position"
    contact_warmstart_distance: float = 1e-5
    history: bool = False

    def __post_init__(self):
        _number(self, ("primal_tolerance", "dual_tolerance", "compl_tolerance"), "finite and >= 0", 0)
        _number(self, ("restart_tolerance",), "in [0, 1)", 0, 1, open_high=True)
        _number(self, ("eta", "rho_0", "rho_min", "a_0"), "> 0", 0, open_low=True)
        _number(self, ("alpha", "tau"), "> 1", 1, open_low=True)
        _number(self, ("linear_solver_tolerance", "linear_solver_tolerance_ratio"), "finite and >= 0", 0)
        _number(self, ("warmstart_scale",), "in [0, 1]", 0, 1)
        _number(self, ("contact_warmstart_distance",), "> 0", 0, open_low=True)
        _count(self, ("max_iterations",))
        _count(self, ("penalty_update_freq",), low=0)
        _choice(self, "penalty_update_method", ("fixed", "balanced"))
        _choice(self, "warmstart_mode", WARM_START_MODES)
        _choice(self, "contact_warmstart_method", CONTACT_WARM_STARTS)
        _flag(self, ("use_acceleration", "history"))


@dataclasses.dataclass(frozen=True)
class CollisionConfig:
    """Contact detection: `default_gap` [m] is the least detection distance of a shape."""

    default_gap: float = 1e-5

    def __post_init__(self):
        _number(self, ("default_gap",), "finite and >= 0", 0)


@dataclasses.dataclass(frozen=True)
class MaterialsConfig:
    """How two materials mix."""

    friction_mix_mode: str = "average"
    restitution_mix_mode: str = "min"

    def __post_init__(self):
        _choice(self, "friction_mix_mode", tuple(MIX_MODES))
        _choice(self, "restitution_mix_mode", tuple(MIX_MODES))


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
        _choice(self, "mode", ("exact", "smoothed"))
        _choice(self, "contact_geometry", ("full", "tangent"))
        _number(self, ("kappa",), "> 0", 0, open_low=True)
        _number(self, ("gap",), "finite and >= 0", 0)
        _count(self, ("polish",), low=0)
        _flag(self, ("health",))
        if self.gap > 0 and self.mode != "smoothed":
            raise ValueError("GradientConfig.gap lets shapes feel each other at a distance: it needs mode='smoothed'")


@dataclasses.dataclass(frozen=True)
class Config:
    """All settings of `step`. `dataclasses.replace(config, ...)` edits a copy.

    `rotation_correction` unwraps joint angles: "twopi" keeps them in (-2π, 2π), "continuous" counts turns, "none" leaves them in [-π, π].
    `compute_solution_metrics` adds `Info.metrics`, measured on the solution itself.
    `angular_velocity_damping` a scales angular velocities by 1 - a dt after each step.
    `impact_time` moves bodies that hit something with their old velocity up to the moment of impact within the step, and with the new one
    after it. Positions after a bounce are then of second order, and so is their derivative by what came before.

    Raises:
        ValueError: a value out of range, an unknown name, or options that exclude each other.
        TypeError: a value of the wrong type.
    """

    dynamics_solver: str = "padmm"
    integrator: str = "euler"
    rotation_correction: str = "twopi"
    sparse_dynamics: bool = False
    angular_velocity_damping: float = 0.0
    compute_solution_metrics: bool = False
    impact_time: bool = False
    constraints: ConstraintsConfig = field(default_factory=ConstraintsConfig)
    dynamics: DynamicsConfig = field(default_factory=DynamicsConfig)
    padmm: PADMMConfig = field(default_factory=PADMMConfig)
    collision: CollisionConfig = field(default_factory=CollisionConfig)
    materials: MaterialsConfig = field(default_factory=MaterialsConfig)
    gradient: GradientConfig = field(default_factory=GradientConfig)

    def __post_init__(self):
        _choice(self, "dynamics_solver", ("padmm",))
        _choice(self, "integrator", ("euler", "moreau"))
        _choice(self, "rotation_correction", ("twopi", "continuous", "none"))
        _flag(self, ("sparse_dynamics", "compute_solution_metrics", "impact_time"))
        _number(self, ("angular_velocity_damping",), "in [0, 1]", 0, 1)
        for f in dataclasses.fields(self):
            if f.default_factory is not dataclasses.MISSING and not isinstance(getattr(self, f.name), f.default_factory):
                raise TypeError(f"Config.{f.name} is {getattr(self, f.name)!r}; it must be a {f.default_factory.__name__}")
        if self.gradient.gap > 0 and not self.dynamics.cull_speculative_contacts:
            raise ValueError("GradientConfig.gap needs cull_speculative_contacts=True: kept speculative contacts are felt already")
        if self.sparse_dynamics and self.dynamics.linear_solver_type == "LLTB":
            raise ValueError("sparse_dynamics never forms D and needs linear_solver_type 'CR' (or None), not 'LLTB'")
        if not self.sparse_dynamics and self.dynamics.linear_solver_type == "CR":
            raise ValueError("linear_solver_type 'CR' is the matrix-free solver: set sparse_dynamics=True")
