// For each query the key that is most similar to it, by inner product in f32; of equal ones the first. The key itself is copied.
//
// Two kernels: the best key of each query over a range of keys; the best of the ranges, in order, and its row. A query whose
// similarities are no numbers has none: its row becomes NaN, and so does whatever loss is made of it.

// Whether a key comes before the one known so far; -1 is none.
static __device__ __forceinline__ bool before(float s, int key, float most, int best) {
    return s > most || (s == most && key >= 0 && (best < 0 || key < best));
}

// The best key of each query over a range, and its similarity; -1 where there is none. Grid: (ranges, blocks of 64 queries).
extern "C" __global__ void __launch_bounds__(256, 2)
    nearest_in_ranges(const float *__restrict__ queries, const float *__restrict__ keys, int count, int n, int dim,
                      int tiles_per_range, float *similarities, int *found) {
    // 2 * SIDE * PITCH values.
    extern __shared__ __align__(16) float memory[];
    float *query_rows = memory, *key_rows = memory + SIDE * PITCH;
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    float most[4];
    int best[4];
#pragma unroll
    for (int i = 0; i < 4; i++) most[i] = MINUS_INFINITY, best[i] = -1;
    const int begin = blockIdx.x * tiles_per_range;
    const int end = min(begin + tiles_per_range, (n + SIDE - 1) / SIDE);
    for (int t = begin; t < end; t++) {
        float s[4][4];
        inner_products(s, query_rows, key_rows, queries, count, keys, n, dim, t * SIDE, t == begin);
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) {
                // A thread's keys come in order, so that of equal ones the first stays.
                const int key = t * SIDE + tx + 16 * j;
                if (key < n && s[i][j] > most[i]) most[i] = s[i][j], best[i] = key;
            }
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int step = 1; step < 16; step *= 2) {
            const float other = __shfl_xor_sync(0xffffffffu, most[i], step);
            const int key = __shfl_xor_sync(0xffffffffu, best[i], step);
            if (before(other, key, most[i], best[i])) most[i] = other, best[i] = key;
        }
        const int query = blockIdx.y * SIDE + ty + 16 * i;
        if (tx == 0 && query < count) {
            similarities[(size_t)blockIdx.x * count + query] = most[i];
            found[(size_t)blockIdx.x * count + query] = best[i];
        }
    }
}

// The best of the ranges, and its row. A warp a query.
extern "C" __global__ void nearest_copy(const float *__restrict__ similarities, const int *__restrict__ found, int ranges,
                                        int count, const float *__restrict__ keys, int dim, float *to) {
    const int query = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (query >= count) return;
    float most = MINUS_INFINITY;
    int best = -1;
    for (int range = 0; range < ranges; range++) {
        const float s = similarities[(size_t)range * count + query];
        const int key = found[(size_t)range * count + query];
        if (before(s, key, most, best)) most = s, best = key;
    }
    for (int d = lane; d < dim; d += 32)
        to[(size_t)query * dim + d] = best < 0 ? __int_as_float(0x7fffffff) : keys[(size_t)best * dim + d];
}
