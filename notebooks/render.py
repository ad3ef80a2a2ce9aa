"""Run a notebook and write its rendered copy: `python notebooks/render.py NAME [--fast]`.

A notebook is a plain Python file NAME.py in the percent format: cells start with `# %% [markdown]` or `# %%`. Its rendered copy NAME.md
holds the text, the code, what the code printed, and the pictures that it left open (images/NAME_1.png, ...).
"""

import argparse
import contextlib
import dataclasses
import io
import os
import pathlib
import re

HERE = pathlib.Path(__file__).parent
FAST = "NOTEBOOK_FAST"  # environment variable: notebooks do fewer steps and iterations
LARGEST = 60_000  # [bytes] of a picture
COLOURS = 64  # of a picture
MARK = re.compile(r"^# %%( \[markdown\])?\n", re.M)


@dataclasses.dataclass(frozen=True)
class Cell:
    """One cell of a notebook."""

    text: str
    is_code: bool
    line: int  # of its first line in the source

    def markdown(self) -> str:
        """How the cell stands in the rendered copy."""
        return f"```python\n{self.text}\n```" if self.is_code else self.text


@dataclasses.dataclass(frozen=True)
class Result:
    """What a code cell printed and drew."""

    printed: str
    pictures: tuple[tuple[str, bytes], ...]  # (title, PNG)


def names() -> list[str]:
    """All notebooks."""
    return sorted(path.stem for path in HERE.glob("*.py") if path.name != pathlib.Path(__file__).name)


def cells_of(source: str) -> list[Cell]:
    """The cells of a source.

    Raises:
        ValueError: something before the first cell, or a line of text that is not a comment.
    """
    marks = list(MARK.finditer(source))
    if not marks or source[: marks[0].start()].strip():
        raise ValueError("a notebook starts with a cell: `# %% [markdown]` or `# %%`")
    cells = []
    for mark, end in zip(marks, [m.start() for m in marks[1:]] + [len(source)], strict=True):
        text, line = source[mark.end() : end].strip("\n"), source.count("\n", 0, mark.end()) + 1
        if mark.group(1):
            if any(not row.startswith("#") for row in text.splitlines()):
                raise ValueError(f"line {line}: every line of a markdown cell starts with #")
            text = "\n".join(row[1:].removeprefix(" ") for row in text.splitlines())
        cells.append(Cell(text, not mark.group(1), line))
    return cells


def _png(figure) -> bytes:
    """The figure as a small picture: few dots, few colours."""
    from PIL import Image  # comes with matplotlib

    full, small = io.BytesIO(), io.BytesIO()
    figure.savefig(full, dpi=80)
    with Image.open(full) as image:
        image.convert("RGB").quantize(COLOURS).save(small, "PNG", optimize=True)
    return small.getvalue()


def _pictures(pyplot) -> tuple[tuple[str, bytes], ...]:
    """(title, PNG) of all open figures, which are closed."""
    pictures = []
    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        title = figure.get_suptitle() or next((axes.get_title() for axes in figure.axes if axes.get_title()), "picture")
        pictures.append((title.replace("\n", " "), _png(figure)))
    pyplot.close("all")
    return tuple(pictures)


def run(name: str) -> list[tuple[Cell, Result | None]]:
    """Run the cells of a notebook in order in one namespace."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.close("all")
    path = HERE / f"{name}.py"
    namespace, results = {"__name__": "__main__"}, []
    for cell in cells_of(path.read_text()):
        result = None
        if cell.is_code:
            printed = io.StringIO()
            code = compile("\n" * (cell.line - 1) + cell.text, str(path), "exec")
            with contextlib.redirect_stdout(printed):
                exec(code, namespace)
            result = Result(printed.getvalue().rstrip("\n"), _pictures(pyplot))
        results.append((cell, result))
    return results


def write(name: str, results: list[tuple[Cell, Result | None]]) -> None:
    """Write the rendered copy and its pictures.

    Raises:
        ValueError: a picture that is too large.
    """
    images, parts, count = HERE / "images", [], 0
    images.mkdir(exist_ok=True)
    for old in images.glob(f"{name}_*.png"):
        old.unlink()
    for cell, result in results:
        parts.append(cell.markdown())
        if result and result.printed:
            parts.append(f"```text\n{result.printed}\n```")
        for title, png in result.pictures if result else ():
            count += 1
            if len(png) > LARGEST:
                raise ValueError(f"{name}: picture {count} ({title}) has {len(png)} bytes; at most {LARGEST} are allowed")
            (images / f"{name}_{count}.png").write_bytes(png)
            parts.append(f"![{title}](images/{name}_{count}.png)")
    source = f"*Made from [{name}.py]({name}.py) by `python notebooks/render.py {name}`.*"
    (HERE / f"{name}.md").write_text("\n\n".join([*parts, source]) + "\n")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=names())
    parser.add_argument("--fast", action="store_true", help="fewer steps and iterations; checks that it runs and writes nothing")
    given = parser.parse_args()
    if given.fast:
        os.environ[FAST] = "1"
    results = run(given.name)
    if given.fast:
        print("\n".join(result.printed for _, result in results if result and result.printed))
    else:
        write(given.name, results)


if __name__ == "__main__":
    main()
