# %% [markdown]
# # System identification of a closed-loop arm
#
# How heavy is a link, and how much friction is in the joints? We record the motion of a four-bar under a known motor torque, with noise,
# and fit the unknown numbers so that the simulation repeats the motion. Here the recording comes from the simulator too, so the true
# numbers are known and we can check the answer.

# %%
import os

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import kamino_jax as kj

jax.config.update("jax_enable_x64", True)
FAST = "NOTEBOOK_FAST" in os.environ  # shorter recordings, for tests

# %% [markdown]
# ## The arm
#
# Three rods and four hinges, like in `quick_start`. Every hinge has dry friction: a torque of fixed size against the motion.

# %%
pins = {"A": (0.0, 0.0), "B": (0.0, 0.1), "C": (0.2779, 0.2130), "D": (0.3, 0.0)}
links = {"crank": ("A", "B", 0.2), "coupler": ("B", "C", 0.3), "rocker": ("D", "C", 0.2)}  # from, to, mass [kg]
hinges = [("motor", None, "crank", "A"), ("crank_pin", "crank", "coupler", "B")]
hinges += [("rocker_pin", "coupler", "rocker", "C"), ("pivot", None, "rocker", "D")]

builder = kj.ModelBuilder()
for name, (start, end, mass) in links.items():
    start, end = np.array(pins[start]), np.array(pins[end])
    along = end - start
    length, half = np.linalg.norm(along), 0.5 * np.arctan2(along[0], along[1])
    across, middle = mass * length**2 / 12, (start + end) / 2
    turned = dict(position=(middle[0], 0.0, middle[1]), rotation=(0.0, np.sin(half), 0.0, np.cos(half)))
    builder.add_body(name, mass=mass, inertia=(across, across, 1e-4), **turned)
for name, parent, child, pin in hinges:
    builder.add_revolute(parent, child, name=name, at=(pins[pin][0], 0.0, pins[pin][1]), axis="y", friction=0.01)
model = builder.finalize()

# %% [markdown]
# ## What is unknown
#
# Three numbers: the mass of the coupler, the friction of the motor hinge, and the friction of the three other hinges, which are alike. A
# function says what a model with given numbers is. The inertia of the coupler scales with its mass.

# %%
COUPLER = model.names.index("bodies", "coupler")


def arm_with(model, p):
    """The arm with other numbers."""
    scale = jnp.ones(3).at[COUPLER].set(p["mass"] / model.bodies.mass[COUPLER])
    bodies = kj.replace(model.bodies, mass=scale * model.bodies.mass, inertia=scale[:, None, None] * model.bodies.inertia)
    friction = jnp.stack([p["motor"], p["pins"], p["pins"], p["pins"]])
    return kj.replace(model, bodies=bodies, joints=kj.replace(model.joints, friction=friction))


truth = {"mass": 0.45, "motor": 0.05, "pins": 0.02}  # [kg], [N m], [N m]

# %% [markdown]
# ## Recordings
#
# Three runs with different motor torques. What we measure is the angular velocity of crank and rocker, with noise of 0.02 rad/s.

# %%
dt, steps, runs, noise = 2e-3, 50 if FAST else 150, 3, 0.02
tight = dict(primal_tolerance=1e-8, dual_tolerance=1e-8, compl_tolerance=1e-8)
config = kj.Config(padmm=kj.PADMMConfig(rho_0=0.1, max_iterations=500, **tight))
measure = lambda state: state.u[jnp.array([0, 2]), 4]  # [rad/s] about y

time = dt * np.arange(steps)
torque = 0.6 + 0.3 * np.sin(np.array([10.0, 17.0, 25.0])[:, None] * time)  # [N m] (runs, steps)
still = kj.optim.hold(kj.zero_control(model), steps)
controls = jax.vmap(lambda t: kj.replace(still, tau=still.tau.at[:, 0].set(t)))(jnp.asarray(torque))
arm = arm_with(model, jax.tree.map(jnp.asarray, truth))
state = kj.initial_state(model)
ideal = jax.jit(jax.vmap(lambda c: kj.optim.record(arm, state, c, dt=dt, config=config)))(controls)
exact = jax.vmap(jax.vmap(measure))(jax.tree.map(lambda x: x[:, 1:], ideal.states))
measured = exact + noise * np.random.default_rng(0).standard_normal(exact.shape)
recordings = kj.optim.Recording(jax.tree.map(lambda x: x[:, :1], ideal.states), controls, measured)

# %% [markdown]
# A `Recording` holds the start, the controls and what was measured.
#
# ## The fit
#
# `identify` predicts all runs with the current numbers and improves them by Levenberg-Marquardt. The derivatives go through the simulation.
# `positive` keeps all numbers positive. `scale` is the size of the noise.

# %%
guess = {"mass": 0.3, "motor": 0.02, "pins": 0.01}
found = kj.optim.identify(
    model, arm_with, guess, recordings, dt=dt, measure=measure, scale=noise, positive=True, iterations=3 if FAST else 20, config=config
)
print(f"{'':8s}{'guess':>9s}{'truth':>9s}{'fitted':>10s}{'standard error':>16s}")
for name, value in found.parameters.items():
    print(f"{name:8s}{guess[name]:9.3f}{truth[name]:9.3f}{float(value):10.4f}{float(found.standard_errors[name]):16.4f}")
print(f"error left, in units of the noise: {float(found.rms):.3f}")
print(f"condition of the fit: {float(found.condition):.0f}")

# %% [markdown]
# The standard error says how far a fitted number may be off because of the noise. The condition says whether the data tell the numbers
# apart; a huge value means that some combination of them stays open. An error of about one unit of noise means that nothing but the noise
# is left.

# %%
predict = jax.jit(lambda p, c: jax.vmap(measure)(kj.optim.record(arm_with(model, p), state, c, dt=dt, config=config).states))
one = jax.tree.map(lambda x: x[0], controls)
figure, (cost, speeds) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
cost.semilogy(found.history, ".-")
cost.set(xlabel="iteration", title="cost over iterations")
speeds.plot(time + dt, measured[0, :, 0], ".", ms=2, color="grey", label="measured")
for label, p, style in (("guess", guess, "--"), ("fitted", found.parameters, "-")):
    speeds.plot(time, predict(jax.tree.map(jnp.asarray, p), one)[:-1, 0], style, lw=1, label=label)
speeds.set(xlabel="time [s]", ylabel="crank speed [rad/s]", title="first run")
speeds.legend(fontsize="small")
figure.suptitle("fit of the arm")

# %% [markdown]
# Left: the cost falls to what the noise leaves. Right: with the guess the crank moves differently from the measured points, with the
# fitted numbers it runs through them.
