// Values that depend on one place of each input: copies, ReLU, add, bias, dropout.
//
// A thread takes eight neighbouring values; every tensor begins at a multiple of sixteen bytes. A tensor that is not
// there is a null pointer.

// The first of a thread's values, and how many it has.
#define RUN_OF_EIGHT(len)                                                                                              \
    u64 at = 8 * ((u64)blockIdx.x * blockDim.x + threadIdx.x);                                                         \
    if (at >= len) return;                                                                                             \
    int n = len - at < 8 ? (int)(len - at) : 8;

// y = x, from f32.
extern "C" __global__ void narrow(const float *x, u64 len, element *y) {
    RUN_OF_EIGHT(len)
    float v[8];
    load_some(x + at, n, v);
    store_some(y + at, n, v);
}

// The same with `to` channels where x has `from`; those added are zero. A thread for each place.
extern "C" __global__ void narrow_padded(const float *x, u64 places, u32 from, u32 to, element *y) {
    u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= places) return;
    for (u32 c = 0; c < to; c++) y[at * to + c] = to_element(c < from ? x[at * from + c] : 0.0f);
}

// Rows `indices` of a matrix, each of `row` values, one after the other. A block for each row.
extern "C" __global__ void gather_rows(const float *rows, const u32 *indices, u32 row, float *y) {
    const float *from = rows + (u64)indices[blockIdx.x] * row;
    float *to = y + (u64)blockIdx.x * row;
    for (u32 i = threadIdx.x; i < row; i += blockDim.x) to[i] = from[i];
}

// y = x, to f32.
extern "C" __global__ void widen(const element *x, u64 len, float *y) {
    RUN_OF_EIGHT(len)
    float v[8];
    load_some(x + at, n, v);
    store_some(y + at, n, v);
}

// y = values in ±1 that look like none in particular.
extern "C" __global__ void noise(u64 len, element *y) {
    RUN_OF_EIGHT(len)
    float v[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
        u32 bits = (u32)(at + i) * 2654435761u;
        bits = (bits ^ bits >> 15) * 2246822519u;
        v[i] = (float)(bits >> 8) * (2.0f / 16777216.0f) - 1.0f;
    }
    store_some(y + at, n, v);
}

// y = x + bias + residual, then ReLU; bias (of `channels`) and residual where they are there. In place where y is x.
extern "C" __global__ void finish(const element *x, const float *bias, const element *residual, int relu, u32 channels,
                                  u64 len, element *y) {
    RUN_OF_EIGHT(len)
    float v[8], r[8];
    load_some(x + at, n, v);
    if (bias) {
        u32 c = (u32)(at % channels);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            v[i] += bias[c];
            c = c + 1 == channels ? 0 : c + 1;
        }
    }
    if (residual) {
        load_some(residual + at, n, r);
#pragma unroll
        for (int i = 0; i < 8; i++) v[i] += r[i];
    }
    if (relu) {
#pragma unroll
        for (int i = 0; i < 8; i++) v[i] = relu_of(v[i]);
    }
    store_some(y + at, n, v);
}

// The gradient through a copy or a ReLU: dx (+)= dy, where y > 0 if there is a y. In place where dx is dy.
extern "C" __global__ void pass_gradient(const element *y, const element *dy, int accumulate, u64 len, element *dx) {
    RUN_OF_EIGHT(len)
    float v[8], d[8];
    load_some(dy + at, n, d);
    if (y) {
        load_some(y + at, n, v);
#pragma unroll
        for (int i = 0; i < 8; i++) d[i] = v[i] > 0.0f ? d[i] : 0.0f;
    }
    if (accumulate) {
        load_some(dx + at, n, v);
#pragma unroll
        for (int i = 0; i < 8; i++) d[i] += v[i];
    }
    store_some(dx + at, n, d);
}

// Philox4x32-10, as the CPU draws.
static __device__ uint4 philox(uint4 counter, uint2 key) {
#pragma unroll
    for (int round = 0; round < 10; round++) {
        u64 a = 0xD2511F53ull * counter.x, b = 0xCD9E8D57ull * counter.z;
        counter = make_uint4((u32)(b >> 32) ^ counter.y ^ key.x, (u32)b, (u32)(a >> 32) ^ counter.w ^ key.y, (u32)a);
        key.x += 0x9E3779B9u;
        key.y += 0xBB67AE85u;
    }
    return counter;
}

// y (+)= x where kept, scaled by 1/(1 − p); elsewhere zero, and NaN where x is not finite. Four neighbouring values share a block of words, which is drawn from
// (layer, step, block) again in the backward pass. `step` is in device memory, already below 2^20.
extern "C" __global__ void dropout(const element *x, u32 layer, const u64 *step, float p, int accumulate, u64 len,
                                   element *y) {
    RUN_OF_EIGHT(len)
    const u32 stream = 4;
    u32 epoch = (u32)*step;
    float scale = 1.0f / (1.0f - p);
    float v[8], w[8];
    load_some(x + at, n, v);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        u64 block = at / 4 + half;
        uint4 counter = make_uint4(0, (u32)block, (u32)(block >> 32) | epoch << 8, stream << 8 | epoch >> 24);
        uint4 words = philox(counter, make_uint2(layer, 0));
        u32 word[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float unit = (float)(word[i] >> 8) * (1.0f / 16777216.0f);
            v[4 * half + i] = unit < p ? v[4 * half + i] * 0.0f + 0.0f : v[4 * half + i] * scale;
        }
    }
    if (accumulate) {
        load_some(y + at, n, w);
#pragma unroll
        for (int i = 0; i < 8; i++) v[i] += w[i];
    }
    store_some(y + at, n, v);
}
