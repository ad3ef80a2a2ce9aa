# %% [markdown]
# # Quick start: a four-bar linkage
#
# A four-bar linkage has three moving links, called crank, coupler and rocker, and four hinges. The fourth bar is the ground. The links form
# a closed loop, so the four hinge angles cannot be chosen freely. Here we build one, simulate it, simulate sixteen of them at once, look
# at the status of the solver, and take a gradient.

# %%
import os

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import kamino_jax as kj

jax.config.update("jax_enable_x64", True)  # double precision, for accurate gradients
FAST = "NOTEBOOK_FAST" in os.environ  # fewer steps, for tests

# %% [markdown]
# ## Build it
#
# We place the pins A, B, C, D in the x-z plane (z is up). A and D are fixed to the ground. Each link is a thin capsule between two pins. It
# gets its mass from the density. `collides=False` says that the capsules are only mass and looks.
#
# Hinges are added one by one. The last one closes the loop, and it is a hinge like the others. A velocity drive turns the crank: it follows
# `u_ref` with gain `kd`, and its torque is bounded by `effort_max`.

# %%
pins = {"A": (0.0, 0.0, 0.0), "B": (0.0, 0.0, 0.1), "C": (0.2779, 0.0, 0.2130), "D": (0.3, 0.0, 0.0)}
links = {"crank": ("A", "B"), "coupler": ("B", "C"), "rocker": ("D", "C")}

builder = kj.ModelBuilder()  # SI units; gravity 9.81 m/s² along -z
for name, (start, end) in links.items():
    start, end = np.array(pins[start]), np.array(pins[end])
    along = end - start
    length = np.linalg.norm(along)
    half_angle = 0.5 * np.arctan2(along[0], along[2])  # turns z onto the link
    builder.add_body(name, position=tuple((start + end) / 2), rotation=(0.0, np.sin(half_angle), 0.0, np.cos(half_angle)))
    builder.add_capsule(name, 0.01, length / 2, density=1500.0, collides=False)

builder.add_revolute(None, "crank", name="motor", at=pins["A"], axis="y", drive="velocity", kd=1.0, effort_max=5.0)
builder.add_revolute("crank", "coupler", name="crank_pin", at=pins["B"], axis="y")
builder.add_revolute("coupler", "rocker", name="rocker_pin", at=pins["C"], axis="y")
builder.add_revolute(None, "rocker", name="pivot", at=pins["D"], axis="y")
model = builder.finalize()
print("masses [kg]:", dict(zip(model.names.bodies, np.round(np.asarray(model.bodies.mass), 3).tolist(), strict=True)))

# %% [markdown]
# ## Simulate one world
#
# `kj.rollout` makes many steps and records what we name. It is a pure function, so `jax.jit` compiles it. The first call takes some
# seconds, later calls do not.

# %%
dt, steps = 2e-3, 50 if FAST else 600
config = kj.Config(padmm=kj.PADMMConfig(rho_0=0.1))
state, control = kj.initial_state(model), kj.zero_control(model)


def swing(speed):
    """Turn the crank at a speed [rad/s]."""
    inputs = kj.replace(control, u_ref=control.u_ref.at[0].set(speed))
    return kj.rollout(model, state, lambda *_: inputs, dt=dt, steps=steps, config=config)[1]


trajectory = jax.jit(swing)(10.0)
time = dt * np.arange(1, steps + 1)
crank, rocker = np.asarray(trajectory["joint_q"][:, [0, 3]]).T

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.plot(time, np.unwrap(crank), label="crank")
left.plot(time, rocker, label="rocker")
left.set(xlabel="time [s]", ylabel="angle [rad]", title="the crank turns, the rocker rocks")
left.legend()
for name, at in (("crank", 0), ("coupler", 1), ("rocker", 2)):
    right.plot(*np.asarray(trajectory["q"][:, at, :3:2]).T, lw=1, label=f"centre of the {name}")
right.set(xlabel="x [m]", ylabel="z [m]", title="paths of the links", aspect="equal")
right.legend(fontsize="small")

# %% [markdown]
# Left: the crank angle grows steadily, the rocker goes back and forth. Right: the centre of the crank draws a circle, that of the rocker an
# arc. The centre of the coupler draws a closed curve. Such curves are what linkages are designed for (see `four_bar_synthesis`).
#
# ## Was every step solved?
#
# A step that fails is data, not an exception. `Status` says for each step whether the solver converged, in how many iterations, and what
# is left of the equations. `kj.raise_if_failed` turns a failure into an exception where you want one.

# %%
status = trajectory["status"]
kj.raise_if_failed(status)
print("steps converged:", int(status.converged.sum()), "of", steps)
print("iterations per step: median", int(np.median(status.iterations)), "largest", int(status.iterations.max()))
print(f"largest residual: {float(jnp.maximum(status.r_p, status.r_d).max()):.1e}")

# %% [markdown]
# ## Sixteen worlds at once
#
# `jax.vmap` makes a batch of worlds from a function of one world.

# %%
speeds = jnp.linspace(2.0, 20.0, 4 if FAST else 16)
worlds = jax.jit(jax.vmap(swing))(speeds)
kj.raise_if_failed(worlds["status"])

figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
for k, speed in enumerate(speeds):
    axes.plot(
        time, worlds["joint_q"][k, :, 3], lw=1, color=plt.cm.viridis(k / len(speeds)), label=f"{float(speed):.1f}" if k % 5 == 0 else None
    )
axes.set(xlabel="time [s]", ylabel="rocker angle [rad]", title="rocker angle in all worlds")
axes.legend(title="crank [rad/s]", fontsize="small")

# %% [markdown]
# Each line is one world. A faster crank makes the rocker go faster, between the same two ends.
#
# ## A gradient
#
# How does the rocker angle after 100 steps depend on the crank speed and on the masses of the links? `jax.grad` answers through all steps.
# We compare with central differences.

# %%


def rocker_angle(speed, mass):
    """Rocker angle [rad] after 100 steps."""
    heavier = kj.replace(model, bodies=kj.replace(model.bodies, mass=mass))
    inputs = kj.replace(control, u_ref=control.u_ref.at[0].set(speed))
    last, _ = kj.rollout(heavier, state, lambda *_: inputs, dt=dt, steps=100, config=config, record=())
    return last.joint_q[3]


angle_and_gradient = jax.jit(jax.value_and_grad(rocker_angle, argnums=(0, 1)))
mass, e = model.bodies.mass, 1e-4
angle, (by_speed, by_mass) = angle_and_gradient(10.0, mass)


def central(change):
    """Central difference along a change of (speed, mass)."""
    ends = [angle_and_gradient(10.0 + s * e * change[0], mass + s * e * change[1])[0] for s in (1, -1)]
    return float(ends[0] - ends[1]) / (2 * e)


print(f"rocker angle {float(angle):.4f} rad")
print(f"by crank speed:       gradient {float(by_speed): .6f}   central difference {central((1.0, np.zeros(3))): .6f}")
for k, name in enumerate(model.names.bodies):
    print(f"by mass of {name:8s}:  gradient {float(by_mass[k]): .6f}   central difference {central((0.0, np.eye(3)[k])): .6f}")

# %% [markdown]
# The two columns agree, for the speed of the crank and for all three masses.
#
# Where to go on: `contact_gradients` says what a gradient means where bodies touch, `trajectory_optimisation` and
# `system_identification` put gradients to work.
