# %% [markdown]
# # The anatomy of a contact gradient
#
# A simulation with hard contact is smooth most of the time and has kinks in between. This notebook looks at both on the smallest examples:
# a block on the ground and a bouncing ball. It shows what `jax.grad` of a step means, where it says nothing, and what to do then.

# %%
import dataclasses
import os

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import kamino_jax as kj

jax.config.update("jax_enable_x64", True)
FAST = "NOTEBOOK_FAST" in os.environ  # fewer points, for tests
tight = kj.PADMMConfig(rho_0=0.1, max_iterations=5000, primal_tolerance=1e-10, dual_tolerance=1e-10, compl_tolerance=1e-10)
no_recovery = kj.ConstraintsConfig(gamma=0.0)  # overlaps stay as they are: the formulas below are then exact
config = kj.Config(padmm=tight, constraints=no_recovery)

# %% [markdown]
# ## A block is pushed
#
# A block of mass m = 1 kg rests on the ground, with friction mu = 0.5. We push it sideways with a force F for one step of h = 0.01 s. The
# scene sets it 0.1 mm into the ground, so that it surely touches. We want the speed after the step, v+, and its derivatives. A second
# force lifts the block.

# %%
model, state, control = kj.scenes.box_on_plane(height=-1e-4, mu=0.5)
m, g, h, mu = 1.0, 9.81, 0.01, 0.5


def speed_after(push, lift, mu, config=config):
    """Speed [m/s] of the block along x after one step from rest."""
    slippery = kj.replace(model, geoms=kj.replace(model.geoms, mu=jnp.full_like(model.geoms.mu, 1.0) * mu))
    forces = control.w_ext.at[0, 0].set(push).at[0, 2].set(lift)
    after, info = kj.step(slippery, state, kj.replace(control, w_ext=forces), dt=h, config=config)
    return after.u[0, 0]


speed_and_gradient = jax.jit(jax.value_and_grad(speed_after, argnums=(0, 2)))
print(f"{'':10s}{'F [N]':>7s}{'lift [N]':>10s}{'v+ [m/s]':>10s}{'dv+/dF':>9s}{'dv+/dmu':>10s}")
for name, push, lift in (("sticks", 3.0, 0.0), ("slides", 7.0, 0.0), ("is open", 3.0, 12.0)):
    speed, (by_push, by_mu) = speed_and_gradient(push, lift, mu)
    speed, by_push, by_mu = (round(float(x), 6) + 0.0 for x in (speed, by_push, by_mu))
    print(f"{name:10s}{push:7.1f}{lift:10.1f}{speed:10.4f}{by_push:9.4f}{by_mu:10.4f}")
print(f"\nh/m = {h / m:.4f}   -h g = {-h * g:.4f}")

# %% [markdown]
# There are three modes, and each has its own derivative:
#
# - **Sticking.** Friction cancels the push. The block does not move, and a little more push does not move it: both derivatives are 0.
# - **Sliding.** Friction is mu m g, whatever the push. So dv+/dF = h/m and dv+/dmu = -h g.
# - **Open.** The lift is larger than the weight, nothing touches. dv+/dF = h/m again, and friction does not matter.
#
# ## The tie
#
# At F = mu m g = 4.905 N the block is about to slide. We walk across this point and compare the gradient with central differences
# (v+(F + e) - v+(F - e)) / 2e.

# %%
tie = mu * m * g
pushes = tie + np.linspace(-3.0, 3.0, 13 if FAST else 61)
answers = [speed_and_gradient(F, 0.0, mu) for F in pushes]
speeds, exact = np.array([[float(speed), float(by_push)] for speed, (by_push, _) in answers]).T


def central(F, e):
    """Central difference of v+ by F."""
    return float(speed_and_gradient(F + e, 0.0, mu)[0] - speed_and_gradient(F - e, 0.0, mu)[0]) / (2 * e)


figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.3), layout="constrained")
left.plot(pushes, speeds, ".-")
left.set(xlabel="push F [N]", ylabel="v+ [m/s]", title="speed after the step")
right.plot(pushes, exact, "k.", label="gradient")
for e in (0.5, 2.0):
    right.plot(pushes, [central(F, e) for F in pushes], lw=1, label=f"central difference, e = {e} N")
right.set(xlabel="push F [N]", ylabel="dv+/dF [s/kg]", title="its derivative")
right.legend(fontsize="small", loc=(0.03, 0.6))
figure.suptitle("from sticking to sliding")
print(f"at the tie: gradient {abs(float(speed_and_gradient(tie, 0.0, mu)[1][0])):.4f}")
for e in (1e-1, 1e-3, 1e-5):
    print(f"            central difference with e = {e:g} N: {central(tie, e):.4f}")

# %% [markdown]
# Left: the speed is 0 until the tie and then grows in proportion. It has a kink. Right: the gradient (dots) jumps from 0 to h/m. It is
# always that of one side. Central differences that reach across the tie mix both sides. At the tie itself they give the mean of the two,
# h/2m, however small e is. That is no derivative of either side.
#
# ## Smoothed gradients
#
# A block that sticks has the gradient 0. An optimiser that starts there learns nothing. `GradientConfig(mode="smoothed")` blends the modes
# over a region of size `kappa` [J]. The step itself stays hard: only its derivative changes. It is not the true derivative, but it tells
# that a larger push would move the block.

# %%
figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
axes.plot(pushes, exact, "k.", label="exact")
for kappa in (1e-4,) if FAST else (1e-5, 1e-4, 1e-3):
    smooth = dataclasses.replace(config, gradient=kj.GradientConfig(mode="smoothed", kappa=kappa))
    slope = jax.jit(jax.value_and_grad(lambda F, smooth=smooth: speed_after(F, 0.0, mu, smooth)))
    values, slopes = np.array([[float(x) for x in slope(F)] for F in pushes]).T
    axes.plot(pushes, slopes, lw=1.2, label=f"kappa = {kappa:g} J")
    print(f"kappa {kappa:g} J: step changed by {np.abs(values - speeds).max():.0e} m/s; slope at F = {pushes[0]:.2f} N: {slopes[0]:.1e}")
axes.set(xlabel="push F [N]", ylabel="dv+/dF [s/kg]", title="smoothed gradients")
axes.legend(fontsize="small")

# %% [markdown]
# The smaller kappa, the closer to the jump. A larger kappa carries the information further into the sticking region, and is further from
# the exact gradient.
#
# ## What hard contact leaves open
#
# The block touches with four corners. Four contacts carry one weight, so their forces are not determined: some can take more and others
# less. Does that matter for the motion? We let the block slide, with and without a spin about the vertical. The solver starts from two
# different guesses of the forces (`warmstart_mode="internal"` takes them from the state), and solves to 1e-10 both times.

# %%
stiffness, h_fine = 1e6, 1e-3  # [N/m], [s]
block, rest, control = kj.scenes.box_on_plane(height=-m * g / (4 * stiffness), mu=0.4)  # as deep as its weight presses it in
block = kj.replace(block, geoms=kj.replace(block.geoms, stiffness=jnp.full_like(block.geoms.stiffness, stiffness), damping=jnp.zeros(2)))
guesses = {"zero": jnp.zeros(12), "two corners": jnp.zeros(12).at[jnp.array([2, 11])].set(20 * m * g)}  # three rows a contact, normal last
internal = dataclasses.replace(tight, warmstart_mode="internal", warmstart_scale=1.0)


def spinning(compliant):
    """A function (spin, guess) -> (d twist+/d spin, (twist+, normal forces)) for the sliding block."""
    config = kj.Config(padmm=internal, constraints=kj.ConstraintsConfig(gamma=0.0, delta=0.0, contact_compliance=compliant))

    def after(spin, guess):
        start = kj.replace(rest, u=jnp.array([[2.0, 0.6, 0, 0, 0, 0]]).at[0, 5].set(spin))
        start = kj.replace(start, reactions=kj.replace(start.reactions, force=guess))
        moved, info = kj.step(block, start, control, dt=h_fine, config=config)
        return moved.u[0], (moved.u[0], info.lam[2::3] / h_fine)

    return jax.jit(jax.jacfwd(after, has_aux=True))


def compare(after):
    """Print how far two guesses lead apart, and the gradient beside central differences."""
    for spin in (0.0, 0.5):
        (_, (u, force)), (_, (v, other)) = (after(spin, guess) for guess in guesses.values())
        print(
            f"spin {spin} rad/s: two guesses differ by {jnp.abs(force - other).max():.0e} N in forces, {jnp.abs(u - v).max():.0e} in twists"
        )
    e = 1e-3
    gradient, start = after(0.5, guesses["zero"])[0], guesses["zero"]
    difference = (after(0.5 + e, start)[1][0] - after(0.5 - e, start)[1][0]) / (2 * e)
    print(f"d(vx+)/d(spin): gradient {float(gradient[0]):.8f}, central difference {float(difference[0]):.8f}")


compare(spinning(compliant=False))

# %% [markdown]
# The forces depend on the guess in both cases. Without spin, all corners slide the same way, and the motion is the same. With spin, each
# corner slides in its own direction. How the weight is shared now matters, and the motion depends on the guess, a little. The
# gradient and the differences agree to a few digits only. Neither is wrong: rigid contact does not determine the answer.
#
# A small compliance does. With `contact_compliance=True` the contacts get the stiffness of their materials, here 1 kN per mm.

# %%
compare(spinning(compliant=True))

# %% [markdown]
# Now forces, motion and gradient are determined, and the gradient agrees with the differences. In doubt, give contacts a stiffness.
#
# ## Impact
#
# A ball flies down with speed s from height z0, without gravity, and bounces with restitution e = 0.5. If it starts higher by d, it hits
# later by d/s, and then rises for a shorter time. So at a fixed time T after the bounce dz(T)/dz0 = -e. What does the simulation say?

# %%
bounce, steps, dt, radius, fall = 0.5, 20, 0.01, 0.1, 1.0
builder = kj.ModelBuilder(gravity=(0.0, 0.0, 0.0))
builder.add_plane(restitution=bounce)
builder.add_body("ball", position=(0.0, 0.0, 0.2), velocity=(0.0, 0.0, -fall))
builder.add_sphere("ball", radius, mass=1.0, restitution=bounce)
ball = builder.finalize()
thrown = kj.initial_state(ball)


def bounced(config):
    """A function z0 -> (z(T), dz(T)/dz0)."""

    def height(z0):
        start = kj.replace(thrown, q=thrown.q.at[0, 2].set(z0))
        return kj.rollout(ball, start, None, dt=dt, steps=steps, config=config, record=())[0].q[0, 2]

    return jax.jit(jax.value_and_grad(height))


heights = np.linspace(0.1813, 0.2213, 9 if FAST else 81)
plain = kj.Config(padmm=tight, constraints=no_recovery)
results = {"fixed step": np.array([[float(x) for x in bounced_at] for bounced_at in map(bounced(plain), heights)]).T}
timed = dataclasses.replace(plain, impact_time=True)
results["with impact time"] = np.array([[float(x) for x in bounced_at] for bounced_at in map(bounced(timed), heights)]).T

figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
for (name, (z, slope)), style in zip(results.items(), (".", "-"), strict=True):
    axes.plot(heights, z, style, label=name)
    print(f"{name:17s}: dz(T)/dz0 between {slope.min():+.6f} and {slope.max():+.6f}")
axes.set(xlabel="z0 [m]", ylabel="z(T) [m]", title="height after a bounce")
axes.legend(fontsize="small")

# %% [markdown]
# With a fixed step (dots) the ball turns around at the end of a step. Within a tooth, one more millimetre of height at the start is one
# more millimetre at the end: the gradient is +1, and it is the true slope of the teeth. But the teeth go down together with slope -e, and
# that is what one wants to know. `Config(impact_time=True)` (line) turns the ball around at the moment of impact within the step. The teeth
# are gone, and the gradient is -e.
