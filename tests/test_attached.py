"""A value with a derivative of its own has it under every transformation, in any order of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import X64

from kamino_jax.attached import attach


def _rule(inputs, tangents, values, *, power):
    """Y = x^power, whatever the value is; the integer beside x has the empty tangent."""
    (x, n), (dx, _) = inputs, tangents
    (y,) = attach(_rule, (x, n), values, power=power)
    return (y,), (power * x ** (power - 1) * dx,)


def cube(x, n=2):
    """x³, found by a loop that cannot be differentiated in reverse."""
    held = jax.lax.stop_gradient(x)
    found, _ = jax.lax.while_loop(lambda c: c[1] < n, lambda c: (c[0] * held, c[1] + 1), (held, 0))
    return attach(_rule, (x, jnp.asarray(n)), (found,), power=3)[0]


def twice(x):
    """The cube of the cube, by a scan whose carry it is."""
    return jax.lax.scan(lambda c, _: (cube(c), None), x, length=2)[0]


xs = jnp.array([0.7, 1.1, -0.9])
total = lambda f: lambda xs: jnp.sum(jax.vmap(f)(xs) ** 2)
plain = {cube: lambda x: x**3, twice: lambda x: x**9}
ORDERS = {
    "value": lambda f: jax.jit(jax.vmap(f))(xs),
    "gradient in a batch": lambda f: jax.vmap(jax.grad(f))(xs),
    "gradient of a batch": lambda f: jax.grad(total(f))(xs),
    "forward of a batch": lambda f: jax.jit(jax.jacfwd(total(f)))(xs),
    "batch of batches": lambda f: jax.grad(lambda x: jnp.sum(jax.vmap(jax.vmap(f))(x.reshape(1, 3))))(xs),
    "hessian": lambda f: jax.jit(jax.hessian(total(f)))(xs),
    "reverse over forward": lambda f: jax.jacrev(jax.jacfwd(total(f)))(xs),
    "reverse over reverse": lambda f: jax.jacrev(jax.jacrev(total(f)))(xs),
    "checkpointed": lambda f: jax.grad(total(jax.checkpoint(f)))(xs),
    "linearised": lambda f: jax.linearize(total(f), xs)[1](jnp.ones(3)),
    "third": lambda f: jax.vmap(jax.grad(jax.grad(jax.grad(f))))(xs),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("f", [cube, twice], ids=["direct", "in a scan"])
def test_the_attached_derivative_is_the_derivative(f, order):
    np.testing.assert_allclose(ORDERS[order](f), ORDERS[order](plain[f]), rtol=1e-12 if X64 else 1e-4)


def test_an_input_without_a_batch_stays_without_one():
    scaled = lambda x, y: attach(_product, (x, y), (jax.lax.stop_gradient(x * y),))[0]
    slope = jax.grad(lambda x: jnp.sum(jax.vmap(scaled, in_axes=(None, 0))(x, xs)))(2.0)
    np.testing.assert_allclose(slope, jnp.sum(xs), rtol=1e-6)


def _product(inputs, tangents, values):
    (x, y), (dx, dy) = inputs, tangents
    return attach(_product, inputs, values), (x * dy + y * dx,)
