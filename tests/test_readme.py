"""What the README promises runs as it stands."""

import pathlib
import re
import subprocess
import sys

import jax
import pytest

README = pathlib.Path(__file__).parent.parent / "README.md"
pytestmark = pytest.mark.skipif(not README.is_file(), reason="no checkout")


def test_the_example_runs_and_moves_faster_where_it_should():
    code = re.search(r"```python\n(.*?)```", README.read_text(), re.S).group(1)
    names = {}
    exec(compile(code, "README.md", "exec"), names)
    angles = names["trajectory"]["joint_q"]
    assert angles.shape == (32, 500, 1)
    assert bool(jax.numpy.isfinite(angles).all())
    assert float(angles[-1, 100, 0]) > 2 * float(angles[0, 100, 0])


def test_the_gradient_example_says_what_a_sliding_box_does():
    code = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)[1]
    names = {}
    exec(compile(code, "README.md", "exec"), names)
    # x = v t - mu g t²/2, with one step's difference between the sum over steps and the integral
    assert abs(float(names["by_friction"]) + 0.5 * 9.81 * 0.01) < 1e-3
    assert abs(float(names["by_speed"]) - 0.1) < 1e-5


def test_both_commands_are_marked_for_machines():
    text = README.read_text()
    for mark in ("simulate", "test"):
        assert re.search(rf"<!-- {mark} -->\n```bash\npython -m pip install .*```", text, re.S)


def test_the_module_answers_for_help():
    out = subprocess.run([sys.executable, "-m", "kamino_jax", "--help"], capture_output=True, text=True)
    assert out.returncode == 0 and "simulate" in out.stdout
