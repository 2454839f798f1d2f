"""Checks and times the kernels of similarities, scans and augmentation on a GPU, without the program around them.

    cargo run -p anchorhood-data --example augment_fixture -- FOLDER    # anywhere
    python tools/check_kernels.py FOLDER [--large]                      # where there is a GPU, CuPy and PyTorch

Results are compared with PyTorch in f64 (similarities, scans) and with the CPU's bits (augmentation). `--large` also times
a scan of 1,281,167 rows. Exits with 1 if anything differs by more than it may.
"""

import functools
import math
import sys
from pathlib import Path

import cupy
import numpy
import torch

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ROOT / "crates/engine/src/cuda/kernels"
LOG2E = math.log2(math.e)
failures = []


@functools.cache
def module(path):
    before = (KERNELS / "common.cuh").read_text() if path.parent == KERNELS else ""
    return cupy.RawModule(code=before + path.read_text(), options=("-DELEMENT_BF16=0",), backend="nvrtc")


def check(what, error, most):
    bad = not error <= most
    print(f"{'FAILED' if bad else 'ok':6} {what}: {error:.2e} (at most {most:.0e})")
    if bad:
        failures.append(what)


def milliseconds(run, repeats=20):
    for _ in range(3):
        run()
    times = []
    for _ in range(repeats):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        run()
        end.record()
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(begin, end))
    return float(numpy.median(times))


def graphed(run, inside=20):
    """Milliseconds of one run among many in a captured graph: no launch gaps of the host's."""
    cupy.cuda.Device().synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        run()
        stream.synchronize()
        stream.begin_capture()
        for _ in range(inside):
            run()
        graph = stream.end_capture()
        times = []
        for _ in range(10):
            begin, end = cupy.cuda.Event(), cupy.cuda.Event()
            begin.record(stream)
            graph.launch(stream)
            end.record(stream)
            end.synchronize()
            times.append(cupy.cuda.get_elapsed_time(begin, end) / inside)
    return float(numpy.median(times))


def torch_of(array):
    return torch.as_tensor(array, device="cuda")


def rows(n, dim, seed):
    generator = torch.Generator("cuda").manual_seed(seed)
    x = torch.randn(n, dim, device="cuda", generator=generator)
    return torch.nn.functional.normalize(x, dim=1)


SMS = cupy.cuda.Device().attributes["MultiProcessorCount"]


class Loss:
    """Launches as cuda/similarity.rs does."""

    def __init__(self, source, q, k, starts, members, temperature, bf16, order=None, counter=None):
        self.q, self.k = cupy.asarray(q), cupy.asarray(k)
        (b, dim), n = q.shape, k.shape[0]
        side = 128 if bf16 else 64
        blocks = -(-b // side)
        chunks = 1 if bf16 else -(-dim // 128)
        tiles = -(-n // 64)
        wanted = max(1, (SMS if bf16 else 2 * SMS) // (blocks * chunks))
        per = -(-tiles // min(wanted, tiles, 1024))
        ranges = -(-tiles // per)
        self.maxima, self.sums = (cupy.full((ranges, b), numpy.nan, numpy.float32) for _ in range(2))
        self.weighted = cupy.full((ranges, b, dim), numpy.nan, numpy.float32)
        self.losses = cupy.full(b, numpy.nan, numpy.float32)
        self.gradient = cupy.full((b, dim), numpy.nan, numpy.float32)
        i32, f32 = numpy.int32, numpy.float32
        common = (self.q, self.k, i32(b), i32(n), i32(dim), f32(1 / temperature))
        name = "loss_bf16" if bf16 else "loss_f32"
        self.first = module(KERNELS / f"{name}.cu").get_function(name)
        self.shared = 0 if bf16 else (2 * 64 * 132 + 64 * 68) * 4
        if self.shared:
            self.first.max_dynamic_shared_size_bytes = self.shared
        self.grid = (ranges, blocks, chunks)
        self.arguments = (*common, i32(per), self.maxima, self.sums, self.weighted)
        self.merge = source.get_function("loss_merge")
        null = numpy.intp(0)
        self.merge_arguments = (*common, i32(ranges), self.maxima, self.sums, self.weighted, cupy.asarray(starts),
                                cupy.asarray(members), null if order is None else order,
                                null if counter is None else counter, i32(bf16), self.losses, self.gradient)
        self.batch = b
        self.bytes = self.weighted.nbytes + 2 * self.maxima.nbytes

    def run(self):
        self.first(self.grid, (256,), self.arguments, shared_mem=self.shared)
        self.merge((self.batch,), (512,), self.merge_arguments)


def positives(b, n, kind):
    starts, members = [0], []
    for q in range(b):
        own = [q * 7 % n, q * 5 % n, q * 3 % n, (q * 11 + 1) % n][: 1 if q % 3 else 4] if kind != "many" else range(0, n, 3)
        members += sorted(set(own))
        starts.append(len(members))
    return numpy.array(starts, numpy.uint32), numpy.array(members, numpy.uint32)


def loss_reference(q, k, starts, members, temperature):
    q, k = q.double(), k.double()
    logits = q @ k.T / temperature
    p = logits.softmax(1)
    everything = logits.logsumexp(1)
    losses = torch.empty_like(everything)
    for i in range(q.shape[0]):
        own = torch.from_numpy(members[starts[i] : starts[i + 1]].astype(numpy.int64)).cuda()
        losses[i] = everything[i] - logits[i, own].logsumexp(0)
        p[i, own] -= logits[i, own].softmax(0)
    return losses, p @ k / (temperature * q.shape[0])


def losses(source):
    sizes = [(1, 2, 1), (3, 2, 7), (7, 97, 33), (33, 95, 130), (65, 400, 31), (131, 1301, 20), (200, 5000, 128),
             (128, 50000, 128), (5, 700, 300), (256, 20000, 128), (64, 3000, 64)]
    for i, (b, n, dim) in enumerate(sizes):
        for kind in ("few", "many") if n < 2000 else ("few",):
            q, k = rows(b, dim, i), rows(n, dim, 100 + i)
            if b > 1 and n > 100:
                q[0] = k[7]  # a certain query among the others
            starts, members = positives(b, n, kind)
            expected, gradient = loss_reference(q, k, starts, members, 0.1)
            scale = gradient.abs().max().item()
            for bf16 in (False, True) if dim <= 128 else (False,):
                loss = Loss(source, q, k, starts, members, 0.1, bf16)
                loss.run()
                name = f"{'bf16' if bf16 else 'f32'} loss, {b}x{n}x{dim}, {kind}"
                limit = 1e-2 if bf16 else 1e-5
                wrong = (torch_of(loss.losses).double() - expected).abs().max().item()
                check(name, wrong / max(0.1, expected.abs().max().item()), limit)
                wrong = (torch_of(loss.gradient).double() - gradient).abs().max().item()
                check(name + ", gradient", wrong / max(scale, 1e-12), limit)
                again = loss.gradient.copy()
                loss.run()
                check(name + ", twice", float((again.view(numpy.uint32) != loss.gradient.view(numpy.uint32)).sum()), 0)

    for b, n in ((128, 50000), (256, 50000), (256, 1281167)):
        q, k = rows(b, 128, 1), rows(n, 128, 2)
        starts, members = positives(b, n, "few")
        for bf16 in (True, False):
            loss = Loss(source, q, k, starts, members, 0.1, bf16)
            time = graphed(loss.run)
            part = graphed(lambda: loss.first(loss.grid, (256,), loss.arguments, shared_mem=loss.shared))
            tflops = 4 * b * n * 128 / time / 1e9
            print(f"time   {'bf16' if bf16 else 'f32'} loss and gradient, {b}x{n}x128: {time * 1000:.1f} us "
                  f"(tiles {part * 1000:.1f} us), {tflops:.0f} TFLOP/s, {n * 512 / time / 1e6:.0f} GB/s of keys, "
                  f"{loss.bytes / 1e6:.1f} MB beside the bank")


def order_and_counter(source):
    b, n = 32, 500
    q, k = rows(b, 128, 5), rows(n, 128, 6)
    starts, members = positives(n, n, "few")
    order = numpy.random.default_rng(0).permutation(n).astype(numpy.uint32)
    counter = cupy.array([3, 0], numpy.uint64)
    loss = Loss(source, q, k, starts, members, 0.1, False, cupy.asarray(order), counter)
    loss.run()
    own = [members[starts[i] : starts[i + 1]] for i in order[3 * b : 4 * b]]
    batch_starts = numpy.cumsum([0] + [len(o) for o in own]).astype(numpy.uint32)
    expected, _ = loss_reference(q, k, batch_starts, numpy.concatenate(own), 0.1)
    check("loss by order and counter", (torch_of(loss.losses).double() - expected).abs().max().item(), 1e-5)


def blends(source):
    kernel = source.get_function("blend_rows")
    for repeated in (0, 1):
        n, dim, count = 400, 70, 64
        k, q = rows(n, dim, 1), rows(count, dim, 2)
        indices = numpy.arange(count, dtype=numpy.uint32) * 3
        if repeated:
            indices[5:60:7] = 9
        expected = k.double().clone()
        for i, index in enumerate(indices):
            expected[index] = torch.nn.functional.normalize(0.7 * expected[index] + 0.3 * q[i].double(), dim=0)
        got = cupy.asarray(k).copy()
        kernel((8,), (256,), (got, cupy.asarray(q), numpy.int32(dim), numpy.int32(count), numpy.float32(0.3),
                              cupy.asarray(indices), numpy.intp(0), numpy.int32(repeated)))
        check(f"blend of rows, repeated {repeated}", (torch_of(got).double() - expected).abs().max().item(), 1e-6)
    q, k = cupy.asarray(rows(128, 128, 1)), cupy.asarray(rows(50000, 128, 2))
    indices, i32 = cupy.arange(128, dtype=numpy.uint32) * 99, numpy.int32
    arguments = (k, q, i32(128), i32(128), numpy.float32(0.5), indices, numpy.intp(0), i32(0))
    print(f"time   blend of 128 rows: {graphed(lambda: kernel((16,), (256,), arguments)) * 1000:.1f} us")


class Scan:
    """Launches as cuda/similarity.rs does."""

    def __init__(self, source):
        self.tiles, self.merge = source.get_function("scan_tiles"), source.get_function("scan_merge")
        self.tiles.max_dynamic_shared_size_bytes = 96 * 1024
        self.merge.max_dynamic_shared_size_bytes = 64 * 1024

    def run(self, q, k, neighbours, temperature, same):
        q, keys = cupy.asarray(q), cupy.asarray(k)
        (count, dim), n = q.shape, k.shape[0]
        neighbours = min(neighbours, n - same)
        slots, tiles = 2 * SMS, -(-n // 128)
        i32, f32, null = numpy.int32, numpy.float32, numpy.intp(0)
        indices, similarities = (cupy.empty((count, neighbours), t) for t in (numpy.uint32, f32))
        entropy = cupy.full(count, numpy.nan, f32)
        for first in range(0, count, slots * 128):
            here = min(count - first, slots * 128)
            blocks = -(-here // 128)
            done, bounds = 0, null
            while True:
                part = min(neighbours - done, 512)
                most = min(tiles, 32, 8192 // max(part, 1))
                wanted = max(1, min(slots // blocks, most))
                per = -(-tiles // wanted)
                ranges = -(-tiles // per)
                capacity = 256
                while capacity < part + 192:
                    capacity *= 2
                size = 2
                while size < ranges * part:
                    size *= 2
                candidates = cupy.empty((ranges, here, capacity if part else 1), numpy.uint64)
                sums = cupy.empty((ranges, here, 3), f32)
                with_entropy = temperature is not None and done == 0
                scale = LOG2E / temperature if with_entropy else 0
                self.tiles((blocks, ranges), (256,),
                           (q, keys, i32(first), i32(here), i32(n), i32(dim), f32(scale), i32(part), i32(same), i32(per),
                            i32(capacity), candidates, bounds, sums),
                           shared_mem=(max(4 * 8 * 132, 16 * capacity) + 24 * 256) * 4)
                found, similar = (cupy.empty((here, max(part, 1)), t) for t in (numpy.uint32, f32))
                new_bounds = cupy.empty(here, numpy.uint64)
                self.merge((here,), (256 if size > 64 else 32,),
                           (i32(here), i32(ranges), i32(part), i32(capacity), i32(size), candidates, sums, found,
                            similar, new_bounds, entropy[first : first + here] if with_entropy else null),
                           shared_mem=size * 8)
                bounds = new_bounds
                if part:
                    indices[first : first + here, done : done + part] = found
                    similarities[first : first + here, done : done + part] = similar
                done += part
                if done >= neighbours:
                    break
        return indices, similarities, entropy


def scans(source, large):
    scan = Scan(source)
    sizes = [(1, 1, 1), (3, 2, 7), (7, 97, 33), (64, 96, 128), (131, 1301, 20), (300, 5000, 128), (1000, 40000, 130)]
    for i, (b, n, dim) in enumerate(sizes):
        for same in (0, 1):
            k = rows(n, dim, 200 + i)
            q = k if same else rows(b, dim, i)
            similar = q.double() @ k.double().T
            logits = similar / 0.1
            log_p = logits.log_softmax(1)
            entropy = -(log_p.exp() * log_p).sum(1) if n < 20000 or not same else None
            for neighbours in (0, 1, 5, 50, 200, 700):
                got, at, h = scan.run(q, k, neighbours, 0.1, same)
                name = f"scan {q.shape[0]}x{n}x{dim}, same {same}, k {neighbours}"
                if entropy is not None:
                    check(name + ", entropy", (torch_of(h).double() - entropy).abs().max().item() / max(1, entropy.abs().max().item()), 1e-5)
                count = min(neighbours, n - same)
                if not count:
                    continue
                mine = similar.clone()
                if same:
                    mine.fill_diagonal_(-math.inf)
                expected = mine.topk(count).values
                check(name + ", similarities", (torch_of(at).double() - expected).abs().max().item(), 2e-6)
                indices = torch_of(got.astype(numpy.int64))
                if not (0 <= indices.min().item() and indices.max().item() < n):
                    check(name + ", indices in range", math.nan, 0)
                    continue
                check(name + ", keys", (mine.gather(1, indices) - expected).abs().max().item(), 2e-6)
                distinct = indices.sort(1).values.diff(dim=1)
                check(name + ", distinct", float((distinct == 0).sum()), 0)
            if n >= 20000:
                break  # the square of it is large in f64
    # Whole numbers: exact sums, many ties, and every index must be the specification's.
    k = torch.randint(-2, 3, (3001, 9), device="cuda", generator=torch.Generator("cuda").manual_seed(1)).float()
    similar = (k @ k.T).fill_diagonal_(-math.inf)
    order = similar.sort(dim=1, descending=True, stable=True).indices
    for neighbours in (1, 2, 10, 300, 1500):
        got, _, _ = scan.run(k, k, neighbours, None, 1)
        check(f"ties, k {neighbours}", float((torch_of(got.astype(numpy.int64)) != order[:, :neighbours]).sum()), 0)

    cases = [(50000, 50000, 1, 1), (50000, 50000, 200, 1), (10000, 50000, 200, 0)]
    if large:
        cases += [(1281167, 1281167, 1, 1), (1281167, 1281167, 200, 1)]
    for b, n, neighbours, same in cases:
        k = rows(n, 128, 1)
        q = k if same else rows(b, 128, 2)
        run = lambda: scan.run(q, k, neighbours, 0.1, same)
        time = milliseconds(run, 5) if n < 100000 else once(run)
        print(f"time   scan {b}x{n}x128, k {neighbours}: {time:.1f} ms, {2 * b * n * 128 / time / 1e9:.1f} TFLOP/s")


def once(run):
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    begin.record()
    run()
    end.record()
    end.synchronize()
    return cupy.cuda.get_elapsed_time(begin, end)


def augmentation(folder):
    kernel = module(ROOT / "crates/data/src/augment/augment.cu").get_function("augment")
    files = sorted(Path(folder).glob("*.bin"))
    if not files:
        check(f"fixtures in {folder}", math.nan, 0)
    for file in files:
        data = numpy.fromfile(file, numpy.uint32)
        n, batch, step, epoch, h, w, channels, view = (int(v) for v in data[:8])
        words, rest = data[8:39].copy(), data[39:]
        order, rest = rest[:n], rest[n:]
        values, params = batch * h * w * channels, batch * 13
        expected, chosen = rest[len(rest) - values :], rest[len(rest) - values - params : len(rest) - values]
        pictures = rest[: len(rest) - values - params].view(numpy.uint8)
        current, view = cupy.array([step, epoch], numpy.uint64), numpy.uint32(view)
        pictures, indices = cupy.asarray(pictures), cupy.asarray(order[step * batch : (step + 1) * batch])
        got, drawn = cupy.full(values, numpy.nan, numpy.float32), cupy.zeros(params, numpy.uint32)
        arguments = (cupy.asarray(words), pictures, indices, current, view, got, drawn)
        kernel((batch,), (512,), arguments)
        check(f"augmentation {file.stem}, words of draws that differ", float((drawn.get() != chosen).sum()), 0)
        wrong = numpy.abs(got.get() - expected.view(numpy.float32)).max()
        check(f"augmentation {file.stem}, largest difference", float(wrong), 0)
        # bf16: the same values, rounded once.
        words[3] = 1
        half = cupy.zeros(values, numpy.uint16)
        kernel((batch,), (512,), (cupy.asarray(words), pictures, indices, current, view, half, numpy.intp(0)))
        rounded = torch.from_numpy(expected.view(numpy.float32).copy()).bfloat16().view(torch.int16).numpy()
        check(f"augmentation {file.stem}, bf16 bits that differ", float((half.get().view(numpy.int16) != rounded).sum()), 0)
        # The batch's pictures alone, in its order.
        words[3], words[4] = 0, 1
        taken = pictures[: n * h * w * 3].reshape(n, -1)[indices.astype(numpy.int64)]
        again = cupy.zeros(values, numpy.float32)
        gathered = (cupy.asarray(words), cupy.ascontiguousarray(taken), indices, current, view, again, numpy.intp(0))
        kernel((batch,), (512,), gathered)
        check(f"augmentation {file.stem}, gathered", float((again != got).sum()), 0)
        time = graphed(lambda: kernel((batch,), (512,), arguments))
        print(f"time   augmentation {file.stem} of {batch} pictures of {h}x{w}: {time * 1000:.1f} us")


def ceilings():
    for kind in (torch.bfloat16, torch.float32):
        a, b = (torch.randn(8192, 8192, device="cuda", dtype=kind) for _ in range(2))
        time = milliseconds(lambda: a @ b, 5)
        print(f"time   8192^3 matrix product by cuBLAS in {kind}: {2 * 8192**3 / time / 1e9:.0f} TFLOP/s")


def main():
    print(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode(), "cupy", cupy.__version__)
    ceilings()
    augmentation(sys.argv[1])
    similarity = module(KERNELS / "similarity.cu")
    losses(similarity)
    order_and_counter(similarity)
    blends(similarity)
    scans(module(KERNELS / "scan.cu"), "--large" in sys.argv)
    print(f"{len(failures)} failed" + "".join(f"\n  {f}" for f in failures))
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
