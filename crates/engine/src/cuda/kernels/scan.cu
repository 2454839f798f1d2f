// Every query against every key, in f32: the entropy of its softmax over all keys, and its top-k keys.
//
// scan_tiles: a block takes 128 queries over a range of keys, in tiles of 128 keys. A tile's similarities stay in registers:
// they go into the running sums of the entropy, and those above a query's threshold (its k-th best so far) into a list of
// candidates, which is sorted and cut to the best k when it runs full. For keys in no special order few pass: about
// k (1 + ln(n / k)) of n. scan_merge puts the ranges together.
//
// Candidates are numbers whose order is the order of neighbours: more similar is greater, and of equal similarities the
// lower index. That order is total, so the result does not depend on which thread came first.
//
// A range keeps at most MOST neighbours. More are found in further rounds that pass over everything down to `bounds`, the
// last candidate of the round before.
//
// Entropy, in base 2: with u = s log2(e) / temperature - max, Z = sum 2^u, T = sum u 2^u:
// entropy = (log2 Z - T / Z) ln 2.

#define SIDE 128
#define DEPTH 8
#define PITCH (SIDE + 4)
#define THREADS 256

__device__ __forceinline__ u64 candidate(float similarity, u32 key) {
    u32 bits = __float_as_uint(similarity + 0.f);  // no negative zero: it equals the positive one
    bits ^= bits >> 31 ? 0xffffffffu : 0x80000000u;
    return (u64)bits << 32 | (0xffffffffu - key);
}

__device__ __forceinline__ float similarity_of(u64 candidate) {
    u32 bits = (u32)(candidate >> 32);
    return __uint_as_float(bits >> 31 ? bits ^ 0x80000000u : ~bits);
}

// Bitonic, greatest first; `size` is a power of two. Either a warp or a block of threads calls it.
template <bool BLOCK>
__device__ void sort(u64* values, int size, int thread, int threads) {
    for (int length = 2; length <= size; length *= 2) {
        for (int stride = length / 2; stride; stride /= 2) {
            for (int i = thread; i < size / 2; i += threads) {
                int a = 2 * i - (i & (stride - 1)), b = a + stride;
                u64 x = values[a], y = values[b];
                if ((x < y) == ((a & length) == 0)) {
                    values[a] = y;
                    values[b] = x;
                }
            }
            if (BLOCK)
                __syncthreads();
            else
                __syncwarp();
        }
    }
}

// Sorts a list in memory and cuts it to the best k (zeros where there are fewer). A warp calls it.
__device__ void keep_best(u64* list, int count, int k, u64* area) {
    const int lane = threadIdx.x % 32;
    int size = 2;
    while (size < count || size < k) size *= 2;
    for (int i = lane; i < size; i += 32) area[i] = i < count ? list[i] : 0;
    __syncwarp();
    sort<false>(area, size, lane, 32);
    for (int i = lane; i < k; i += 32) list[i] = area[i];
}

struct Slice {
    float4 query, key;
};

__device__ __forceinline__ Slice fetch(const float* queries, int first_query, int count, const float* keys,
                                       int first_key, int n, int column, int dim) {
    const int row = threadIdx.x / 2;
    column += threadIdx.x % 2 * 4;
    Slice slice;
    slice.query = load4(queries, first_query + row, count, column, dim);
    slice.key = load4(keys, first_key + row, n, column, dim);
    return slice;
}

__device__ __forceinline__ void store(const Slice& slice, float* queries, float* keys) {
    const int row = threadIdx.x / 2, depth = threadIdx.x % 2 * 4;
    float* to = queries + depth * PITCH + row;
    to[0] = slice.query.x, to[PITCH] = slice.query.y, to[2 * PITCH] = slice.query.z, to[3 * PITCH] = slice.query.w;
    to = keys + depth * PITCH + row;
    to[0] = slice.key.x, to[PITCH] = slice.key.y, to[2 * PITCH] = slice.key.z, to[3 * PITCH] = slice.key.w;
}

// Grid: (blocks of 128 queries, ranges of keys). Rows of this launch are queries[first_row..first_row + rows].
// candidates: [range][row][capacity], capacity a power of two of at least k + 129; its first k are the result.
// sums: [range][row][3]: maximum, Z, T; scale = log2(e) / temperature, 0 for no entropy.
// Shared memory: max(4 * DEPTH * PITCH, 16 * capacity) + 24 * THREADS values.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
    scan_tiles(const float* __restrict__ queries, const float* __restrict__ keys, int first_row, int rows, int n,
               int dim, float scale, int k, int same, int tiles_per_range, int capacity, u64* candidates,
               const u64* bounds, float* sums) {
    extern __shared__ __align__(16) float memory[];
    __shared__ float thresholds[SIDE];
    __shared__ int counts[SIDE];
    // The lists are sorted where the tiles lie, between two tiles.
    float* query_slices = memory;
    float* key_slices = memory + 2 * DEPTH * PITCH;
    u64* area = (u64*)memory + threadIdx.x / 32 * capacity;
    float* running = memory + max(4 * DEPTH * PITCH, 16 * capacity) + threadIdx.x;

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int tx = warp % 2 * 8 + lane % 8, ty = warp / 2 * 4 + lane / 8;
    const int block_row = blockIdx.x * SIDE;
    const int rows_all = first_row + rows;
    const size_t place = (size_t)blockIdx.y * rows + block_row;
    u64* lists = candidates + place * capacity;

    if (threadIdx.x < SIDE) {
        thresholds[threadIdx.x] = k ? MINUS_INFINITY : -MINUS_INFINITY;
        counts[threadIdx.x] = 0;
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
        running[(3 * i) * THREADS] = MINUS_INFINITY;
        running[(3 * i + 1) * THREADS] = 0.f;
        running[(3 * i + 2) * THREADS] = 0.f;
    }

    const int tiles_all = (n + SIDE - 1) / SIDE;
    const int begin = blockIdx.y * tiles_per_range;
    const int end = min(begin + tiles_per_range, tiles_all);
    const int slices = (dim + DEPTH - 1) / DEPTH;
    Slice next = fetch(queries, first_row + block_row, rows_all, keys, begin * SIDE, n, 0, dim);
    int turn = 0;
    for (int t = begin; t < end; t++) {
        float s[8][8];
#pragma unroll
        for (int i = 0; i < 8; i++)
#pragma unroll
            for (int j = 0; j < 8; j++) s[i][j] = 0.f;
        for (int slice = 0; slice < slices; slice++, turn ^= 1) {
            float* q = query_slices + turn * DEPTH * PITCH;
            float* c = key_slices + turn * DEPTH * PITCH;
            store(next, q, c);
            __syncthreads();
            const bool last = slice + 1 == slices;
            if (!last || t + 1 < end)
                next = fetch(queries, first_row + block_row, rows_all, keys, (last ? t + 1 : t) * SIDE, n,
                             last ? 0 : (slice + 1) * DEPTH, dim);
#pragma unroll
            for (int d = 0; d < DEPTH; d++) {
                float a[8], b[8];
                *(float4*)a = *(const float4*)(q + d * PITCH + ty * 4);
                *(float4*)(a + 4) = *(const float4*)(q + d * PITCH + SIDE / 2 + ty * 4);
                *(float4*)b = *(const float4*)(c + d * PITCH + tx * 4);
                *(float4*)(b + 4) = *(const float4*)(c + d * PITCH + SIDE / 2 + tx * 4);
#pragma unroll
                for (int i = 0; i < 8; i++)
#pragma unroll
                    for (int j = 0; j < 8; j++) s[i][j] = fmaf(a[i], b[j], s[i][j]);
            }
        }

        // Row i and column j of a thread, in the tile.
#define ROW(i) ((i) / 4 * (SIDE / 2) + ty * 4 + (i) % 4)
#define KEY(j) (t * SIDE + (j) / 4 * (SIDE / 2) + tx * 4 + (j) % 4)
        if ((t + 1) * SIDE > n) {
#pragma unroll
            for (int j = 0; j < 8; j++)
                if (KEY(j) >= n)
#pragma unroll
                    for (int i = 0; i < 8; i++) s[i][j] = MINUS_INFINITY;
        }
        if (scale != 0.f) {
#pragma unroll
            for (int i = 0; i < 8; i++) {
                float most = s[i][0];
#pragma unroll
                for (int j = 1; j < 8; j++) most = fmaxf(most, s[i][j]);
                float max = running[(3 * i) * THREADS];
                float z = running[(3 * i + 1) * THREADS], weighted = running[(3 * i + 2) * THREADS];
                most *= scale;
                if (most > max) {
                    float less = max - most, shrink = power_of_two(less);
                    weighted = max == MINUS_INFINITY ? 0.f : (weighted + less * z) * shrink;
                    z *= shrink;
                    max = most;
                }
                float tile_z = 0.f, tile_weighted = 0.f;
                const float reference = max == MINUS_INFINITY ? 0.f : max;  // keys beyond the last, so far
#pragma unroll
                for (int j = 0; j < 8; j++) {
                    float u = fmaf(s[i][j], scale, -reference);
                    u = u < -1000.f ? -1000.f : u;  // no infinity times zero; a NaN stays one
                    float e = power_of_two(u);
                    tile_z += e;
                    tile_weighted = fmaf(u, e, tile_weighted);
                }
                running[(3 * i) * THREADS] = max;
                running[(3 * i + 1) * THREADS] = z + tile_z;
                running[(3 * i + 2) * THREADS] = weighted + tile_weighted;
            }
        }
        if (k == 0) continue;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const float threshold = thresholds[ROW(i)];
#pragma unroll
            for (int j = 0; j < 8; j++) {
                if (s[i][j] > threshold) {
                    const int row = ROW(i), key = KEY(j), query = block_row + row;
                    const u64 found = candidate(s[i][j], key);
                    const bool itself = same && key == first_row + query;
                    if (query < rows && !itself && (!bounds || found < bounds[query]))
                        lists[(size_t)row * capacity + atomicAdd(&counts[row], 1)] = found;
                }
            }
        }
        __syncthreads();
        for (int row = warp; row < SIDE; row += THREADS / 32) {
            const int count = counts[row];
            if (count <= capacity - SIDE) continue;
            keep_best(lists + (size_t)row * capacity, count, k, area);
            if (lane == 0) {
                counts[row] = k;
                thresholds[row] = similarity_of(area[k - 1]);
            }
            __syncwarp();
        }
        __syncthreads();
    }

    __syncthreads();
    if (k) {
        for (int row = warp; row < SIDE; row += THREADS / 32) {
            if (block_row + row < rows) keep_best(lists + (size_t)row * capacity, counts[row], k, area);
            __syncwarp();
        }
    }
    if (scale == 0.f) return;
    // A row's 16 threads, put together in their order by one of them.
    const float* all = running - threadIdx.x;
    __syncthreads();
    if (threadIdx.x >= SIDE || block_row + threadIdx.x >= rows) return;
    const int row = threadIdx.x, i = row / (SIDE / 2) * 4 + row % 4, of_row = row % (SIDE / 2) / 4;
    const int first = of_row / 4 * 64 + of_row % 4 * 8;
    float max = MINUS_INFINITY, z = 0.f, weighted = 0.f;
    for (int x = 0; x < 16; x++) max = fmaxf(max, all[3 * i * THREADS + first + x / 8 * 32 + x % 8]);
    for (int x = 0; x < 16; x++) {
        const int thread = first + x / 8 * 32 + x % 8;
        const float own = all[3 * i * THREADS + thread];
        if (own == MINUS_INFINITY) {  // no keys for this thread; or none that are numbers, and then the sum shows it
            if (all[(3 * i + 1) * THREADS + thread] != 0.f) z = all[(3 * i + 1) * THREADS + thread];
            continue;
        }
        const float less = own - max, shrink = power_of_two(less);
        const float own_z = all[(3 * i + 1) * THREADS + thread];
        z += own_z * shrink;
        weighted += (all[(3 * i + 2) * THREADS + thread] + less * own_z) * shrink;
    }
    float* to = sums + (place + row) * 3;
    to[0] = max, to[1] = z, to[2] = weighted;
}

// A block for each row. Writes k neighbours (index 0xffffffff where there are fewer), the last candidate to `bounds`, and
// the entropy, and ln sum e^(s / temperature). Shared memory: a power of two of at least ranges * k candidates.
extern "C" __global__ void scan_merge(int rows, int ranges, int k, int capacity, int size, const u64* candidates,
                                      const float* sums, u32* indices, float* similarities, u64* bounds,
                                      float* entropy, double* log_sum) {
    extern __shared__ __align__(16) u64 found[];
    const int row = blockIdx.x;
    if (k) {
        for (int i = threadIdx.x; i < size; i += blockDim.x) {
            const size_t list = (size_t)(i / k) * rows + row;
            found[i] = i < ranges * k ? candidates[list * capacity + i % k] : 0;
        }
        __syncthreads();
        if (ranges > 1) sort<true>(found, size, threadIdx.x, blockDim.x);
        for (int i = threadIdx.x; i < k; i += blockDim.x) {
            indices[(size_t)row * k + i] = found[i] ? 0xffffffffu - (u32)found[i] : 0xffffffffu;
            similarities[(size_t)row * k + i] = found[i] ? similarity_of(found[i]) : 0.f;
        }
        if (threadIdx.x == 0) bounds[row] = found[k - 1];
    }
    if (!entropy || threadIdx.x) return;
    double max = MINUS_INFINITY, z = 0.0, weighted = 0.0;
    for (int r = 0; r < ranges; r++) max = fmax(max, (double)sums[((size_t)r * rows + row) * 3]);
    for (int r = 0; r < ranges; r++) {
        const float* of = sums + ((size_t)r * rows + row) * 3;
        const double less = of[0] - max, shrink = exp2(less);
        z += of[1] * shrink;
        weighted += (of[2] + less * of[1]) * shrink;
    }
    entropy[row] = (float)((log2(z) - weighted / z) * 0.6931471805599453);
    log_sum[row] = (max + log2(z)) * 0.6931471805599453;
}
