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
