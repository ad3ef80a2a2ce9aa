"""The house keeps its shape: imports go down only, solvers know no model, files and functions stay small."""

import ast
import pathlib

import pytest

import kamino_jax

ROOT = pathlib.Path(kamino_jax.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# Floors from the ground up. A module may import from its own floor's package and from lower floors only.
FLOORS = [
    {"pytree", "spatial", "checkpoint", "attached"},
    {"linear"},
    {
        "layout",
        "elimination",
        "status",
        "recovery",
        "joints.kinds",
        "collision.kinds",
        "collision.materials",
        "collision.frames",
        "collision.shapes",
    },
    {"model", "config", "problem"},
    {"state", "delassus"},
    {"start", "checks"},
    {"joints", "collision"},
    {"dynamics", "solvers"},
    {"warmstart", "integrators", "measure"},
    {"step"},
    {"linearize"},
    {"rollout"},
    {"builder"},
    {"batch", "scenes"},
    {"optim"},
    {"simulation", "viz", "newton"},
    {"__init__"},
    {"__main__"},
]
ADAPTERS = {"newton"}  # imported by nobody but the command line


def module_name(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def floor_of(name):
    for k in range(len(name.split(".")), 0, -1):
        head = ".".join(name.split(".")[:k])
        for level, names in enumerate(FLOORS):
            if head in names:
                return level, head
    raise AssertionError(f"{name} stands on no floor: add it to FLOORS")


def imports(path):
    """(module inside the package, imported at run time) of every relative import."""
    tree, package = ast.parse(path.read_text()), list(path.relative_to(ROOT).parent.parts)
    typing_only = {
        n for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test) for n in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level and node not in typing_only:
            base = package[: len(package) - node.level + 1]
            target = [*base, *(node.module.split(".") if node.module else [])]
            for alias in node.names if not node.module else [None]:
                yield ".".join([*target, alias.name] if alias else target) or "__init__"


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_imports_go_down(path):
    name = module_name(path) or "__init__"
    level, head = floor_of(name)
    for target in imports(path):
        if target.split(".")[0] == head.split(".")[0] and target != "__init__":
            continue
        below, _ = floor_of(target)
        assert below < level, f"{name} (floor {level}) imports {target} (floor {below})"


@pytest.mark.parametrize("path", [f for f in FILES if f.parent.name == "solvers"], ids=module_name)
def test_solvers_know_the_problem_only(path):
    forbidden = {"model", "state", "joints", "collision", "dynamics", "builder", "step"}
    assert not {t.split(".")[0] for t in imports(path)} & forbidden


def test_adapters_are_imported_by_nobody():
    users = [module_name(f) for f in FILES if f.parent.name not in ADAPTERS for t in imports(f) if t.split(".")[0] in ADAPTERS]
    assert set(users) <= {"__main__"}


FORBIDDEN_WORDS = ("jax.config", "float64", "os.environ", "print(")
SPEAKS = {"__main__"}  # the command line may print and set the precision of its own process


@pytest.mark.parametrize("path", [f for f in FILES if module_name(f) not in SPEAKS], ids=module_name)
def test_the_package_is_silent_and_leaves_jax_alone(path):
    text = "\n".join(line.split("#")[0] for line in path.read_text().splitlines())
    assert not [word for word in FORBIDDEN_WORDS if word in text]


def functions(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            doc = ast.get_docstring(node, clean=False)
            yield node, node.end_lineno - node.lineno + 1 - (doc.count("\n") + 1 if doc else 0)


def test_files_and_functions_are_small():
    assert max(len(f.read_text().splitlines()) for f in FILES) <= 300
    sizes = sorted(size for f in FILES for _, size in functions(f))
    assert sizes[len(sizes) // 2] <= 12
    long = [(f.name, node.name, size) for f in FILES for node, size in functions(f) if size > 45]
    assert not long


def test_functions_take_few_positional_arguments():
    # `self` aside; more than this is a missing type
    many = [(f.name, n.name) for f in FILES for n, _ in functions(f) if len([a for a in n.args.args if a.arg != "self"]) > 6]
    assert not many


def test_public_names_resolve_and_are_documented():
    public = [n for n in vars(kamino_jax) if not n.startswith("_")]
    for name in public:
        assert getattr(kamino_jax, name).__doc__, name
