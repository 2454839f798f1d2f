// The global average, a sum in a fixed order.

extern "C" __global__ void global_average(const element *x, u32 pixels, u32 channels, u64 len, element *y) {
    u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= len) return;
    const element *from = x + at / channels * pixels * channels + at % channels;
    float sum = 0.0f;
#pragma unroll 4
    for (u32 i = 0; i < pixels; i++) sum += to_float(from[(u64)i * channels]);
    y[at] = to_element(sum / (float)pixels);
}

extern "C" __global__ void global_average_backward(const element *dy, u32 pixels, u32 channels, u64 len, int accumulate,
                                                   element *dx) {
    u64 at = 8 * ((u64)blockIdx.x * blockDim.x + threadIdx.x);
    if (at >= len) return;
    int n = len - at < 8 ? (int)(len - at) : 8;
    float share = 1.0f / (float)pixels, d[8], v[8];
    u64 row = at / channels;
    u32 c = (u32)(at % channels);
    if (channels % 8 == 0) {
        load8(dy + row / pixels * channels + c, d);
    } else {
        for (int i = 0; i < n; i++) {
            d[i] = to_float(dy[row / pixels * channels + c]);
            if (++c == channels) c = 0, row++;
        }
    }
    if (accumulate) load_some(dx + at, n, v);
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = accumulate ? v[i] + d[i] * share : d[i] * share;
    store_some(dx + at, n, v);
}
