// Batch norm, residual add and ReLU of batch_norm.cu, each direction in one kernel, for tensors that the chip can hold: a
// block keeps its part in registers (and shared memory) from the first reading to the writing, so that memory is read once.
//
// Blocks are [slice of channels][chunk of rows]. Those of a slice exchange their sums through memory and wait for each
// other, so all blocks of a launch must be on the chip at once: there is no more than one for each multiprocessor, and no
// second launch of this kind beside it.
//
// A launch may begin before the kernel before it has ended, and does meanwhile what does not depend on that one.
// Sums over chunks are added in f64 in the order of the chunks, so the bits depend on the shape and on the chip's size alone.
//
//   partials   [chunk][2][channels]
//   relu_mask  a bit for each value: whether it is above zero, where a residual was added before the ReLU
//   arrivals   one u64 for each slice; they count on from launch to launch

#define THREADS 512
#define WARPS (THREADS / 32)
#define MOST_ACROSS 8 // threads across a slice: 64 channels

#if ELEMENT_BF16
struct Held {
    uint4 words;
};
static __device__ __forceinline__ Held hold(const element *p) { return {*(const uint4 *)p}; }
static __device__ __forceinline__ void values_of(const Held &h, float v[8]) { load8((const bf16 *)&h.words, v); }
static __device__ __forceinline__ Held held(const float v[8]) {
    return {make_uint4(pack(v[0], v[1]), pack(v[2], v[3]), pack(v[4], v[5]), pack(v[6], v[7]))};
}
#else
struct Held {
    float4 words[2];
};
static __device__ __forceinline__ Held hold(const element *p) {
    return {{((const float4 *)p)[0], ((const float4 *)p)[1]}};
}
static __device__ __forceinline__ void values_of(const Held &h, float v[8]) { load8((const float *)h.words, v); }
static __device__ __forceinline__ Held held(const float v[8]) {
    return {{make_float4(v[0], v[1], v[2], v[3]), make_float4(v[4], v[5], v[6], v[7])}};
}
#endif

static __device__ __forceinline__ void soon(const void *p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

// From here on the kernel before this one has ended, and what it wrote is there.
static __device__ __forceinline__ void after_the_one_before() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Has values come to shared memory, past the registers. They are needed for the last time in a while, and need not stay in
// the cache.
static __device__ __forceinline__ void send_for(Held *to, const element *from) {
    u32 at = (u32)__cvta_generic_to_shared(to);
    u64 passing;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(passing));
#pragma unroll
    for (u32 i = 0; i < sizeof(Held) / 16; i++)
        asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(at + 16 * i),
                     "l"((const uint4 *)from + i), "l"(passing)
                     : "memory");
}

// Where a thread's values lie: eight channels of every `down`-th row of the block's chunk.
struct Share {
    u32 across, down, channel, first, end;
    static __device__ __forceinline__ Share of(u32 width, u32 rows, u32 chunk_rows) {
        u32 across = width / 8, chunk = blockIdx.y * chunk_rows;
        return {across, THREADS / across, blockIdx.x * width + threadIdx.x % across * 8,
                chunk + threadIdx.x / across, min(chunk + chunk_rows, rows)};
    }
};

// Both sums of all rows for every channel of the slice, from each thread's sums of its own: totals[2][width].
static __device__ __forceinline__ void all_rows(const Share &s, float a[16], u32 width, u32 channels, float *partials,
                                                u64 *arrivals, double *totals) {
    __shared__ float warps[WARPS][16][MOST_ACROSS];
    __shared__ double parts[4 * THREADS];
    // First over the rows within a warp, then over the warps.
    for (u32 offset = s.across; offset < 32; offset *= 2) {
#pragma unroll
        for (int i = 0; i < 16; i++) a[i] += __shfl_xor_sync(0xffffffffu, a[i], offset);
    }
    u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32, slice = blockIdx.x * width;
    if (lane < s.across) {
#pragma unroll
        for (int i = 0; i < 16; i++) warps[warp][i][lane] = a[i];
    }
    __syncthreads();
    if (threadIdx.x < 2 * width) {
        u32 row = threadIdx.x / width, c = threadIdx.x % width;
        float total = 0.0f;
#pragma unroll
        for (int w = 0; w < WARPS; w++) total += warps[w][row * 8 + c % 8][c / 8];
        partials[(u64)(2 * blockIdx.y + row) * channels + slice + c] = total;
    }
    // Everybody's sums are there when everybody has arrived. The barrier orders the block's writes before the first thread's
    // release, which orders them before everybody's acquire.
    __syncthreads();
    if (threadIdx.x == 0) {
        u64 *place = arrivals + blockIdx.x, before, now;
        asm volatile("atom.add.acq_rel.gpu.u64 %0, [%1], 1;" : "=l"(before) : "l"(place) : "memory");
        u64 all = (before / gridDim.y + 1) * gridDim.y;
        do {
            asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(now) : "l"(place) : "memory");
        } while (now < all);
    }
    __syncthreads();
    // Four sums a thread, and as many threads for the same four as there are, each with every so-many-th chunk.
    u32 fours = width / 2, each = THREADS / fours, part = threadIdx.x / fours;
    {
        u32 row = threadIdx.x % fours * 4 / width, c = threadIdx.x % fours * 4 % width;
        double total[4] = {};
        const float *from = partials + (u64)row * channels + slice + c;
#pragma unroll 9
        for (u32 chunk = part; chunk < gridDim.y; chunk += each) {
            float4 v = __ldcg((const float4 *)(from + (u64)(2 * chunk) * channels));
            total[0] += v.x, total[1] += v.y, total[2] += v.z, total[3] += v.w;
        }
#pragma unroll
        for (int k = 0; k < 4; k++) parts[part * 2 * width + threadIdx.x % fours * 4 + k] = total[k];
    }
    __syncthreads();
    if (threadIdx.x < 2 * width) {
        double total = 0.0;
#pragma unroll 16
        for (u32 p = 0; p < each; p++) total += parts[p * 2 * width + threadIdx.x];
        totals[threadIdx.x] = total;
    }
    __syncthreads();
}

// Shared memory holds the block's part of the residual, each thread its own.
template <int K>
static __device__ __forceinline__ void forward(const element *x, const element *residual, const Norm &norm, int relu,
                                               u32 channels, u32 width, u32 chunk_rows, float *partials, u64 *arrivals,
                                               element *y, unsigned char *relu_mask) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ double totals[16 * MOST_ACROSS];
    __shared__ __align__(16) float scales[8 * MOST_ACROSS], shifts[8 * MOST_ACROSS];
    Share s = Share::of(width, norm.rows, chunk_rows);
    Held *added = (Held *)memory + threadIdx.x;
    // Of what is read, x alone comes from the kernel before.
    if (residual) {
#pragma unroll
        for (int k = 0; k < K; k++) {
            u32 row = s.first + k * s.down;
            if (row < s.end) send_for(added + k * THREADS, residual + (u64)row * channels + s.channel);
        }
        end_group();
    }
    after_the_one_before();
    Held mine[K];
    float pivot[8], a[16] = {};
    load8(x + s.channel, pivot);
#pragma unroll
    for (int k = 0; k < K; k++) {
        u32 row = s.first + k * s.down;
        if (row < s.end) mine[k] = hold(x + (u64)row * channels + s.channel);
    }
#pragma unroll
    for (int k = 0; k < K; k++) {
        u32 row = s.first + k * s.down;
        if (row >= s.end) continue;
        float v[8];
        values_of(mine[k], v);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            float e = v[i] - pivot[i];
            a[i] += e, a[8 + i] += e * e;
        }
    }
    // What the sums are not needed for is asked for before them.
    u32 c = blockIdx.x * width + threadIdx.x % width;
    float gamma = norm.gamma[c], beta = norm.beta[c], first = to_float(x[c]);
    float running_mean = norm.running_mean[c], running_variance = norm.running_variance[c];
    double share = 1.0 / norm.rows, unbias = norm.rows > 1 ? norm.rows / (norm.rows - 1.0) : 1.0;
    all_rows(s, a, width, channels, partials, arrivals, totals);
    if (threadIdx.x < width) {
        double from_pivot = totals[threadIdx.x] * share;
        double variance = totals[width + threadIdx.x] * share - from_pivot * from_pivot;
        variance = variance < 0.0 ? 0.0 : variance;
        float mean = (float)(first + from_pivot);
        float inverse = 1.0f / sqrtf((float)variance + norm.epsilon);
        float scale = gamma * inverse, shift = beta - mean * scale;
        scales[threadIdx.x] = scale;
        shifts[threadIdx.x] = shift;
        if (blockIdx.y == 0) {
            float m = norm.momentum;
            norm.running_mean[c] = (1.0f - m) * running_mean + m * mean;
            norm.running_variance[c] = (1.0f - m) * running_variance + m * (float)(variance * unbias);
            norm.saved[MEAN * channels + c] = mean;
            norm.saved[INVERSE * channels + c] = inverse;
            norm.saved[SCALE * channels + c] = scale;
            norm.saved[SHIFT * channels + c] = shift;
        }
    }
    __syncthreads();
    float scale[8], shift[8];
    load8(scales + threadIdx.x % s.across * 8, scale);
    load8(shifts + threadIdx.x % s.across * 8, shift);
    wait_for_group<0>();
#pragma unroll
    for (int k = 0; k < K; k++) {
        u32 row = s.first + k * s.down;
        if (row >= s.end) continue;
        u64 at = (u64)row * channels + s.channel;
        float v[8], r[8];
        values_of(mine[k], v);
        if (residual) values_of(added[k * THREADS], r);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            v[i] = v[i] * scale[i] + shift[i];
            if (residual) v[i] += r[i];
            if (relu) v[i] = relu_of(v[i]);
        }
        store8(y + at, v);
        if (!relu_mask) continue;
        u32 bits = 0;
#pragma unroll
        for (int i = 0; i < 8; i++) bits |= (u32)(v[i] > 0.0f) << i;
        relu_mask[at / 8] = (unsigned char)bits;
    }
}

// Shared memory holds the block's x, each thread its own, and of d what registers have no room for.
template <int K>
static __device__ __forceinline__ void backward(const element *x, const unsigned char *relu_mask, const Norm &norm,
                                                int relu, u32 channels, u32 width, u32 chunk_rows, int accumulate,
                                                element *residual, element *dy, float *dgamma, float *dbeta,
                                                float *partials, u64 *arrivals) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ double totals[16 * MOST_ACROSS];
    __shared__ __align__(16) float scales[8 * MOST_ACROSS], slopes[8 * MOST_ACROSS], shifts[8 * MOST_ACROSS];
    constexpr int ASIDE = K == 16 ? 8 : 0;
    Held *own = (Held *)memory + threadIdx.x, *aside = own + K * THREADS;
    // Rows are taken a few at a time, all of them asked for before the first is used.
    constexpr int SOME = K < 4 ? K : 4;
    Share s = Share::of(width, norm.rows, chunk_rows);
    bool from_x = relu && !relu_mask;
    u32 bits[(K + 3) / 4] = {};
    // Of what is read, dy alone comes from the kernel before.
#pragma unroll
    for (int k = 0; k < K; k++) {
        u32 row = s.first + k * s.down;
        u64 at = (u64)row * channels + s.channel;
        if (row < s.end) send_for(own + k * THREADS, x + at);
        if (row < s.end && relu_mask) bits[k / 4] |= (u32)relu_mask[at / 8] << 8 * (k % 4);
        if ((k + 1) % SOME == 0) end_group();
    }
    Held mine[K - ASIDE];
    float a[16] = {};
    {
        float mean[8], scale[8], shift[8];
        load8(norm.saved + MEAN * channels + s.channel, mean);
        load8(norm.saved + SCALE * channels + s.channel, scale);
        load8(norm.saved + SHIFT * channels + s.channel, shift);
        after_the_one_before();
#pragma unroll
        for (int first = 0; first < K; first += SOME) {
            Held ds[SOME];
#pragma unroll
            for (int k = 0; k < SOME; k++) {
                u32 row = s.first + (first + k) * s.down;
                if (row >= s.end) continue;
                u64 at = (u64)row * channels + s.channel;
                ds[k] = hold(dy + at);
                if (residual && accumulate) soon(residual + at);
            }
            switch (K / SOME - 1 - first / SOME) {
            case 0: wait_for_group<0>(); break;
            case 1: wait_for_group<1>(); break;
            case 2: wait_for_group<2>(); break;
            default: wait_for_group<3>();
            }
#pragma unroll
            for (int k = 0; k < SOME; k++) {
                u32 row = s.first + (first + k) * s.down;
                if (row >= s.end) continue;
                float v[8], d[8];
                values_of(own[(first + k) * THREADS], v);
                values_of(ds[k], d);
                u32 passed = bits[(first + k) / 4] >> 8 * ((first + k) % 4);
#pragma unroll
                for (int i = 0; i < 8; i++) {
                    if (relu_mask) d[i] = passed >> i & 1 ? d[i] : 0.0f;
                    if (from_x) d[i] = v[i] * scale[i] + shift[i] > 0.0f ? d[i] : 0.0f;
                    a[i] += d[i], a[8 + i] += d[i] * (v[i] - mean[i]);
                }
                if (first + k < ASIDE)
                    aside[(first + k) * THREADS] = held(d);
                else
                    mine[first + k - ASIDE] = held(d);
            }
        }
    }
    u32 c = blockIdx.x * width + threadIdx.x % width;
    float inverse = norm.saved[INVERSE * channels + c], own_scale = norm.saved[SCALE * channels + c];
    float mean = norm.saved[MEAN * channels + c];
    double share = 1.0 / norm.rows;
    all_rows(s, a, width, channels, partials, arrivals, totals);
    if (threadIdx.x < width) {
        double beta = totals[threadIdx.x], gamma = totals[width + threadIdx.x];
        float slope = -own_scale * inverse * inverse * (float)(gamma * share);
        scales[threadIdx.x] = own_scale;
        slopes[threadIdx.x] = slope;
        shifts[threadIdx.x] = -own_scale * (float)(beta * share) - slope * mean;
        if (blockIdx.y == 0) {
            dbeta[c] = (float)beta;
            dgamma[c] = (float)gamma * inverse;
        }
    }
    __syncthreads();
    float scale[8], slope[8], shift[8];
    load8(scales + threadIdx.x % s.across * 8, scale);
    load8(slopes + threadIdx.x % s.across * 8, slope);
    load8(shifts + threadIdx.x % s.across * 8, shift);
#pragma unroll
    for (int k = 0; k < K; k++) {
        u32 row = s.first + k * s.down;
        if (row >= s.end) continue;
        u64 at = (u64)row * channels + s.channel;
        float v[8], d[8], r[8];
        values_of(own[k * THREADS], v);
        values_of(k < ASIDE ? aside[k * THREADS] : mine[k < ASIDE ? 0 : k - ASIDE], d);
        if (residual) {
            if (accumulate) load8(residual + at, r);
#pragma unroll
            for (int i = 0; i < 8; i++) r[i] = accumulate ? r[i] + d[i] : d[i];
            store8(residual + at, r);
        }
#pragma unroll
        for (int i = 0; i < 8; i++) d[i] = scale[i] * d[i] + slope[i] * v[i] + shift[i];
        store8(dy + at, d);
    }
}

#define ON_CHIP(K)                                                                                                     \
    extern "C" __global__ void __launch_bounds__(THREADS, 1)                                                           \
        norm_forward_##K(const element *x, const element *residual, Norm norm, int relu, u32 channels, u32 width,      \
                         u32 chunk_rows, float *partials, u64 *arrivals, element *y, unsigned char *relu_mask) {           \
        forward<K>(x, residual, norm, relu, channels, width, chunk_rows, partials, arrivals, y, relu_mask);                \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS, 1)                                                           \
        norm_backward_##K(const element *x, const unsigned char *relu_mask, Norm norm, int relu, u32 channels, u32 width,  \
                          u32 chunk_rows, int accumulate, element *residual, element *dy, float *dgamma,               \
                          float *dbeta, float *partials, u64 *arrivals) {                                              \
        backward<K>(x, relu_mask, norm, relu, channels, width, chunk_rows, accumulate, residual, dy, dgamma, dbeta,        \
                    partials, arrivals);                                                                               \
    }
ON_CHIP(2)
ON_CHIP(4)
#if ELEMENT_BF16
ON_CHIP(8)
ON_CHIP(16)
#endif
