"""Notebooks run, and their rendered copies say the same as their sources."""

import importlib.util
import pathlib
import re

import jax
import pytest

NOTEBOOKS = pathlib.Path(__file__).parent.parent / "notebooks"
pytestmark = pytest.mark.skipif(not NOTEBOOKS.is_dir(), reason="no checkout")


def load_render():
    spec = importlib.util.spec_from_file_location("render", NOTEBOOKS / "render.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RENDER = load_render() if NOTEBOOKS.is_dir() else None
NAMES = RENDER.names() if RENDER else []


def cells(name):
    return RENDER.cells_of((NOTEBOOKS / f"{name}.py").read_text())


def rendered(name):
    return (NOTEBOOKS / f"{name}.md").read_text()


@pytest.mark.skipif(not jax.config.jax_enable_x64, reason="notebooks switch to double precision")
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs(name, monkeypatch):
    monkeypatch.setenv(RENDER.FAST, "1")
    with jax.numpy_dtype_promotion("standard"):  # notebooks are written as users write
        results = RENDER.run(name)
    pictures = [png for _, result in results if result for _, png in result.pictures]
    assert pictures and all(png.startswith(b"\x89PNG") for png in pictures)
    assert any(result.printed for _, result in results if result)
    assert len(pictures) == rendered(name).count("](images/")


@pytest.mark.parametrize("name", NAMES)
def test_a_rendered_copy_has_the_cells_of_its_source(name):
    text = rendered(name)
    assert re.findall(r"```python\n(.*?)\n?```", text, re.S) == [cell.text for cell in cells(name) if cell.is_code]
    at = 0
    for cell in cells(name):
        at = text.index(cell.markdown(), at) + len(cell.markdown())


@pytest.mark.parametrize("name", NAMES)
def test_pictures_of_a_rendered_copy_exist_and_are_small(name):
    shown = re.findall(r"\]\((images/.*?)\)", rendered(name))
    assert shown and len(set(shown)) == len(shown)
    assert all((NOTEBOOKS / path).stat().st_size <= RENDER.LARGEST for path in shown)
    assert {f"images/{path.name}" for path in (NOTEBOOKS / "images").glob(f"{name}_?.png")} == set(shown)


def test_cells_are_read_as_text_and_code():
    first, second, third = RENDER.cells_of("# %% [markdown]\n# # Title\n#\n# text\n\n# %%\nx = 1\n\n# %%\ny = 2\n")
    assert (first.text, first.is_code) == ("# Title\n\ntext", False)
    assert (second.text, second.is_code, second.line) == ("x = 1", True, 7) and third.text == "y = 2"
    assert second.markdown() == "```python\nx = 1\n```"


@pytest.mark.parametrize("source", ["x = 1\n", "x = 1\n# %%\ny = 2\n", "# %% [markdown]\n# text\nx = 1\n"])
def test_what_is_no_notebook_is_refused(source):
    with pytest.raises(ValueError, match="cell"):
        RENDER.cells_of(source)
