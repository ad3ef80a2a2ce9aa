# %% [markdown]
# # Trajectory optimisation
#
# Which pushes make a mechanism do what we want? Gradients through the simulation answer this. First a cart-pole swings up, by iterative
# LQR. Then a leg with a closed loop jumps, by gradient descent on its torques.

# %%
import dataclasses
import os

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax

import kamino_jax as kj
from kamino_jax.viz.plot import draw_mechanism

jax.config.update("jax_enable_x64", True)
FAST = "NOTEBOOK_FAST" in os.environ  # fewer steps and iterations, for tests
tight = dict(primal_tolerance=1e-7, dual_tolerance=1e-7, compl_tolerance=1e-7)
config = kj.Config(padmm=kj.PADMMConfig(rho_0=0.1, max_iterations=500, **tight))

# %% [markdown]
# ## Cart-pole swing-up
#
# A cart runs on a rail, and a pole hangs from it on a hinge. Only a force on the cart is allowed. After two seconds the pole should stand
# upright, and everything should be at rest.

# %%
cart_pole, start, _ = kj.scenes.cartpole(ground=False, limits=False)
hanging = jnp.asarray([0.125, 0.0, -0.375, 1.0, 0.0, 0.0, 0.0])  # the pole turned by half a turn about x
start = kj.replace(start, q=start.q.at[1].set(hanging), joint_q=jnp.asarray([0.0, np.pi]))
dt, steps = 0.025, 20 if FAST else 80


def upright(q):
    """Cosine of the angle between the pole and the vertical, from poses (..., bodies, 7)."""
    return 1 - 2 * (q[..., 1, 3] ** 2 + q[..., 1, 4] ** 2)


def effort(state, control):
    return 0.01 * dt * control.tau[0] ** 2


def end(state):
    at_rest = 20 * state.q[0, 1] ** 2 + 5 * state.u[0, 1] ** 2 + 5 * state.u[1, 3] ** 2
    return 100 * (1 - upright(state.q)) + at_rest


# %% [markdown]
# Iterative LQR linearises every step of the current motion (`kj.linearize`), solves the linear problem from the end to the start, and
# tries the result. Hanging at rest is a stationary point, so we start from a small swing.

# %%
first_guess = jnp.zeros((steps, 2)).at[:, 0].set(jnp.sin(4 * dt * jnp.arange(steps)))  # [N], [N m]: force on the cart, none at the hinge
swing_up = kj.optim.ilqr(cart_pole, start, effort, end, first_guess, dt=dt, dofs=(0,), iterations=3 if FAST else 60, config=config)
last = jax.tree.map(lambda x: x[-1], swing_up.trajectory.states)
print(f"cost {float(swing_up.history[0]):.1f} -> {float(swing_up.cost):.3f} in {swing_up.iterations} iterations")
print(f"upright at the end: {float(upright(last.q)):.5f}")
print(f"speeds at the end: cart {float(last.u[0, 1]):.3f} m/s, pole {float(last.u[1, 3]):.3f} rad/s")

# %%
figure, (cost, force, picture) = plt.subplots(1, 3, figsize=(10, 3.3), layout="constrained")
cost.semilogy(swing_up.history, ".-")
cost.set(xlabel="iteration", title="cost over iterations")
time = dt * np.arange(steps + 1)
force.plot(time[:-1], swing_up.tau[:, 0], label="force [N]")
force.plot(time, 5 * upright(swing_up.trajectory.states.q), label="5 x upright")
force.set(xlabel="time [s]", title="force on the cart")
force.legend(fontsize="small")
draw_mechanism(picture, cart_pole, np.asarray(swing_up.trajectory.states.q))
picture.set(title="five instants")
figure.suptitle("swing-up of a cart-pole")

# %% [markdown]
# Left: every accepted iterate costs less than the one before. Middle: the force swings the pole until it stands
# (orange, 5 means upright): it passes the top once and stands there the second time. Right: the cart-pole at five instants, pale to dark.
#
# ## A leg that jumps
#
# The leg is a five-bar: two thighs on the trunk, two shins that meet in a foot. This is a closed loop with two degrees of freedom. The
# trunk slides on a vertical rail. Motors turn the two thighs. The foot is a small sphere that touches the ground with friction. Stops keep
# the knees from overstretching.

# %%
HIP, THIGH, SHIN, HEIGHT, FOOT = 0.05, 0.15, 0.2, 0.22, 0.02  # [m] half hip distance, links, height of the hips over the foot, foot radius


def knee_of():
    """Where the thigh, from the hip, meets the shin, from the foot at (0, 0); x and z of the right leg."""
    down = np.array([-HIP, -HEIGHT])
    distance = np.linalg.norm(down)
    along = (THIGH**2 - SHIN**2 + distance**2) / (2 * distance)
    unit = down / distance
    return np.array([HIP, HEIGHT]) + along * unit + np.sqrt(THIGH**2 - along**2) * np.array([-unit[1], unit[0]])


def add_link(builder, name, start, end, mass):
    """A rod between two points (x, z), its z axis along it."""
    along = end - start
    length, half = np.linalg.norm(along), 0.5 * np.arctan2(along[0], along[1])
    middle, across = (start + end) / 2, mass * length**2 / 12
    turned = dict(position=(middle[0], 0.0, middle[1]), rotation=(0.0, np.sin(half), 0.0, np.cos(half)))
    builder.add_body(name, mass=mass, inertia=(across, across, 1e-4), **turned)


thigh, shin = knee_of() - (HIP, HEIGHT), -knee_of()
bend = np.arccos(thigh @ shin / (THIGH * SHIN))  # [rad] of the knee at the start; 0 would be a straight leg
stops = dict(limits=(0.2 - bend, bend - 0.2))

builder = kj.ModelBuilder()
builder.add_plane(mu=0.8)
lift = np.array([0.0, FOOT - 1e-4])  # the foot starts a little inside the ground, so that it surely touches
space = lambda p: (p[0], 0.0, p[1])
builder.add_body("trunk", mass=2.0, inertia=(0.01, 0.01, 0.01), position=space(lift + (0.0, HEIGHT)))
builder.add_prismatic(None, "trunk", name="rail", at=space(lift + (0.0, HEIGHT)), axis="z")
for side, name in ((1, "right"), (-1, "left")):
    hip, knee, foot = (np.array([side, 1]) * p + lift for p in (np.array([HIP, HEIGHT]), knee_of(), np.zeros(2)))
    add_link(builder, f"thigh_{name}", hip, knee, 0.15)
    add_link(builder, f"shin_{name}", knee, foot, 0.1)
    builder.add_revolute("trunk", f"thigh_{name}", name=f"hip_{name}", at=space(hip), axis="y")
    builder.add_revolute(f"thigh_{name}", f"shin_{name}", name=f"knee_{name}", at=space(knee), axis="y", **stops)
builder.add_revolute("shin_right", "shin_left", name="foot", at=space(lift), axis="y")  # closes the loop
builder.add_sphere("shin_right", FOOT, position=(0.0, 0.0, SHIN / 2), mu=0.8, gap=0.01)
leg = builder.finalize()
hips = jnp.array([leg.names.index("joints", "hip_right"), leg.names.index("joints", "hip_left")])  # one DoF per joint: same numbers
print("joints:", ", ".join(leg.names.joints))

# %% [markdown]
# We maximise the apex, the highest point that the centre of mass will reach: its height plus v²/2g. The torques are bounded by 6 N m, and
# have a small price. The search starts from a weak constant torque, under which the trunk sinks.
#
# The foot should not enter the ground before the contact is noticed. So contacts are found up to 1 cm away (`gap` above), and kept
# (`cull_speculative_contacts=False`): they stop the foot from crossing the distance that is left within a step.

# %%
dt, steps = 5e-3, 12 if FAST else 36
BOUND, PRICE = 6.0, 0.002
foresighted = dataclasses.replace(config, dynamics=kj.DynamicsConfig(cull_speculative_contacts=False))


def centre_of_mass(state):
    """Height [m] and vertical speed [m/s] of the centre of mass."""
    share = leg.bodies.mass / jnp.sum(leg.bodies.mass)
    return share @ state.q[:, 2], share @ state.u[:, 2]


def apex(state):
    height, speed = centre_of_mass(state)
    return height + jnp.maximum(speed, 0) ** 2 / (2 * 9.81)


still = kj.optim.hold(kj.zero_control(leg), steps)
weak = kj.replace(still, tau=still.tau.at[:, hips].set(jnp.array([1.5, -1.5])))
limit = jnp.zeros(leg.layout.nv).at[hips].set(BOUND)  # the other joints have no motors
jump = kj.optim.optimize_controls(
    leg,
    kj.initial_state(leg),
    lambda state, control: PRICE * dt * jnp.sum(control.tau**2),
    lambda state: -apex(state),
    weak,
    dt=dt,
    bounds={"tau": (-limit, limit)},
    smoothness=1e-5,
    optimizer=optax.adam(0.5),
    iterations=2 if FAST else 60,
    config=foresighted,
)
states, torque = jump.trajectory.states, np.asarray(jump.controls.tau[:, hips])
print(f"cost {float(jump.history[0]):.4f} -> {float(jump.cost):.4f} in {jump.iterations} iterations")
print(f"apex of the centre of mass: {float(apex(jax.tree.map(lambda x: x[0], states))):.3f} m standing")
print(f"                            {float(apex(jax.tree.map(lambda x: x[-1], states))):.3f} m jumping")
print(f"largest torque {np.abs(torque).max():.2f} N m; every step converged: {bool(jump.trajectory.status.converged.all())}")

# %% [markdown]
# The apex was computed from the last state of the plan. Does the leg really fly that high? We go on without torques and look.

# %%
take_off = jax.tree.map(lambda x: x[-1], states)
flight = kj.rollout(leg, take_off, None, dt=dt, steps=steps, config=foresighted, record=lambda state, info: state)[1]
whole = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), states, flight)
height = jax.vmap(centre_of_mass)(whole)[0]
print(f"highest point of the centre of mass: {float(height.max()):.3f} m")

# %%
figure, (cost, torques, heights, picture) = plt.subplots(1, 4, figsize=(12, 3.3), layout="constrained")
cost.plot(jump.history, ".-")
cost.set(xlabel="iteration", title="cost over iterations")
time = dt * np.arange(2 * steps + 1)
torques.step(time[:steps], torque, where="post")
torques.set(xlabel="time [s]", title="hip torques [N m]")
shin = leg.names.index("bodies", "shin_right")
x, y = whole.q[:, shin, 3], whole.q[:, shin, 4]
sole = whole.q[:, shin, 2] + SHIN / 2 * (1 - 2 * (x**2 + y**2)) - FOOT
heights.plot(time, height, label="centre of mass")
heights.plot(time, sole, label="sole of the foot")
heights.axvline(dt * steps, color="grey", lw=0.8, ls=":")
heights.set(xlabel="time [s]", title="heights [m]")
heights.legend(fontsize="small")
draw_mechanism(picture, leg, np.asarray(states.q))
picture.set(title="five instants of the plan")
figure.suptitle("a five-bar leg jumps")

# %% [markdown]
# From left to right: the cost falls quickly and then slowly. The torques stay at their bound until the leg is nearly stretched. The centre
# of mass rises, and the foot leaves the ground; the dotted line is the end of the plan, and what follows is free flight. The last picture
# shows the leg from the crouch (pale) to the flight (dark).
