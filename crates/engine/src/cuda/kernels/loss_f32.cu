// A batch's softmax over a range of keys (see similarity.cu) in f32 throughout, for rows of any length.
// Tiles are those of f32_tiles.cuh. Grid: (ranges of keys, blocks of 64 queries, chunks of 128 columns): each block carries
// sum e^(s - max) k for its own chunk only.

// Where keys are weighted, there are *count of them, no more than n, and each counts as 2^log_weights[key].
template <bool WEIGHTED>
static __device__ __forceinline__ void
softmax_f32(const float* __restrict__ queries, const float* __restrict__ keys, int batch, int n, int dim,
            float inverse_temperature, int tiles_per_range, float* maxima, float* sums, float* weighted,
            const float* __restrict__ log_weights, const u32* __restrict__ count) {
    // 2 * SIDE * PITCH + SIDE * WEIGHTS_PITCH values.
    extern __shared__ __align__(16) float memory[];
    float* query_rows = memory;
    float* key_rows = memory + SIDE * PITCH;
    float* weights = memory + 2 * SIDE * PITCH;
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const float scale = inverse_temperature * (float)LOG2E;

    float max[4], sum[4], total[4][8];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        max[i] = MINUS_INFINITY;
        sum[i] = 0.f;
        for (int j = 0; j < 8; j++) total[i][j] = 0.f;
    }

    if (WEIGHTED) n = *count;
    const int tiles_all = (n + SIDE - 1) / SIDE;
    if (WEIGHTED) tiles_per_range = (tiles_all + gridDim.x - 1) / gridDim.x;
    const int begin = blockIdx.x * tiles_per_range;
    const int end = min(begin + tiles_per_range, tiles_all);
    for (int t = begin; t < end; t++) {
        float s[4][4];
        inner_products(s, query_rows, key_rows, queries, batch, keys, n, dim, t * SIDE, t == begin);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float most = MINUS_INFINITY;
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const int key = t * SIDE + tx + 16 * j;
                s[i][j] = key < n ? s[i][j] * scale : MINUS_INFINITY;
                if (WEIGHTED && key < n) s[i][j] += log_weights[key];
                most = fmaxf(most, s[i][j]);
            }
#pragma unroll
            for (int step = 1; step < 16; step *= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, step));
            most = fmaxf(most, max[i]);
            float shrink = most > max[i] ? power_of_two(max[i] - most) : 1.f;
            max[i] = most;
            sum[i] *= shrink;
#pragma unroll
            for (int j = 0; j < 8; j++) total[i][j] *= shrink;
#pragma unroll
            for (int j = 0; j < 4; j++) {
                float weight = power_of_two(s[i][j] - most);
                sum[i] += weight;
                weights[(ty + 16 * i) * WEIGHTS_PITCH + tx + 16 * j] = weight;
            }
        }
        add_weighted_keys(total, weights, key_rows, keys, n, dim, t * SIDE);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int step = 1; step < 16; step *= 2) sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], step);
        int row = blockIdx.y * SIDE + ty + 16 * i;
        if (row >= batch) continue;
        size_t at = (size_t)blockIdx.x * batch + row;
        if (tx == 0 && blockIdx.z == 0) {
            maxima[at] = max[i];
            sums[at] = sum[i];
        }
        store_total(total[i], weighted, at, dim);
    }
}

extern "C" __global__ void __launch_bounds__(256, 2)
    loss_f32(const float* queries, const float* keys, int batch, int n, int dim, float inverse_temperature,
             int tiles_per_range, float* maxima, float* sums, float* weighted) {
    softmax_f32<false>(queries, keys, batch, n, dim, inverse_temperature, tiles_per_range, maxima, sums, weighted, 0, 0);
}

extern "C" __global__ void __launch_bounds__(256, 2)
    loss_f32_weighted(const float* queries, const float* keys, int batch, int n, int dim, float inverse_temperature,
                      int tiles_per_range, float* maxima, float* sums, float* weighted, const float* log_weights,
                      const u32* count) {
    softmax_f32<true>(queries, keys, batch, n, dim, inverse_temperature, tiles_per_range, maxima, sums, weighted, log_weights,
                      count);
}
