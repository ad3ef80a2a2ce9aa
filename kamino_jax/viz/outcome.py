"""One picture of an optimisation: cost over iterations, controls or paths, and the mechanism at a few instants."""

import numpy as np

from ..optim.examples import Outcome
from .plot import draw_mechanism


def plot_outcome(path: str, name: str, outcome: Outcome) -> None:
    """Write the picture of an example to `path` (.png, .pdf, .svg)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.2), layout="constrained")
    cost, curves, mechanism = figure.subplots(1, 3)
    history = outcome.history
    draw = cost.semilogy if np.all(history > 0) else cost.plot
    draw(np.arange(len(history)), history, lw=1, color="tab:green")
    cost.set(title="cost", xlabel="iteration")
    for (label, line), style in zip(outcome.curves.items(), ("-", "o"), strict=False):
        curves.plot(*line.T, style, lw=1, ms=3, fillstyle="none", label=label)
    curves.set(xlabel=outcome.labels[0], ylabel=outcome.labels[1], title="result")
    curves.legend(fontsize="small")
    draw_mechanism(mechanism, outcome.model, outcome.q)
    for axes in (cost, curves):
        axes.grid(alpha=0.3)
    figure.suptitle(name)
    figure.savefig(path, dpi=120)
