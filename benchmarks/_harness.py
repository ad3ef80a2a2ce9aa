"""Timing: trace and compile apart from running, warm-up, median of several runs of the blocked result, one JSON line each."""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time

import jax
import numpy as np


def compiled(function, *args):
    """(executable, trace seconds, compile seconds)."""
    clock = [time.perf_counter()]
    lowered = jax.jit(function).trace(*args).lower()
    clock.append(time.perf_counter())
    program = lowered.compile()
    clock.append(time.perf_counter())
    return program, clock[1] - clock[0], clock[2] - clock[1]


def median_seconds(call, repeats=5):
    """Median wall time of `call()`, which must block until its result is there; one call of warm-up."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def commit():
    """Short hash of the checkout, or "unknown"."""
    out = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return out.stdout.strip() or "unknown"


def percentiles(name, values):
    """{name_p50, name_p99} of an array."""
    p50, p99 = np.percentile(np.asarray(values, float), (50, 99))
    return {f"{name}_p50": float(p50), f"{name}_p99": float(p99)}


def emit(out, **figures):
    """Write one JSON line to the file and to the screen."""
    line = json.dumps({k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in figures.items()})
    print(line, flush=True)
    if out:
        with open(out, "a") as file:
            file.write(line + "\n")


def parser(description, **kwargs):
    """Arguments that every benchmark takes."""
    p = argparse.ArgumentParser(description=description, **kwargs)
    p.add_argument("--out", help="file to which JSON lines are added")
    p.add_argument("--smoke", action="store_true", help="smallest sizes: does it run at all")
    return p


def machine():
    """What ran it."""
    device = jax.devices()[0]
    return dict(device=device.device_kind, cores=os.cpu_count(), python=platform.python_version())


if __name__ == "__main__":
    sys.exit("import this module from a benchmark")
