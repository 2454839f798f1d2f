"""Reads tables of ROWS × DIM values with pyarrow and DuckDB and finds every value: parquet_reads.py ROWSxDIM.parquet …

Paths, labels and values are those of `tests/it/long/parquet.rs`."""
import pathlib
import sys

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def label_of(row):
    return None if row % 7 == 3 else f"class {row // 1000}"


for place in map(pathlib.Path, sys.argv[1:]):
    rows, dim = map(int, place.stem.split("x"))
    paths = [f"class {row // 1000}/ü, \"{row}\".png" for row in range(rows)]
    labels = [label_of(row) for row in range(rows)]
    values = (np.arange(rows * dim) * 7919 % 1009).astype(np.float32) / np.float32(504.5) - np.float32(1)

    metadata = pq.read_metadata(place)
    assert metadata.num_rows == rows and metadata.num_columns == 3, metadata
    groups = [metadata.row_group(g) for g in range(metadata.num_row_groups)]
    group = min(max(2**22 // max(dim, 1), 1), 2**16)
    assert [g.num_rows for g in groups] == [min(group, rows - at) for at in range(0, rows, group)]
    assert metadata.created_by.startswith("anchorhood "), metadata.created_by
    at = 0
    for g in groups:
        held = slice(at, at + g.num_rows)
        seen = g.column(0).statistics
        assert (seen.null_count, seen.min, seen.max) == (0, min(paths[held]), max(paths[held])), seen
        assert g.column(1).statistics.null_count == labels[held].count(None)
        at += g.num_rows

    table = pq.read_table(place)
    table.validate(full=True)
    # As a reader makes it of `required binary`, `optional binary` and `required group (LIST)` of `required float`.
    schema = pa.schema([
        pa.field("path", pa.string(), nullable=False),
        pa.field("label", pa.string()),
        pa.field("vector", pa.list_(pa.field("element", pa.float32(), nullable=False)), nullable=False),
    ])
    assert table.schema.equals(schema), table.schema
    assert table.schema.metadata == {b"model": "ä".encode(), b"empty": b""}, table.schema.metadata
    assert table["path"].to_pylist() == paths
    assert table["label"].to_pylist() == labels
    lists = table["vector"].combine_chunks()
    assert lists.value_lengths().to_pylist() == [dim] * rows
    assert np.array_equal(lists.flatten().to_numpy(zero_copy_only=False).view(np.uint32), values.view(np.uint32))

    name = f"read_parquet('{place}')"
    types = [(column[0], column[1]) for column in duckdb.sql(f"describe select * from {name}").fetchall()]
    assert types == [("path", "VARCHAR"), ("label", "VARCHAR"), ("vector", "FLOAT[]")], types
    found = duckdb.sql(f"select count(*), count(label), sum(len(vector)) from {name}").fetchall()[0]
    assert found == (rows, rows - labels.count(None), rows * dim if rows else None), found
    some = duckdb.sql(f"select path, vector from {name} where label = 'class 2' order by path").fetchall()
    expected = sorted((paths[row], row) for row in range(rows) if labels[row] == "class 2")
    assert [path for path, _ in some] == [path for path, _ in expected]
    for (_, vector), (_, row) in zip(some, expected):
        assert np.array_equal(np.array(vector, dtype=np.float32), values[row * dim:(row + 1) * dim]), row
    print(f"{place.name}: {len(groups)} row groups, {place.stat().st_size} bytes")
