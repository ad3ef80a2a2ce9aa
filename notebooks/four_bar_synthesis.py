# %% [markdown]
# # Designing a four-bar by gradient
#
# A point on the coupler of a four-bar draws a closed curve, the coupler curve. Which lengths of the links make it follow a curve that we
# want? This is path synthesis. Here the wanted curve is a slanted ellipse, to be run through in time with the crank.

# %%
import os

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import kamino_jax as kj

jax.config.update("jax_enable_x64", True)
FAST = "NOTEBOOK_FAST" in os.environ  # fewer iterations, for tests

# %% [markdown]
# ## The target
#
# 24 points on an ellipse of 0.4 m by 0.16 m, one for every 15 degrees of the crank.

# %%
angles = jnp.linspace(0, 2 * jnp.pi, 24, endpoint=False)
x, z, slant = 0.2 * jnp.cos(angles), 0.08 * jnp.sin(angles), 0.4
targets = jnp.stack([x * np.cos(slant) - z * np.sin(slant), x * np.sin(slant) + z * np.cos(slant)], axis=1)

# %% [markdown]
# ## A start
#
# Far from the answer, gradients lead into poor designs. So we first draw many random four-bars, move and scale each onto the target, and
# take the best one. `FourBar` holds ten numbers: four lengths, the traced point on the coupler, and where the mechanism stands.

# %%
start = kj.optim.four_bar_start(targets, angles, key=jax.random.key(0), candidates=500 if FAST else 4096)
path_start, closes = kj.optim.four_bar_path(start, angles)


def rms(path):
    """Root mean square distance to the targets [mm]."""
    return 1e3 * float(jnp.sqrt(jnp.mean(jnp.sum((path - targets) ** 2, axis=1))))


print(f"start: {rms(path_start):.2f} mm off, loop closes: {bool(closes.all())}")

# %% [markdown]
# ## Descent
#
# `design_four_bar` closes the loops of the mechanism at every crank angle with Newton's method. The derivative of the closed positions
# comes from the implicit function theorem. Levenberg-Marquardt then improves the ten numbers. `prior` keeps the design near its start, so
# that links do not grow without end for a tiny gain.

# %%
found = kj.optim.design_four_bar(targets, angles, start=start, prior=1e-2, iterations=5 if FAST else 60)
path = np.asarray(found.path)[:, ::2]  # x and z
for name, before, after in zip(("crank", "coupler", "rocker", "ground"), start.lengths, found.parameters.lengths, strict=True):
    print(f"{name:8s} {float(before):.3f} m -> {float(after):.3f} m")
print(f"result: {rms(path):.2f} mm off after {found.iterations} iterations")
print(f"loops closed to {float(found.gap.max()):.0e}; the crank turns all the way: {bool(kj.optim.grashof(found.parameters.lengths))}")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.semilogy(found.history, ".-")
left.set(xlabel="iteration", ylabel="cost [m²]", title="cost over iterations")
loop = lambda p: np.concatenate([p, p[:1]]).T
right.plot(*targets.T, "o", fillstyle="none", label="targets")
right.plot(*loop(path_start), "--", lw=1, color="grey", label="start")
right.plot(*loop(path), lw=1.5, label="result")
right.set(xlabel="x [m]", ylabel="z [m]", title="coupler curve", aspect="equal")
right.legend(fontsize="small")

# %% [markdown]
# Left: the cost falls over the iterations. Right: the curve of the result (line) passes closer to the targets
# (circles) than that of the start (dashed).
#
# ## The mechanism
#
# We draw the result at four crank angles. The poses of the three links come with it.

# %%
q = np.asarray(found.q)
coupler_length = float(found.parameters.lengths[1])


def along(pose, length):
    """The far end (x, z) of a link that starts at its frame."""
    angle = 2 * np.arctan2(-pose[4], pose[6])
    return pose[[0, 2]] + length * np.array([np.cos(angle), np.sin(angle)])


figure, axes = plt.subplots(1, 4, figsize=(9, 3.2), layout="constrained", sharex=True, sharey=True)
for at, ax in zip(range(0, 24, 6), axes, strict=True):
    crank, coupler, rocker = q[at]
    joints = np.stack([crank[[0, 2]], coupler[[0, 2]], along(coupler, coupler_length), rocker[[0, 2]]])
    ax.plot(*targets.T, ".", ms=3, color="tab:blue")
    ax.plot(*joints.T, "o-", color="k", lw=2, ms=4)
    ax.fill(*np.stack([joints[1], joints[2], path[at]]).T, color="tab:orange", alpha=0.4)
    ax.plot(*path[at], "o", color="tab:orange")
    ax.set(aspect="equal", xlabel="x [m]", title=f"{15 * at} degrees")
axes[0].set(ylabel="z [m]")
figure.suptitle("the four-bar at four crank angles")

# %% [markdown]
# Black: crank, coupler and rocker with their pins. Orange: the coupler as a plate, with the traced point. Blue: the targets. The traced
# point sits on the ellipse in all four pictures.
#
# The same works for any mechanism: `kj.optim.design_linkage` takes a function from parameters to a model.
