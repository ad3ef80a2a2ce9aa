"""Condense recorded contacts into `collision_cases.json`: python make_collision_cases.py cases.json random.json.

The sources are recordings of Newton 1.8.0 (SolverKamino's collision pipelines, float32). Kept: pairs of shapes that kamino_jax supports,
the result of the "unified" pipeline, and for boxes the points of the "primitive" one (8 slots, duplicates removed).
"""

import json
import sys
from pathlib import Path

from kamino_jax.collision.kinds import SHAPES, SLOTS


def distinct(contacts):
    """Drops contacts at the place of an earlier one."""
    kept = []
    for c in contacts:
        if all(max(abs(x - y) for x, y in zip(c["A"], k["A"], strict=True)) > 1e-5 for k in kept):
            kept.append(c)
    return kept


def contacts_of(result):
    """{n, d, A, B, first} of each recorded contact; first: index of the shape on side A."""
    if result is None:
        return None
    rows = result["contacts"] if isinstance(result, dict) else result
    short = {"normal": "n", "distance": "d", "position_A": "A", "position_B": "B"}
    rows = [{short.get(k, k): v for k, v in row.items()} for row in rows]
    return [{**{k: row[k] for k in "ndAB"}, "first": (row.get("gid_AB") or row["g"])[0]} for row in rows]


def rounded(x):
    return [round(v, 9) for v in x] if isinstance(x, list) else x


def condensed(case):
    """One case, or None if kamino_jax has no such pair."""
    kinds = sorted((s["type"] for s in case["shapes"]), key=lambda k: SHAPES.index(k) if k in SHAPES else 99)
    if "_".join(kinds) not in SLOTS:
        return None
    defaults = {"type": None, "params": None, "pos": None, "quat_xyzw": [0, 0, 0, 1], "static": False, "margin": 0, "gap": 0}
    shapes = [{k: rounded(s[k]) for k, v in defaults.items() if s.get(k, v) != v} for s in case["shapes"]]
    results = case.get("results", case)
    out = {"id": case["id"], "default_gap": case.get("default_gap", 0), "shapes": shapes, "unified": contacts_of(results["unified"])}
    if "results" not in case:  # random poses: the deepest contact
        out["unified"] = sorted(out["unified"] or [], key=lambda c: c["d"])[:1]
    if kinds == ["box", "box"] and "results" in case:
        out["primitive"] = distinct(contacts_of(results["primitive"]))
    return out


def main(cases, random):
    sources = {"cases": json.loads(Path(cases).read_text())["cases"], "random": json.loads(Path(random).read_text())["cases"]}
    sources["random"] = sources["random"][::3]
    data = {name: [c for c in map(condensed, source) if c] for name, source in sources.items()}
    text = ",\n".join(
        f'"{name}": [\n' + ",\n".join(json.dumps(c, separators=(",", ":")) for c in rows) + "\n]" for name, rows in data.items()
    )
    Path(__file__).with_name("collision_cases.json").write_text("{\n" + text + "\n}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
