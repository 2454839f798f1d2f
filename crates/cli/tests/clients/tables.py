"""Reads one folder's vectors from every format and finds them the same: tables.py PARQUET NPY CSV JSONL."""
import csv
import json
import sys

import duckdb
import numpy as np
import pyarrow.parquet as pq

parquet, npy, comma, jsonl = sys.argv[1:5]

table = pq.read_table(parquet)
assert table.column_names == ["path", "label", "vector"], table.column_names
assert str(table.schema.field("path").type) == "string", table.schema
assert "float" in str(table.schema.field("vector").type), table.schema
assert b"anchorhood.model" in table.schema.metadata, table.schema.metadata
paths = table["path"].to_pylist()
labels = table["label"].to_pylist()
vectors = np.array(table["vector"].to_pylist(), dtype=np.float32)

count, length = duckdb.sql(f"select count(*), min(len(vector)) from '{parquet}'").fetchall()[0]
assert (count, length) == vectors.shape, (count, length, vectors.shape)

array = np.load(npy)
assert array.dtype == np.float32 and np.array_equal(array, vectors)
with open(npy.replace(".npy", ".paths.csv"), newline="") as file:
    rows = list(csv.DictReader(file))
assert [r["path"] for r in rows] == paths
assert [r["label"] or None for r in rows] == labels

with open(comma, newline="") as file:
    rows = list(csv.reader(file))
assert rows[0][:3] == ["path", "label", "v0"]
assert [r[0] for r in rows[1:]] == paths
assert np.array_equal(np.array([r[2:] for r in rows[1:]], dtype=np.float32), vectors)

with open(jsonl) as file:
    lines = [json.loads(line) for line in file]
assert [line["path"] for line in lines] == paths
assert [line["label"] for line in lines] == labels
assert np.array_equal(np.array([line["vector"] for line in lines], dtype=np.float32), vectors)

assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
print(json.dumps({"rows": len(paths), "dim": vectors.shape[1], "paths": paths, "labels": labels}))
