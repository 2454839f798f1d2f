// Batch norm over rows of channels, and sums over rows.
//
//   statistics   μ, σ² of each channel over m rows; running ones moved; scale = γ/√(σ²+ε), shift = β − μ·scale
//   apply        y = x·scale + shift (+ residual), then ReLU
//   backward     dβ = Σ d, dγ = Σ d·x̂ with d = dy (where y > 0, if there is a ReLU);
//                dy = γ/√(σ²+ε) · (d − dβ/m − x̂·dγ/m) in place, residual's gradient (+)= d
//
// Sums are taken in two stages in an order that depends on the shape alone: chunks of rows in f32, then the chunks in
// f64. Variances are summed around the first row, so that a large mean costs no digits. A tensor that is not there is a
// null pointer.

template <int V, typename T> static __device__ __forceinline__ void load(const T *p, float v[V]) {
    if constexpr (V == 8)
        load8(p, v);
    else
        v[0] = to_float(p[0]);
}

enum { STATISTICS, BACKWARD, SUMS };

// One chunk of rows: partials[chunk][2][channels]. A thread holds V channels, threadIdx.y takes turns with the rows.
//   STATISTICS   Σ (x − x₀), Σ (x − x₀)²       BACKWARD   Σ d, Σ d·(x − μ)       SUMS   Σ dy, 0
// Blocks have 512 threads and a power of two of them, at most 32, across.
template <int V, int MODE>
static __device__ __forceinline__ void chunk_sums(const element *x, const element *y, const element *dy,
                                                  const float *mean, u32 rows, u32 channels, u32 chunk_rows,
                                                  float *partials) {
    __shared__ float shared[16][2 * V][32];
    u32 c = (blockIdx.x * blockDim.x + threadIdx.x) * V;
    u32 first = blockIdx.y * chunk_rows, end = min(first + chunk_rows, rows);
    float a[2 * V] = {};
    if (c < channels) {
        float pivot[V];
        if (MODE == STATISTICS) load<V>(x + c, pivot);
        if (MODE == BACKWARD) load<V>(mean + c, pivot);
#pragma unroll 4
        for (u32 row = first + threadIdx.y; row < end; row += blockDim.y) {
            u64 at = (u64)row * channels + c;
            float xs[V], d[V], ys[V];
            if (MODE != SUMS) load<V>(x + at, xs);
            if (MODE != STATISTICS) load<V>(dy + at, d);
            if (MODE == BACKWARD && y) {
                load<V>(y + at, ys);
#pragma unroll
                for (int i = 0; i < V; i++) d[i] = ys[i] > 0.0f ? d[i] : 0.0f;
            }
#pragma unroll
            for (int i = 0; i < V; i++) {
                if (MODE == STATISTICS) {
                    float e = xs[i] - pivot[i];
                    a[i] += e, a[V + i] += e * e;
                } else {
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
        u32 to = (blockIdx.x * blockDim.x + across) * V + i % V;
        if (to < channels) partials[(u64)(2 * blockIdx.y + i / V) * channels + to] = total;
    }
}

#define CHUNK_SUMS(name, V, MODE)                                                                                      \
    extern "C" __global__ void __launch_bounds__(512)                                                                  \
        name(const element *x, const element *y, const element *dy, const float *mean, u32 rows, u32 channels,         \
             u32 chunk_rows, float *partials) {                                                                        \
        chunk_sums<V, MODE>(x, y, dy, mean, rows, channels, chunk_rows, partials);                                     \
    }
CHUNK_SUMS(statistics_8, 8, STATISTICS)
CHUNK_SUMS(statistics_1, 1, STATISTICS)
CHUNK_SUMS(backward_sums_8, 8, BACKWARD)
CHUNK_SUMS(backward_sums_1, 1, BACKWARD)
CHUNK_SUMS(sums_8, 8, SUMS)
CHUNK_SUMS(sums_1, 1, SUMS)

// The sum of all chunks, for blocks of 8 channels by 32; complete where threadIdx.y is 0.
static __device__ __forceinline__ void all_chunks(const float *partials, u32 chunks, u32 channels, u32 c, double &a,
                                                  double &b) {
    __shared__ double shared[2][32][9];
    a = 0.0, b = 0.0;
    if (c < channels) {
#pragma unroll 8
        for (u32 chunk = threadIdx.y; chunk < chunks; chunk += 32) {
            a += partials[(u64)(2 * chunk) * channels + c];
            b += partials[(u64)(2 * chunk + 1) * channels + c];
        }
    }
    shared[0][threadIdx.y][threadIdx.x] = a;
    shared[1][threadIdx.y][threadIdx.x] = b;
    for (u32 half = 16; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.y < half) {
            a += shared[0][threadIdx.y + half][threadIdx.x];
            b += shared[1][threadIdx.y + half][threadIdx.x];
            shared[0][threadIdx.y][threadIdx.x] = a;
            shared[1][threadIdx.y][threadIdx.x] = b;
        }
    }
}

// `saved` holds seven rows of channels: mean, 1/√(σ²+ε), scale, shift, and the backward pass's three.
extern "C" __global__ void statistics_finish(const float *partials, u32 chunks, const element *x, u32 rows, u32 channels,
                                             float epsilon, float momentum, const float *gamma, const float *beta,
                                             float *running_mean, float *running_variance, float *saved) {
    u32 c = blockIdx.x * 8 + threadIdx.x, safe = c < channels ? c : 0;
    // Asked for before the sums, which these need not wait for.
    float g = gamma[safe], shift = beta[safe], pivot = to_float(x[safe]);
    float old_mean = running_mean[safe], old_variance = running_variance[safe];
    double share = 1.0 / rows, unbias = rows > 1 ? rows / (rows - 1.0) : 1.0;
    double a, b;
    all_chunks(partials, chunks, channels, c, a, b);
    if (threadIdx.y != 0 || c >= channels) return;
    double from_pivot = a * share;
    float mean = (float)(pivot + from_pivot);
    double variance = b * share - from_pivot * from_pivot;
    variance = variance < 0.0 ? 0.0 : variance;
    float inverse = 1.0f / sqrtf((float)variance + epsilon);
    float scale = g * inverse;
    saved[c] = mean;
    saved[channels + c] = inverse;
    saved[2 * channels + c] = scale;
    saved[3 * channels + c] = shift - mean * scale;
    running_mean[c] = (1.0f - momentum) * old_mean + momentum * mean;
    running_variance[c] = (1.0f - momentum) * old_variance + momentum * (float)(variance * unbias);
}

// Scale and shift from the running statistics.
extern "C" __global__ void running_scale(u32 channels, float epsilon, const float *gamma, const float *beta,
                                         const float *running_mean, const float *running_variance, float *saved) {
    u32 c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= channels) return;
    float scale = gamma[c] / sqrtf(running_variance[c] + epsilon);
    saved[2 * channels + c] = scale;
    saved[3 * channels + c] = beta[c] - running_mean[c] * scale;
}

// A block of 256 threads takes two tiles of values; where a tile is whole rows of channels, a thread meets the same eight
// channels in both and reads what it needs of them once.
#define TILE 2048
#define TWO_TILES(len)                                                                                                 \
    u64 begin = (u64)blockIdx.x * (2 * TILE) + threadIdx.x * 8;                                                        \
    u64 place[2] = {begin, begin + TILE};                                                                              \
    int n[2];                                                                                                          \
    for (int t = 0; t < 2; t++) n[t] = place[t] >= len ? 0 : len - place[t] < 8 ? (int)(len - place[t]) : 8;

// A channel's value for each of eight places in a row of places.
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
    apply(const element *x, const element *residual, const float *saved, int relu, u32 channels, u64 len, element *y) {
    TWO_TILES(len)
    float v[2][8], r[2][8], scale[8], shift[8];
#pragma unroll
    for (int t = 0; t < 2; t++) {
        load_some(x + place[t], n[t], v[t]);
        if (residual) load_some(residual + place[t], n[t], r[t]);
    }
#pragma unroll
    for (int t = 0; t < 2; t++) {
        if (t == 0 || TILE % channels != 0) {
            u32 c = (u32)(place[t] % channels);
            of_channels(saved + 2 * channels, c, channels, scale);
            of_channels(saved + 3 * channels, c, channels, shift);
        }
#pragma unroll
        for (int i = 0; i < 8; i++) {
            v[t][i] = v[t][i] * scale[i] + shift[i];
            if (residual) v[t][i] += r[t][i];
            if (relu) v[t][i] = fmaxf(v[t][i], 0.0f);
        }
        store_some(y + place[t], n[t], v[t]);
    }
}

// dβ and dγ (`=`), and what backward_values multiplies with.
extern "C" __global__ void backward_finish(const float *partials, u32 chunks, u32 rows, u32 channels,
                                           const float *gamma, float *saved, float *dgamma, float *dbeta) {
    u32 c = blockIdx.x * 8 + threadIdx.x, safe = c < channels ? c : 0;
    float inverse = saved[channels + safe], scale = gamma[safe] * inverse;
    double share = 1.0 / rows;
    double a, b;
    all_chunks(partials, chunks, channels, c, a, b);
    if (threadIdx.y != 0 || c >= channels) return;
    dbeta[c] = (float)a;
    dgamma[c] = (float)b * inverse;
    saved[4 * channels + c] = scale;
    saved[5 * channels + c] = -scale * inverse * inverse * (float)(b * share);
    saved[6 * channels + c] = -scale * (float)(a * share);
}

// The sums of a bias's gradient (`=`).
extern "C" __global__ void sums_finish(const float *partials, u32 chunks, u32 channels, float *sums) {
    u32 c = blockIdx.x * 8 + threadIdx.x;
    double a, b;
    all_chunks(partials, chunks, channels, c, a, b);
    if (threadIdx.y == 0 && c < channels) sums[c] = (float)a;
}

extern "C" __global__ void __launch_bounds__(256)
    backward_values(const element *x, const element *y, const float *saved, u32 channels, u64 len, int accumulate,
                    element *residual, element *dy) {
    TWO_TILES(len)
    float d[2][8], v[2][8], mean[8], scale[8], slope[8], shift[8];
#pragma unroll
    for (int t = 0; t < 2; t++) {
        float ys[8];
        load_some(dy + place[t], n[t], d[t]);
        load_some(x + place[t], n[t], v[t]);
        if (y) {
            load_some(y + place[t], n[t], ys);
#pragma unroll
            for (int i = 0; i < 8; i++) d[t][i] = ys[i] > 0.0f ? d[t][i] : 0.0f;
        }
    }
#pragma unroll
    for (int t = 0; t < 2; t++) {
        if (residual) {
            float r[8] = {};
            if (accumulate) load_some(residual + place[t], n[t], r);
#pragma unroll
            for (int i = 0; i < 8; i++) r[i] += d[t][i];
            store_some(residual + place[t], n[t], r);
        }
        if (t == 0 || TILE % channels != 0) {
            u32 c = (u32)(place[t] % channels);
            of_channels(saved, c, channels, mean);
            of_channels(saved + 4 * channels, c, channels, scale);
            of_channels(saved + 5 * channels, c, channels, slope);
            of_channels(saved + 6 * channels, c, channels, shift);
        }
#pragma unroll
        for (int i = 0; i < 8; i++) d[t][i] = scale[i] * d[t][i] + slope[i] * (v[t][i] - mean[i]) + shift[i];
        store_some(dy + place[t], n[t], d[t]);
    }
}
