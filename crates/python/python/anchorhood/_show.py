"""How things look in a notebook: pictures, in HTML that needs nothing beside itself."""

from __future__ import annotations

import base64
import html
from pathlib import Path

from . import _native


def image(png: bytes, about: str = "") -> str:
    """A PNG file's bytes as an element of a page."""
    data = base64.b64encode(png).decode("ascii")
    return f'<img alt="{html.escape(about)}" title="{html.escape(about)}" style="max-width: 100%" src="data:image/png;base64,{data}">'


def counted(n: int, thing: str) -> str:
    """So many of a thing, in words.

    >>> counted(1, "picture"), counted(1200, "picture")
    ('1 picture', '1,200 pictures')
    """
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


def line(text: str) -> str:
    """A line of words above a picture."""
    return f'<p style="margin: 0.3em 0">{html.escape(text)}</p>'


class Drawing:
    """A drawing that a notebook shows inline; `str` of it is the SVG text."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def __str__(self) -> str:
        return self.svg

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> None:
        """Writes it to a file."""
        _native.write_file(path, self.svg.encode("utf-8"))


class Page:
    """A page that a notebook shows inline, in a frame; `path` is its file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"Page({str(self.path)!r})"

    def _repr_html_(self) -> str:
        text = html.escape(self.path.read_text(encoding="utf-8"), quote=True)
        return f'<iframe style="width: 100%; height: 40em; border: 1px solid #ddd" srcdoc="{text}"></iframe>'
