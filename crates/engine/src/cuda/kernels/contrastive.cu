// The contrastive loss between views of pictures (NT-Xent of SimCLR, for two views or more), in f32 throughout.
//
// Rows are view 0 of all pictures, then view 1, and so on: n of them, taken as they are. With s_jk = row j . row k /
// temperature, l_j = ln sum_{k != j} e^s_jk, and t_jk = 1 / (views - 1) where j and k are views of one picture, else 0:
//   losses[j]   = l_j - sum_k t_jk s_jk
//   gradient[j] = weight / (n temperature) sum_{k != j} (e^(s_jk - l_j) + e^(s_jk - l_k) - 2 t_jk) row k
// Where several processes have pictures, rows are those of all of them: view 0 of all, then view 1, and so on. A process wants losses and
// gradients of its own rows, `own` pictures from number `first` on; queries are these, view after view. One process alone wants them all.
// Four kernels: maxima and sums over ranges of keys; l and the losses; sums of weighted keys over ranges; the gradient.
// Ranges are put together in order, so the bits are the same in every run. Logarithms are to base 2 in here.
// Tiles are those of f32_tiles.cuh.

// Which of all rows a wanted one is.
static __device__ __forceinline__ int place_of(int query, int batch, int first, int own) {
    return query / own * batch + first + query % own;
}

// Maximum and sum under it of each wanted row over a range of keys, itself left out. Grid: (ranges, blocks of 64 wanted rows).
extern "C" __global__ void __launch_bounds__(256, 2)
    contrastive_sums(const float *__restrict__ queries, const float *__restrict__ rows, int views, int batch, int first,
                     int own, int dim, float inverse_temperature, int tiles_per_range, float *maxima, float *sums) {
    // 2 * SIDE * PITCH values.
    extern __shared__ __align__(16) float memory[];
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16, n = views * batch, wanted = views * own;
    const float scale = inverse_temperature * (float)LOG2E;
    float max[4], sum[4];
    int place[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        max[i] = MINUS_INFINITY, sum[i] = 0.f;
        place[i] = place_of(blockIdx.y * SIDE + ty + 16 * i, batch, first, own);
    }
    const int begin = blockIdx.x * tiles_per_range;
    const int end = min(begin + tiles_per_range, (n + SIDE - 1) / SIDE);
    for (int t = begin; t < end; t++) {
        float s[4][4];
        inner_products(s, memory, memory + SIDE * PITCH, queries, wanted, rows, n, dim, t * SIDE, t == begin);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float most = max[i];
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const int key = t * SIDE + tx + 16 * j;
                s[i][j] = key < n && key != place[i] ? s[i][j] * scale : MINUS_INFINITY;
                most = fmaxf(most, s[i][j]);
            }
#pragma unroll
            for (int step = 1; step < 16; step *= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, step));
            // Where a row has seen nothing but itself, any base will do.
            const float base = most == MINUS_INFINITY ? 0.f : most;
            if (most > max[i]) sum[i] *= power_of_two(max[i] - most);
            max[i] = most;
#pragma unroll
            for (int j = 0; j < 4; j++) sum[i] += power_of_two(s[i][j] - base);
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int step = 1; step < 16; step *= 2) sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], step);
        const int row = blockIdx.y * SIDE + ty + 16 * i;
        if (row >= wanted || tx != 0) continue;
        maxima[(size_t)blockIdx.x * wanted + row] = max[i];
        sums[(size_t)blockIdx.x * wanted + row] = sum[i];
    }
}

// l (base 2) and the loss of each wanted row, a warp for each.
extern "C" __global__ void contrastive_losses(const float *__restrict__ rows, int views, int batch, int first, int wanted_each,
                                              int dim, float inverse_temperature, int ranges,
                                              const float *__restrict__ maxima, const float *__restrict__ sums,
                                              float *log_sums, float *losses) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32, n = views * wanted_each;
    if (row >= n) return;
    float most = MINUS_INFINITY, sum = 0.f;
    for (int r = 0; r < ranges; r++) most = fmaxf(most, maxima[(size_t)r * n + row]);
    for (int r = 0; r < ranges; r++)
        sum += power_of_two(maxima[(size_t)r * n + row] - most) * sums[(size_t)r * n + row];
    float positive = 0.f;
    const int place = place_of(row, batch, first, wanted_each);
    const float *own = rows + (size_t)place * dim;
    for (int u = 0; u < views; u++) {
        const int other = u * batch + place % batch;
        if (other == place) continue;
        for (int d = lane; d < dim; d += 32) positive = fmaf(own[d], rows[(size_t)other * dim + d], positive);
    }
    positive = warp_sum(positive);
    if (lane != 0) return;
    const double log_sum = (double)most + log2((double)sum);
    log_sums[row] = (float)log_sum;
    losses[row] = (float)(log_sum / LOG2E - (double)positive * inverse_temperature / (views - 1));
}

// Sums of weighted keys over a range, from l of all rows. Grid: (ranges, blocks of 64 wanted rows, chunks of 128 columns): a block sums its own
// chunk.
extern "C" __global__ void __launch_bounds__(256, 2)
    contrastive_weighted(const float *__restrict__ queries, const float *__restrict__ rows, int views, int batch,
                         int first, int own, int dim, float inverse_temperature, int tiles_per_range,
                         const float *__restrict__ log_sums, float *weighted) {
    // 2 * SIDE * PITCH + SIDE * WEIGHTS_PITCH values.
    extern __shared__ __align__(16) float memory[];
    float *key_rows = memory + SIDE * PITCH, *weights = memory + 2 * SIDE * PITCH;
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16, n = views * batch, wanted = views * own;
    const float scale = inverse_temperature * (float)LOG2E, twice = 2.f / (views - 1);
    float own_log[4], total[4][8];
    int picture[4], place[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int query = blockIdx.y * SIDE + ty + 16 * i;
        place[i] = place_of(query, batch, first, own);
        own_log[i] = query < wanted ? log_sums[place[i]] : 0.f;
        picture[i] = place[i] % batch;
#pragma unroll
        for (int j = 0; j < 8; j++) total[i][j] = 0.f;
    }
    const int begin = blockIdx.x * tiles_per_range;
    const int end = min(begin + tiles_per_range, (n + SIDE - 1) / SIDE);
    for (int t = begin; t < end; t++) {
        float s[4][4];
        inner_products(s, memory, key_rows, queries, wanted, rows, n, dim, t * SIDE, t == begin);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int key = t * SIDE + tx + 16 * j;
            const float key_log = key < n ? log_sums[key] : 0.f;
            const int key_picture = key % batch;
#pragma unroll
            for (int i = 0; i < 4; i++) {
                // At most 1 each, but for rounding.
                float weight = power_of_two(fminf(s[i][j] * scale - own_log[i], 0.f)) +
                               power_of_two(fminf(s[i][j] * scale - key_log, 0.f));
                if (key_picture == picture[i]) weight -= twice;
                if (key >= n || key == place[i]) weight = 0.f;
                weights[(ty + 16 * i) * WEIGHTS_PITCH + tx + 16 * j] = weight;
            }
        }
        add_weighted_keys(total, weights, key_rows, rows, n, dim, t * SIDE);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int row = blockIdx.y * SIDE + ty + 16 * i;
        if (row < wanted) store_total(total[i], weighted, (size_t)blockIdx.x * wanted + row, dim);
    }
}

// gradient = factor * the sum over the ranges, a thread for each value.
extern "C" __global__ void contrastive_gradient(const float *__restrict__ weighted, int ranges, u64 len, float factor,
                                                float *gradient) {
    const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= len) return;
    float sum = 0.f;
#pragma unroll 8
    for (int r = 0; r < ranges; r++) sum += weighted[r * len + at];
    gradient[at] = factor * sum;
}
