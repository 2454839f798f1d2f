// Values that depend on one place of each input: copies, ReLU, add, bias.
//
// A thread takes eight neighbouring values; every tensor begins at a multiple of sixteen bytes. A tensor that is not
// there is a null pointer.

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
