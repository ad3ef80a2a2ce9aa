"""Settings of the dynamics solvers."""

import dataclasses
from dataclasses import field

from .checks import choice, count, flag, number

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
        number(self, ("primal_tolerance", "dual_tolerance", "compl_tolerance"), "finite and >= 0", 0)
        number(self, ("restart_tolerance",), "in [0, 1)", 0, 1, open_high=True)
        number(self, ("eta", "rho_0", "rho_min", "a_0"), "> 0", 0, open_low=True)
        number(self, ("alpha", "tau"), "> 1", 1, open_low=True)
        number(self, ("linear_solver_tolerance", "linear_solver_tolerance_ratio"), "finite and >= 0", 0)
        number(self, ("warmstart_scale",), "in [0, 1]", 0, 1)
        number(self, ("contact_warmstart_distance",), "> 0", 0, open_low=True)
        count(self, ("max_iterations",))
        count(self, ("penalty_update_freq",), low=0)
        choice(self, "penalty_update_method", ("fixed", "balanced"))
        choice(self, "warmstart_mode", WARM_START_MODES)
        choice(self, "contact_warmstart_method", CONTACT_WARM_STARTS)
        flag(self, ("use_acceleration", "history"))


@dataclasses.dataclass(frozen=True)
class DVIAPGDConfig:
    """Accelerated projected gradient descent: budgets per convex problem, and `tolerance` on its natural map.

    One correction (the default) solves one convex problem, which is not yet Coulomb friction where contacts slide: give it some 20 then.
    """

    max_iterations: int = 64
    max_backtracks: int = 24
    max_nonlinear_corrections: int = 1
    tolerance: float = 1e-5
    relaxation: float = 1.0

    def __post_init__(self):
        count(self, ("max_iterations", "max_backtracks", "max_nonlinear_corrections"))
        number(self, ("tolerance",), "finite and >= 0", 0)
        number(self, ("relaxation",), "in (0, 1]", 0, 1, open_low=True)


@dataclasses.dataclass(frozen=True)
class DVIConfig:
    """Direct solve of bilateral rows, projected iterations on the others; `tolerance` on impulses [N s], velocities [m/s] and work [J].

    `max_alternating_iterations` times, `inequality_sweeps_per_iteration` sweeps; the bilateral rows are solved before every
    `bilateral_solve_interval`-th block of them, or eliminated with `use_schur_complement` (None: where drives have effort limits).
    `fixed_schedule` runs all of it; otherwise worlds stop when they have converged.
    `bilateral_solver_type` "LLTB" factorises the bilateral block densely, "LLTBRCM" in a fill-reducing order, for long mechanisms.
    `failed_pivot_shift` is added to its unit diagonal where a pivot fails. `unilateral_solver` "pgs" or "apgd" (see `DVIAPGDConfig`).
    """

    unilateral_solver: str = "pgs"
    tolerance: float = 1e-5
    regularization: float = 1e-6
    omega: float = 1.0
    max_alternating_iterations: int = 24
    inequality_sweeps_per_iteration: int = 2
    use_schur_complement: bool | None = None
    bilateral_solve_interval: int = 1
    bilateral_solver_type: str = "LLTB"
    failed_pivot_shift: float = 1e-5
    fixed_schedule: bool = False
    warmstart_mode: str = "containers"
    tangential_warmstart_scale: float = 0.97
    contact_warmstart_method: str = "key_and_position_with_tangential_net_force"
    contact_warmstart_distance: float = 1e-5
    apgd: DVIAPGDConfig = field(default_factory=DVIAPGDConfig)

    def __post_init__(self):
        choice(self, "unilateral_solver", ("pgs", "apgd"))
        choice(self, "bilateral_solver_type", ("LLTB", "LLTBRCM"))
        choice(self, "warmstart_mode", WARM_START_MODES)
        choice(self, "contact_warmstart_method", CONTACT_WARM_STARTS)
        number(self, ("tolerance", "failed_pivot_shift"), "finite and >= 0", 0)
        number(self, ("regularization", "contact_warmstart_distance"), "> 0", 0, open_low=True)
        number(self, ("omega",), "in (0, 2]", 0, 2, open_low=True)
        number(self, ("tangential_warmstart_scale",), "in [0, 1]", 0, 1)
        count(self, ("max_alternating_iterations", "inequality_sweeps_per_iteration", "bilateral_solve_interval"))
        flag(self, ("fixed_schedule",) + (("use_schur_complement",) if self.use_schur_complement is not None else ()))
        if not isinstance(self.apgd, DVIAPGDConfig):
            raise TypeError(f"DVIConfig.apgd is {self.apgd!r}; it must be a DVIAPGDConfig")
