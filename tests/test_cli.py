"""The command line: runs scenes, prints honest figures, draws, and refuses wrong input in one line."""

import json

import pytest

from kamino_jax.__main__ import main

PNG = b"\x89PNG"


def test_simulate_reports_and_draws(capsys, tmp_path):
    picture = tmp_path / "run.png"
    assert main(["simulate", "crank_rocker", "--worlds", "2", "--steps", "20", "--json", "--plot", str(picture)]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["scene"] == "crank_rocker" and figures["worlds"] == 2 and figures["steps"] == 20
    assert figures["bodies"] == 3 and figures["rows"]["kinematic"] == 20
    assert figures["converged_fraction"] == 1.0 and figures["contacts_found"] == 0 and figures["finite"]
    assert figures["joint_gap_max_m"] < 1e-4  # 20 steps of 2 ms from rest
    assert figures["energy_end_j"] == pytest.approx(figures["energy_start_j"], rel=1e-3)
    assert figures["world_steps_per_s"] == pytest.approx(40 / figures["run_s"])
    assert picture.read_bytes().startswith(PNG)


def test_simulate_prints_a_table(capsys):
    assert main(["simulate", "box_on_plane", "--steps", "5", "--integrator", "moreau"]) == 0
    out = capsys.readouterr().out
    assert "natural_map_p50" in out and "contacts_kept" in out


def test_info_describes_a_scene(capsys):
    assert main(["info", "boxes_fourbar", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["bodies"] == 4 and figures["joint_kinds"] == "revolute" and figures["rows"]["kinematic"] == 20


WRONG = {
    "no such scene": (["simulate", "teapot"], "no scene named 'teapot'"),
    "no such file": (["info", "missing.urdf"], "no file 'missing.urdf'"),
    "no worlds": (["simulate", "cartpole", "--worlds", "0"], "--worlds must be at least 1"),
    "no time": (["simulate", "cartpole", "--dt", "0"], "--dt must be positive"),
    "negative tolerance": (["simulate", "cartpole", "--tolerance", "-1"], "primal_tolerance"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_refused_in_one_line(case, capsys):
    arguments, message = WRONG[case]
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
