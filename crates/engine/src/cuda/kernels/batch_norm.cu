// Batch norm over rows of channels, and sums over rows.
//
//   statistics   μ, σ² of each channel over m rows
//   apply        scale = γ/√(σ²+ε), shift = β − μ·scale; y = x·scale + shift (+ residual), then ReLU; running
//                statistics moved
//   backward     dβ = Σ d, dγ = Σ d·x̂ with d = dy (where y > 0, if there is a ReLU);
//                dy = γ/√(σ²+ε) · (d − dβ/m − x̂·dγ/m) in place, residual's gradient (+)= d
//
// Either direction is two kernels. The first sums chunks of rows in f32, and the last block to be done among GROUP chunks
// adds these up in f64, so that few sums are left. The second adds up what is left, every block for itself, and goes over
// the values. All orders depend on the shape alone, whichever block is last. Variances are summed around the first row, so
// that a large mean costs no digits. A tensor that is not there is a null pointer.
//
// y > 0 is asked of y only where a residual was added; else of x·scale + shift, which is at hand.

#define GROUP 32

enum { STATISTICS, BACKWARD, SUMS };

// One chunk of rows: partials[chunk][2][channels]. A thread holds V channels, threadIdx.y takes turns with the rows.
//   STATISTICS   Σ (x − x₀), Σ (x − x₀)²       BACKWARD   Σ d, Σ d·(x − μ)       SUMS   Σ dy, 0
// Blocks have 512 threads and a power of two of them, at most 32, across. `tickets` are zero before and after.
template <int V, int MODE>
static __device__ __forceinline__ void chunk_sums(const element *x, const element *y, const element *dy, int relu,
                                                  const float *saved, u32 rows, u32 channels, u32 chunk_rows,
                                                  float *partials, double *sums, u32 *tickets) {
    __shared__ float shared[16][2 * V][32];
    __shared__ int last;
    u32 base = blockIdx.x * blockDim.x * V, c = base + threadIdx.x * V;
    u32 first = blockIdx.y * chunk_rows, end = min(first + chunk_rows, rows);
    float a[2 * V] = {};
    if (c < channels) {
        float pivot[V], scale[V], shift[V];
        bool from_x = MODE == BACKWARD && relu && !y;
        if (MODE == STATISTICS) load<V>(x + c, pivot);
        if (MODE == BACKWARD) load<V>(saved + MEAN * channels + c, pivot);
        if (from_x) {
            load<V>(saved + SCALE * channels + c, scale);
            load<V>(saved + SHIFT * channels + c, shift);
        }
#pragma unroll 4
        for (u32 row = first + threadIdx.y; row < end; row += blockDim.y) {
            u64 at = (u64)row * channels + c;
            float xs[V], d[V], ys[V];
            if (MODE != SUMS) load<V>(x + at, xs);
            if (MODE != STATISTICS) load<V>(dy + at, d);
            if (MODE == BACKWARD && y) load<V>(y + at, ys);
#pragma unroll
            for (int i = 0; i < V; i++) {
                if (MODE == STATISTICS) {
                    float e = xs[i] - pivot[i];
                    a[i] += e, a[V + i] += e * e;
                } else {
                    if (MODE == BACKWARD && y) d[i] = ys[i] > 0.0f ? d[i] : 0.0f;
                    if (from_x) d[i] = xs[i] * scale[i] + shift[i] > 0.0f ? d[i] : 0.0f;
                    a[i] += d[i];
                    if (MODE == BACKWARD) a[V + i] += d[i] * (xs[i] - pivot[i]);
                }
            }
        }
    }
    // First over the rows within a warp, then over the warps.
    u32 thread = threadIdx.y * blockDim.x + threadIdx.x, warp = thread / 32, lane = thread % 32;
    for (u32 offset = blockDim.x; offset < 32; offset *= 2) {
#pragma unroll
        for (int i = 0; i < 2 * V; i++) a[i] += __shfl_xor_sync(0xffffffffu, a[i], offset);
    }
#pragma unroll
    for (int i = 0; i < 2 * V; i++) shared[warp][i][lane] = a[i];
    __syncthreads();
    // A thread for each sum of each thread across.
    for (u32 sum = thread; sum < 2 * V * blockDim.x; sum += 512) {
        u32 across = sum % blockDim.x, i = sum / blockDim.x;
        float total = 0.0f;
#pragma unroll
        for (int w = 0; w < 16; w++) total += shared[w][i][across];
        u32 to = base + across * V + i % V;
        if (to < channels) partials[(u64)(2 * blockIdx.y + i / V) * channels + to] = total;
    }

    // The last block of the group adds up what the group's blocks have left.
    u32 group = blockIdx.y / GROUP, chunk = group * GROUP, count = min(GROUP, gridDim.y - chunk);
    __threadfence();
    __syncthreads();
    if (thread == 0) {
        u32 *ticket = tickets + group * gridDim.x + blockIdx.x;
        last = atomicAdd(ticket, 1) + 1 == count;
        if (last) *ticket = 0;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    u32 across = min(blockDim.x * V, channels - base);
    for (u32 sum = thread; sum < 2 * across; sum += 512) {
        u32 row = sum / across, column = base + sum % across;
        const float *from = partials + (u64)(2 * chunk + row) * channels + column;
        double total = 0.0;
#pragma unroll 16
        for (u32 k = 0; k < count; k++) total += __ldcg(from + (u64)(2 * k) * channels);
        sums[(u64)(2 * group + row) * channels + column] = total;
    }
}

#define CHUNK_SUMS(name, V, MODE)                                                                                      \
    extern "C" __global__ void __launch_bounds__(512)                                                                  \
        name(const element *x, const element *y, const element *dy, int relu, const float *saved, u32 rows,            \
             u32 channels, u32 chunk_rows, float *partials, double *sums, u32 *tickets) {                              \
        chunk_sums<V, MODE>(x, y, dy, relu, saved, rows, channels, chunk_rows, partials, sums, tickets);               \
    }
CHUNK_SUMS(statistics_8, 8, STATISTICS)
CHUNK_SUMS(statistics_1, 1, STATISTICS)
CHUNK_SUMS(backward_sums_8, 8, BACKWARD)
CHUNK_SUMS(backward_sums_1, 1, BACKWARD)
CHUNK_SUMS(sums_8, 8, SUMS)
CHUNK_SUMS(sums_1, 1, SUMS)

// Both sums of a channel.
static __device__ __forceinline__ void add_groups(const double *sums, u32 groups, u32 channels, u32 c, double &a,
                                                  double &b) {
    a = 0.0, b = 0.0;
#pragma unroll 4
    for (u32 g = 0; g < groups; g++) {
        a += sums[(u64)(2 * g) * channels + c];
        b += sums[(u64)(2 * g + 1) * channels + c];
    }
}

// A channel's scale and shift; `keeps` moves the running statistics and saves what the backward pass needs.
static __device__ __forceinline__ void forward_of(const element *x, const Norm &norm, int training, u32 channels, u32 c,
                                                  bool keeps, float &scale, float &shift) {
    float mean, variance;
    if (training) {
        const double all = (double)norm.rows * norm.ranks;
        double a, b, share = 1.0 / all, unbias = all > 1.0 ? all / (all - 1.0) : 1.0;
        float pivot = to_float(x[c]);
        add_groups(norm.sums, norm.groups, channels, c, a, b);
        double from_pivot = a * share, squares = b * share - from_pivot * from_pivot;
        squares = squares < 0.0 ? 0.0 : squares;
        mean = (float)(pivot + from_pivot);
        variance = (float)squares;
        if (keeps) {
            float m = norm.momentum;
            norm.running_mean[c] = (1.0f - m) * norm.running_mean[c] + m * mean;
            norm.running_variance[c] = (1.0f - m) * norm.running_variance[c] + m * (float)(squares * unbias);
        }
    } else {
        mean = norm.running_mean[c];
        variance = norm.running_variance[c];
    }
    float inverse = 1.0f / sqrtf(variance + norm.epsilon);
    scale = norm.gamma[c] * inverse, shift = norm.beta[c] - mean * scale;
    if (training && keeps) {
        norm.saved[MEAN * channels + c] = mean;
        norm.saved[INVERSE * channels + c] = inverse;
        norm.saved[SCALE * channels + c] = scale;
        norm.saved[SHIFT * channels + c] = shift;
    }
}

// What dy of a channel is made with: scale·d + slope·(x − mean) + shift; `keeps` writes dβ and dγ, where they are wanted.
static __device__ __forceinline__ void backward_of(const Norm &norm, u32 channels, u32 c, bool keeps, float *dgamma,
                                                   float *dbeta, float &scale, float &slope, float &shift) {
    double a, b, share = 1.0 / ((double)norm.rows * norm.ranks);
    float inverse = norm.saved[INVERSE * channels + c];
    scale = norm.saved[SCALE * channels + c];
    add_groups(norm.sums, norm.groups, channels, c, a, b);
    slope = -scale * inverse * inverse * (float)(b * share);
    shift = -scale * (float)(a * share);
    if (keeps && dgamma) {
        dbeta[c] = (float)a;
        dgamma[c] = (float)b * inverse;
    }
}

// Blocks of 256 threads take two tiles of values at a time; where a tile is whole rows of channels, a thread meets the
// same eight channels always and reads what it needs of them once.
#define TILE 2048
#define TWO_TILES(len)                                                                                                 \
    u64 place[2] = {pair * (2 * TILE) + threadIdx.x * 8, pair * (2 * TILE) + TILE + threadIdx.x * 8};                  \
    int n[2];                                                                                                          \
    _Pragma("unroll") for (int t = 0; t < 2; t++) n[t] = place[t] >= len        ? 0                                    \
                                                         : len - place[t] < 8 ? (int)(len - place[t])                  \
                                                                              : 8;

// A channel's value for each of eight places in a row of places, from shared memory.
static __device__ __forceinline__ void of_channels(const float *p, u32 c, u32 channels, float v[8]) {
    if (channels % 8 == 0) {
        load8(p + c, v);
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
        v[i] = p[c];
        c = c + 1 == channels ? 0 : c + 1;
    }
}

extern "C" __global__ void __launch_bounds__(256)
    apply(const element *x, const element *residual, Norm norm, int training, int relu, u32 channels, u64 len,
          element *y) {
    extern __shared__ __align__(16) float rows[];
    for (u32 c = threadIdx.x; c < channels; c += 256) {
        float scale, shift;
        forward_of(x, norm, training, channels, c, blockIdx.x == 0, scale, shift);
        rows[c] = scale;
        rows[channels + c] = shift;
    }
    __syncthreads();
    bool same = TILE % channels == 0;
    float scale[8], shift[8];
    if (same) {
        u32 c = threadIdx.x * 8 % channels;
        of_channels(rows, c, channels, scale);
        of_channels(rows + channels, c, channels, shift);
    }
    for (u64 pair = blockIdx.x; pair * (2 * TILE) < len; pair += gridDim.x) {
        TWO_TILES(len)
        float v[2][8], r[2][8];
#pragma unroll
        for (int t = 0; t < 2; t++) {
            load_some(x + place[t], n[t], v[t]);
            if (residual) load_some(residual + place[t], n[t], r[t]);
        }
#pragma unroll
        for (int t = 0; t < 2; t++) {
            if (!same) {
                u32 c = (u32)(place[t] % channels);
                of_channels(rows, c, channels, scale);
                of_channels(rows + channels, c, channels, shift);
            }
#pragma unroll
            for (int i = 0; i < 8; i++) {
                v[t][i] = v[t][i] * scale[i] + shift[i];
                if (residual) v[t][i] += r[t][i];
                if (relu) v[t][i] = relu_of(v[t][i]);
            }
            store_some(y + place[t], n[t], v[t]);
        }
    }
}

// dβ and dγ (`=`), dy in place, the residual's gradient. Shared memory holds five rows of channels.
extern "C" __global__ void __launch_bounds__(256)
    backward_values(const element *x, const element *y, Norm norm, int relu, u32 channels, u64 len, int accumulate,
                    element *residual, element *dy, float *dgamma, float *dbeta) {
    extern __shared__ __align__(16) float rows[];
    for (u32 c = threadIdx.x; c < channels; c += 256) {
        rows[c] = norm.saved[MEAN * channels + c];
        rows[4 * channels + c] = norm.saved[SHIFT * channels + c];
        float scale, slope, shift;
        backward_of(norm, channels, c, blockIdx.x == 0, dgamma, dbeta, scale, slope, shift);
        rows[channels + c] = scale;
        rows[2 * channels + c] = slope;
        rows[3 * channels + c] = shift;
    }
    __syncthreads();
    bool same = TILE % channels == 0, from_x = relu && !y;
    float mean[8], scale[8], slope[8], shift[8], forward[8];
    auto of = [&](u32 c) {
        of_channels(rows, c, channels, mean);
        of_channels(rows + channels, c, channels, scale);
        of_channels(rows + 2 * channels, c, channels, slope);
        of_channels(rows + 3 * channels, c, channels, shift);
        of_channels(rows + 4 * channels, c, channels, forward);
    };
    if (same) of(threadIdx.x * 8 % channels);
    for (u64 pair = blockIdx.x; pair * (2 * TILE) < len; pair += gridDim.x) {
        TWO_TILES(len)
        float d[2][8], v[2][8], ys[2][8], r[2][8];
#pragma unroll
        for (int t = 0; t < 2; t++) {
            load_some(dy + place[t], n[t], d[t]);
            load_some(x + place[t], n[t], v[t]);
            if (y) load_some(y + place[t], n[t], ys[t]);
            if (residual && accumulate) load_some(residual + place[t], n[t], r[t]);
        }
#pragma unroll
        for (int t = 0; t < 2; t++) {
            if (!same) of((u32)(place[t] % channels));
#pragma unroll
            for (int i = 0; i < 8; i++) {
                if (y) d[t][i] = ys[t][i] > 0.0f ? d[t][i] : 0.0f;
                if (from_x) d[t][i] = v[t][i] * scale[i] + forward[i] > 0.0f ? d[t][i] : 0.0f;
            }
            if (residual) {
#pragma unroll
                for (int i = 0; i < 8; i++) r[t][i] = accumulate ? r[t][i] + d[t][i] : d[t][i];
                store_some(residual + place[t], n[t], r[t]);
            }
#pragma unroll
            for (int i = 0; i < 8; i++)
                d[t][i] = scale[i] * d[t][i] + slope[i] * (v[t][i] - mean[i]) + shift[i];
            store_some(dy + place[t], n[t], d[t]);
        }
    }
}

// The same two where shared memory does not hold all channels: a thread keeps V channels in registers and goes down the
// rows with them. threadIdx.y and blockIdx.y take turns with the rows.
template <int V>
static __device__ __forceinline__ void apply_columns(const element *x, const element *residual, const Norm &norm,
                                                     int training, int relu, u32 channels, element *y) {
    u32 c = (blockIdx.x * blockDim.x + threadIdx.x) * V, first = blockIdx.y * blockDim.y + threadIdx.y;
    if (c >= channels) return;
    float scale[V], shift[V];
#pragma unroll
    for (int i = 0; i < V; i++) forward_of(x, norm, training, channels, c + i, first == 0, scale[i], shift[i]);
    for (u32 row = first; row < norm.rows; row += gridDim.y * blockDim.y) {
        u64 at = (u64)row * channels + c;
        float v[V], r[V];
        load<V>(x + at, v);
        if (residual) load<V>(residual + at, r);
#pragma unroll
        for (int i = 0; i < V; i++) {
            v[i] = v[i] * scale[i] + shift[i];
            if (residual) v[i] += r[i];
            if (relu) v[i] = relu_of(v[i]);
        }
        store<V>(y + at, v);
    }
}

template <int V>
static __device__ __forceinline__ void backward_columns(const element *x, const element *y, const Norm &norm, int relu,
                                                        u32 channels, int accumulate, element *residual, element *dy,
                                                        float *dgamma, float *dbeta) {
    u32 c = (blockIdx.x * blockDim.x + threadIdx.x) * V, first = blockIdx.y * blockDim.y + threadIdx.y;
    if (c >= channels) return;
    bool from_x = relu && !y;
    float mean[V], scale[V], slope[V], shift[V], forward[V];
    load<V>(norm.saved + MEAN * channels + c, mean);
    load<V>(norm.saved + SHIFT * channels + c, forward);
#pragma unroll
    for (int i = 0; i < V; i++)
        backward_of(norm, channels, c + i, first == 0, dgamma, dbeta, scale[i], slope[i], shift[i]);
    for (u32 row = first; row < norm.rows; row += gridDim.y * blockDim.y) {
        u64 at = (u64)row * channels + c;
        float d[V], v[V], ys[V], r[V];
        load<V>(dy + at, d);
        load<V>(x + at, v);
        if (y) load<V>(y + at, ys);
        if (residual && accumulate) load<V>(residual + at, r);
#pragma unroll
        for (int i = 0; i < V; i++) {
            if (y) d[i] = ys[i] > 0.0f ? d[i] : 0.0f;
            if (from_x) d[i] = v[i] * scale[i] + forward[i] > 0.0f ? d[i] : 0.0f;
        }
        if (residual) {
#pragma unroll
            for (int i = 0; i < V; i++) r[i] = accumulate ? r[i] + d[i] : d[i];
            store<V>(residual + at, r);
        }
#pragma unroll
        for (int i = 0; i < V; i++) d[i] = scale[i] * d[i] + slope[i] * (v[i] - mean[i]) + shift[i];
        store<V>(dy + at, d);
    }
}

#define COLUMNS(V)                                                                                                     \
    extern "C" __global__ void __launch_bounds__(256)                                                                  \
        apply_columns_##V(const element *x, const element *residual, Norm norm, int training, int relu, u32 channels,  \
                          element *y) {                                                                                \
        apply_columns<V>(x, residual, norm, training, relu, channels, y);                                              \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256)                                                                  \
        backward_columns_##V(const element *x, const element *y, Norm norm, int relu, u32 channels, int accumulate,    \
                             element *residual, element *dy, float *dgamma, float *dbeta) {                            \
        backward_columns<V>(x, y, norm, relu, channels, accumulate, residual, dy, dgamma, dbeta);                      \
    }
COLUMNS(8)
COLUMNS(1)

// The sums of a bias's gradient (`=`).
extern "C" __global__ void sums_finish(const double *sums, u32 groups, u32 channels, float *out) {
    u32 c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= channels) return;
    double a, b;
    add_groups(sums, groups, channels, c, a, b);
    out[c] = (float)a;
}

// ---------------------------------------------------------------------------------------------------------------------
// Statistics over the rows of several processes, each with as many; a thread for each channel. What they leave stands in for the sums of one
// group.

// This process's mean and Σ (x − mean)², to own[2][channels].
extern "C" __global__ void own_statistics(const element *x, const double *sums, u32 groups, u32 rows, u32 channels,
                                          double *own) {
    u32 c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= channels) return;
    double a, b;
    add_groups(sums, groups, channels, c, a, b);
    double from_pivot = a / rows, squares = b - a * from_pivot;
    own[c] = (double)to_float(x[c]) + from_pivot;
    own[channels + c] = squares < 0.0 ? 0.0 : squares;
}

// From all[rank][2][channels] of these, in rank order, to Σ (x − x₀) and Σ (x − x₀)² over all rows, around this process's first row.
extern "C" __global__ void merge_statistics(const element *x, const double *all, u32 ranks, u32 rows, u32 channels,
                                            double *sums) {
    u32 c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= channels) return;
    double mean = 0.0, squares = 0.0;
    for (u32 r = 0; r < ranks; r++) mean += all[(u64)(2 * r) * channels + c];
    mean /= ranks;
    for (u32 r = 0; r < ranks; r++) {
        double apart = all[(u64)(2 * r) * channels + c] - mean;
        squares += all[(u64)(2 * r + 1) * channels + c] + rows * apart * apart;
    }
    double from_pivot = mean - (double)to_float(x[c]), count = (double)rows * ranks;
    sums[c] = count * from_pivot;
    sums[channels + c] = squares + count * from_pivot * from_pivot;
}

// This process's own dβ and dγ (`=`), and the sums they are made of, Σ d and Σ d·(x − μ), to own[2][channels].
extern "C" __global__ void own_gradients(const double *sums, u32 groups, u32 channels, const float *saved, float *dgamma,
                                         float *dbeta, double *own) {
    u32 c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= channels) return;
    double a, b;
    add_groups(sums, groups, channels, c, a, b);
    own[c] = a, own[channels + c] = b;
    dbeta[c] = (float)a;
    dgamma[c] = (float)b * saved[INVERSE * channels + c];
}
