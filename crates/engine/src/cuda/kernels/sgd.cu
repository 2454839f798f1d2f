// The optimiser, over all parameters in one launch, and the settings it reads.
//
//   g ← g + decay·w;  v ← momentum·v + g;  w ← w − rate·(g + momentum·v) with Nesterov, w − rate·v without

struct Settings {
    float rate, momentum, decay;
    u32 nesterov;
};

// Settings change between steps that are otherwise the same, so they lie in device memory.
extern "C" __global__ void set_settings(Settings given, Settings *settings) { *settings = given; }
extern "C" __global__ void set_step(u64 given, u64 *step) { *step = given; }

// The first `matrices` weights (a multiple of four) have their gradients in `narrow_gradients` and a rounded copy in
// `copies`, which the convolutions read, where activations are bf16; else `matrices` is 0.
extern "C" __global__ void sgd(const Settings *settings, const float *gradients, const element *narrow_gradients,
                               u64 matrices, u64 len, float *weights, float *momentum, element *copies) {
    u64 at = 4 * ((u64)blockIdx.x * blockDim.x + threadIdx.x);
    if (at >= len) return;
    Settings s = *settings;
    float4 w4 = *(const float4 *)(weights + at), v4 = *(const float4 *)(momentum + at), g4;
    if (at < matrices) {
        g4.x = to_float(narrow_gradients[at]), g4.y = to_float(narrow_gradients[at + 1]);
        g4.z = to_float(narrow_gradients[at + 2]), g4.w = to_float(narrow_gradients[at + 3]);
    } else {
        g4 = *(const float4 *)(gradients + at);
    }
    float w[4] = {w4.x, w4.y, w4.z, w4.w}, v[4] = {v4.x, v4.y, v4.z, v4.w}, g[4] = {g4.x, g4.y, g4.z, g4.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        g[i] += s.decay * w[i];
        v[i] = s.momentum * v[i] + g[i];
        w[i] -= s.rate * (s.nesterov ? g[i] + s.momentum * v[i] : v[i]);
    }
    *(float4 *)(weights + at) = make_float4(w[0], w[1], w[2], w[3]);
    *(float4 *)(momentum + at) = make_float4(v[0], v[1], v[2], v[3]);
    if (at < matrices) {
#pragma unroll
        for (int i = 0; i < 4; i++) copies[at + i] = to_element(w[i]);
    }
}
