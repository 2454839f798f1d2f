// Values that depend on one place of each input: copies, ReLU, add, bias, activations, dropout, moved channels, colours.
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

// y = tanh x, or x above zero and `leak` of it below.
extern "C" __global__ void activation(const element *x, int tanh_, float leak, u64 len, element *y) {
    RUN_OF_EIGHT(len)
    float v[8];
    load_some(x + at, n, v);
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = tanh_ ? tanhf(v[i]) : v[i] > 0.0f ? v[i] : leak * v[i];
    store_some(y + at, n, v);
}

// Its gradient: dx (+)= dy times the slope, told by y.
extern "C" __global__ void activation_backward(const element *y, const element *dy, int tanh_, float leak, int accumulate,
                                               u64 len, element *dx) {
    RUN_OF_EIGHT(len)
    float v[8], d[8];
    load_some(y + at, n, v);
    load_some(dy + at, n, d);
#pragma unroll
    for (int i = 0; i < 8; i++) d[i] *= tanh_ ? 1.0f - v[i] * v[i] : v[i] > 0.0f ? 1.0f : leak;
    if (accumulate) {
        load_some(dx + at, n, v);
#pragma unroll
        for (int i = 0; i < 8; i++) d[i] += v[i];
    }
    store_some(dx + at, n, d);
}

// y (+)= x where kept, scaled by 1/(1 − p); elsewhere zero, and NaN where x is not finite. Four
// neighbouring values share a block of words, which is drawn from (seed, step, place, block) again
// in the backward pass: `words_block` says which of its place's blocks, by pass and layer. `step`
// is in device memory, already below 2^20; `before` places are other processes'.
extern "C" __global__ void dropout(const element *x, u64 seed, u32 words_block, const u64 *step,
                                   u64 before, float p, int accumulate, u64 len, element *y) {
    RUN_OF_EIGHT(len)
    const u32 stream = 4;
    u32 epoch = (u32)*step;
    float scale = 1.0f / (1.0f - p);
    float v[8], w[8];
    load_some(x + at, n, v);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        u64 place = before + at / 4 + half;
        uint4 counter = make_uint4(words_block, (u32)place, (u32)(place >> 32) | epoch << 8,
                                   stream << 8 | epoch >> 24);
        uint4 words = philox(counter, make_uint2((u32)seed, (u32)(seed >> 32)));
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

// Channel c of a place of y (+)= channel c + `first` of x where there is one, else zero. A thread for each value of y.
extern "C" __global__ void channels(const element *x, u32 from, int first, u32 to, int accumulate, u64 len, element *y) {
    u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= len) return;
    int c = (int)(at % to) + first;
    float v = c >= 0 && c < (int)from ? to_float(x[at / to * from + c]) : 0.0f;
    y[at] = to_element(accumulate ? to_float(y[at]) + v : v);
}

// Colours as CIE Lab; naive/lab.rs has the maths. A place's linear colours, and how fast each grows with its input.
static __device__ void linear_colours(const element *x, const float *mean, const float *std, float t[3], float slope[3]) {
    float linear[3];
#pragma unroll
    for (int c = 0; c < 3; c++) {
        float v = to_float(x[c]) * std[c] + mean[c];
        bool inside = v > 0.0f && v < 1.0f;
        // NaN stays.
        v = v < 0.0f ? 0.0f : v > 1.0f ? 1.0f : v;
        float base = (v + 0.055f) / 1.055f, grows;
        if (v <= 0.04045f) {
            linear[c] = v / 12.92f;
            grows = 1.0f / 12.92f;
        } else {
            linear[c] = powf(base, 2.4f);
            grows = 2.4f / 1.055f * powf(base, 1.4f);
        }
        slope[c] = inside ? grows * std[c] : 0.0f;
    }
    t[0] = (0.4124564f * linear[0] + 0.3575761f * linear[1] + 0.1804375f * linear[2]) / 0.95047f;
    t[1] = 0.2126729f * linear[0] + 0.7151522f * linear[1] + 0.0721750f * linear[2];
    t[2] = (0.0193339f * linear[0] + 0.1191920f * linear[1] + 0.9503041f * linear[2]) / 1.08883f;
}

#define LAB_DELTA (6.0f / 29.0f)
#define LAB_SLOPE (1.0f / (3.0f * LAB_DELTA * LAB_DELTA))

static __device__ __forceinline__ float lab_f(float t) {
    return t <= LAB_DELTA * LAB_DELTA * LAB_DELTA ? t * LAB_SLOPE + 4.0f / 29.0f : cbrtf(t);
}

static __device__ __forceinline__ float lab_slope(float t) {
    float root = cbrtf(t);
    return t <= LAB_DELTA * LAB_DELTA * LAB_DELTA ? LAB_SLOPE : 1.0f / (3.0f * root * root);
}

extern "C" __global__ void lab(const element *x, const float *mean, const float *std, u64 places, element *y) {
    u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= places) return;
    float t[3], slope[3];
    linear_colours(x + 3 * at, mean, std, t, slope);
    float fx = lab_f(t[0]), fy = lab_f(t[1]), fz = lab_f(t[2]);
    y[3 * at] = to_element(116.0f / 50.0f * fy - 16.0f / 50.0f - 1.0f);
    y[3 * at + 1] = to_element(500.0f / 110.0f * (fx - fy));
    y[3 * at + 2] = to_element(200.0f / 110.0f * (fy - fz));
}

// dx (+)= the gradient of the colours.
extern "C" __global__ void lab_backward(const element *x, const element *dy, const float *mean, const float *std,
                                        int accumulate, u64 places, element *dx) {
    u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= places) return;
    float t[3], slope[3], d[3];
    linear_colours(x + 3 * at, mean, std, t, slope);
#pragma unroll
    for (int c = 0; c < 3; c++) d[c] = to_float(dy[3 * at + c]);
    float x_ = lab_slope(t[0]) * (500.0f / 110.0f * d[1]) / 0.95047f;
    float y_ = lab_slope(t[1]) * (116.0f / 50.0f * d[0] - 500.0f / 110.0f * d[1] + 200.0f / 110.0f * d[2]);
    float z_ = lab_slope(t[2]) * (-200.0f / 110.0f * d[2]) / 1.08883f;
    float g[3] = {0.4124564f * x_ + 0.2126729f * y_ + 0.0193339f * z_, 0.3575761f * x_ + 0.7151522f * y_ + 0.1191920f * z_,
                  0.1804375f * x_ + 0.0721750f * y_ + 0.9503041f * z_};
#pragma unroll
    for (int c = 0; c < 3; c++) {
        float v = slope[c] * g[c];
        dx[3 * at + c] = to_element(accumulate ? to_float(dx[3 * at + c]) + v : v);
    }
}
