// Colours as CIE Lab; mod.rs has the maths. A place's linear colours, and how fast each grows with its input.
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
