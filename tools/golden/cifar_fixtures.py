#!/usr/bin/env python3
"""Write crates/data/tests/fixtures/: CIFAR-10 and -100 python folders of two pictures a file, in the official format.

usage: cifar_fixtures.py            (needs: pip install numpy)

The official files were pickled by Python 2 at protocol 2: strings are byte strings (SHORT_BINSTRING), the array is
rebuilt by numpy.core.multiarray._reconstruct. Python 3 cannot write that by itself, so its pure-python pickler is taught
to. Byte p of picture i of file f is (f * 97 + i * 31 + p * 7) % 251; labels are (f * 3 + i * 5) % classes. The files under
resaved/ hold the same dictionary as Python 3 pickles it at protocols 2, 3 and 4. Read by crates/data/src/datasets/cifar/tests.rs.
"""
import io, os, pickle, struct
import numpy as np

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../crates/data/tests/fixtures")
CIFAR10 = "airplane automobile bird cat deer dog frog horse ship truck".split()


class Python2(pickle._Pickler):
    """Writes str and bytes as Python 2 wrote its byte strings."""

    dispatch = dict(pickle._Pickler.dispatch)

    def save_string(self, obj):
        data = obj if isinstance(obj, bytes) else obj.encode("latin1")
        head = b"U" + bytes([len(data)]) if len(data) < 256 else b"T" + struct.pack("<i", len(data))
        self.write(head + data)
        self.memoize(obj)

    dispatch[bytes] = save_string
    dispatch[str] = save_string


def write(path, value, protocol=None):
    out = io.BytesIO()
    (Python2(out, 2) if protocol is None else pickle.Pickler(out, protocol)).dump(value)
    data = out.getvalue().replace(b"numpy._core.multiarray", b"numpy.core.multiarray") if protocol is None else out.getvalue()
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def pixels(f):
    i, p = np.mgrid[0:2, 0:3072]
    return ((f * 97 + i * 31 + p * 7) % 251).astype(np.uint8)


def labels(f, classes):
    return [(f * 3 + i * 5) % classes for i in range(2)]


def main():
    ten = lambda f, name: {b"batch_label": name, b"labels": labels(f, 10), b"data": pixels(f), b"filenames": [b"a.png", b"b.png"]}
    for f in range(5):
        write(f"{OUT}/cifar-10-batches-py/data_batch_{f + 1}", ten(f, b"training batch %d of 5" % (f + 1)))
    write(f"{OUT}/cifar-10-batches-py/test_batch", ten(5, b"testing batch 1 of 1"))
    write(f"{OUT}/cifar-10-batches-py/batches.meta", {b"num_cases_per_batch": 2, b"label_names": CIFAR10, b"num_vis": 3072})
    for f, name in ((0, "train"), (1, "test")):
        write(f"{OUT}/cifar-100-python/{name}", {
            b"filenames": [b"a.png", b"b.png"], b"batch_label": b"batch", b"fine_labels": labels(f, 100),
            b"coarse_labels": [19, 18], b"data": pixels(f)})
    write(f"{OUT}/cifar-100-python/meta", {b"fine_label_names": [f"fine {c}" for c in range(100)], b"coarse_label_names": ["coarse"] * 20})
    for protocol in (2, 3, 4):
        write(f"{OUT}/resaved/protocol-{protocol}", ten(0, b"training batch 1 of 5"), protocol)
    for folder, _, files in os.walk(OUT):
        print(folder, sum(os.path.getsize(os.path.join(folder, f)) for f in files))


if __name__ == "__main__":
    main()
