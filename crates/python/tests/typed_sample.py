"""Read by mypy, never run: how the package is typed. The last line is a mistake on purpose, which must be noticed."""

from pathlib import Path

import anchorhood

model: anchorhood.Model = anchorhood.load("base", device="cpu")
index: anchorhood.Index = anchorhood.Index.build("pictures", Path("pictures.index"), model)
clusters: anchorhood.Clusters = index.cluster(5)
paths: list[Path] = clusters[0].paths
chosen: anchorhood.Selected = index.select(10, already=["a.png"])
run: anchorhood.Run = anchorhood.train("shapes", "and", print, epochs=1)
width: int | None = run.model().width
names: list[str] = index.names
settings: dict[str, str] = anchorhood.settings()
anchorhood.load(3)
