// Optimisers over the vector of all weights: SGD, LARS and AdamW (crate::Optimiser has the maths), and the exponential moving
// average of such a vector; and what becomes of running statistics. Weights and state are changed in place; gradients are read.
//
// Tensors begin at multiples of eight values; tensor_of[at / 8] is the number of the tensor that a value belongs to, and
// tensors[number] says how it is trained. Without tensor_of all values belong to tensor 0.
//
// The gradient is the sum over the passes of a step, in order. The first `matrices` weights (a multiple of four) have it in
// `narrow` and a rounded copy in `copies`, which the convolutions read, where activations are bf16; else `matrices` is 0.
//
// The rate lies in device memory, since it changes between steps that are otherwise the same; and
// so does `current`: step in the epoch, epoch, number of all steps before this one. Nothing changes
// where a flag is given and up: the loss was not finite.

#define THREADS 256
#define MOST_PASSES 32

// Not trained in the steps frozen_from..frozen_until of the run.
struct Tensor {
    float rate_factor, decay;
    u64 frozen_from, frozen_until, adapt;
};

static __device__ __forceinline__ bool is_frozen(const Tensor &tensor, u64 number) {
    return number >= tensor.frozen_from && number < tensor.frozen_until;
}

// How many steps a tensor that is not frozen has taken, of `number` of the run.
static __device__ __forceinline__ u64 own_steps(const Tensor &tensor, u64 number) {
    const u64 frozen = tensor.frozen_until - tensor.frozen_from;
    return number < tensor.frozen_until ? number : number - frozen;
}

struct Gradients {
    const float *wide[MOST_PASSES];
    const element *narrow[MOST_PASSES];
    u32 passes;
};

static __device__ __forceinline__ void load_four(const float *p, float v[4]) {
    float4 a = *(const float4 *)p;
    v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w;
}
static __device__ __forceinline__ void load_four(const bf16 *p, float v[4]) {
    uint2 a = *(const uint2 *)p;
    v[0] = lower(a.x), v[1] = upper(a.x), v[2] = lower(a.y), v[3] = upper(a.y);
}
static __device__ __forceinline__ void store_four(float *p, const float v[4]) {
    *(float4 *)p = make_float4(v[0], v[1], v[2], v[3]);
}
static __device__ __forceinline__ void store_four(bf16 *p, const float v[4]) {
    *(uint2 *)p = make_uint2(pack(v[0], v[1]), pack(v[2], v[3]));
}

// The gradient of four weights, over all passes.
static __device__ __forceinline__ void gradient_of_four(const Gradients &gradients, u64 matrices, u64 at, float g[4]) {
    const bool narrow = at < matrices;
    if (narrow)
        load_four(gradients.narrow[0] + at, g);
    else
        load_four(gradients.wide[0] + at, g);
    for (u32 pass = 1; pass < gradients.passes; pass++) {
        float more[4];
        if (narrow)
            load_four(gradients.narrow[pass] + at, more);
        else
            load_four(gradients.wide[pass] + at, more);
#pragma unroll
        for (int i = 0; i < 4; i++) g[i] += more[i];
    }
}

static __device__ __forceinline__ u64 four_of_thread() { return 4 * ((u64)blockIdx.x * THREADS + threadIdx.x); }

static __device__ __forceinline__ u32 tensor_at(const unsigned short *tensor_of, u64 at) {
    return tensor_of ? tensor_of[at / 8] : 0;
}

// ---------------------------------------------------------------------------------------------------------------------
// SGD, and LARS where `local` gives each tensor's factor of the gradient (x) and its weight decay (y).

extern "C" __global__ void __launch_bounds__(THREADS)
    sgd_step(const float *rate, const u64 *current, float kept, u32 nesterov, Gradients gradients,
             const unsigned short *tensor_of, const Tensor *tensors, const float2 *local,
             const u32 *flag, u64 matrices, u64 len, float *weights, float *momentum,
             element *copies) {
    const u64 at = four_of_thread();
    if (at >= len) return;
    const u32 stopped = flag ? *flag : 0;
    const u32 number = tensor_at(tensor_of, at);
    const Tensor tensor = tensors[number];
    const float step = *rate * tensor.rate_factor;
    float w[4], v[4], g[4];
    load_four(weights + at, w);
    load_four(momentum + at, v);
    gradient_of_four(gradients, matrices, at, g);
    if (stopped || is_frozen(tensor, current[2])) return;
    const float2 adapted = local ? local[number] : make_float2(1.f, tensor.decay);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        g[i] += adapted.y * w[i];
        if (local) g[i] *= adapted.x;
        v[i] = kept * v[i] + g[i];
        w[i] -= step * (nesterov ? g[i] + kept * v[i] : v[i]);
    }
    store_four(weights + at, w);
    store_four(momentum + at, v);
    if (at < matrices) store_four(copies + at, w);
}

// ---------------------------------------------------------------------------------------------------------------------
// LARS: squares of the lengths of weights and gradient over parts of tensors, then each tensor's factor and decay. All sums
// have one order.

struct Part {
    u64 start;
    u32 len, tensor;
};

// A block for each part of values, all of one tensor; squares[part] = (of the weights, of the gradient).
extern "C" __global__ void __launch_bounds__(THREADS)
    lars_squares(const Part *parts, Gradients gradients, u64 matrices, const float *weights, double2 *squares) {
    __shared__ double2 of_warps[THREADS / 32];
    const Part part = parts[blockIdx.x];
    double2 sum = make_double2(0.0, 0.0);
    for (u32 i = 4 * threadIdx.x; i < part.len; i += 4 * THREADS) {
        float w[4], g[4];
        load_four(weights + part.start + i, w);
        gradient_of_four(gradients, matrices, part.start + i, g);
#pragma unroll
        for (int k = 0; k < 4; k++) {
            sum.x += (double)w[k] * (double)w[k];
            sum.y += (double)g[k] * (double)g[k];
        }
    }
    sum = make_double2(warp_sum(sum.x), warp_sum(sum.y));
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int warp = 1; warp < THREADS / 32; warp++) sum.x += of_warps[warp].x, sum.y += of_warps[warp].y;
    squares[blockIdx.x] = sum;
}

// A warp for each tensor from `first` on; the parts of tensor n are squares[starts[n]..starts[n + 1]].
extern "C" __global__ void __launch_bounds__(THREADS)
    lars_rates(const u32 *starts, const double2 *squares, const Tensor *tensors, u32 first, u32 count, float trust,
               float epsilon, float2 *local) {
    const u32 warp = (blockIdx.x * THREADS + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (warp >= count) return;
    const u32 number = first + warp;
    const Tensor tensor = tensors[number];
    double weights = 0.0, gradient = 0.0;
    for (u32 part = starts[number] + lane; part < starts[number + 1]; part += 32)
        weights += squares[part].x, gradient += squares[part].y;
    weights = sqrt(warp_sum(weights)), gradient = sqrt(warp_sum(gradient));
    if (lane != 0) return;
    float2 result = make_float2(1.f, tensor.decay);
    if (tensor.adapt && (weights == 0.0 || gradient == 0.0))
        result.y = 0.f;
    else if (tensor.adapt)
        result.x = (float)((double)trust * weights / (gradient + (double)tensor.decay * weights + (double)epsilon));
    local[number] = result;
}

// ---------------------------------------------------------------------------------------------------------------------
// AdamW.

// 1 / (1 - beta1^t) and the root of 1 - beta2^t, t being the number of a tensor's step, from 1 on.
static __device__ __forceinline__ float2 bias_corrections(u64 before, float beta1, float beta2) {
    const double t = (double)(before + 1);
    const double first = 1.0 - pow((double)beta1, t), second = 1.0 - pow((double)beta2, t);
    return make_float2((float)(1.0 / first), (float)sqrt(second));
}

extern "C" __global__ void __launch_bounds__(THREADS)
    adam_w_step(const float *rate, const u64 *current, float beta1, float beta2, float epsilon, Gradients gradients,
                const unsigned short *tensor_of, const Tensor *tensors, const u32 *flag, u64 matrices, u64 len,
                float *weights, float *mean, float *square, element *copies) {
    // One thread computes them for the block's first tensor, and mostly all tensors have taken as
    // many steps.
    __shared__ float2 of_first;
    const u64 at = four_of_thread(), number = current[2];
    const u64 first_steps = own_steps(tensors[tensor_at(tensor_of, at - 4 * threadIdx.x)], number);
    if (threadIdx.x == 0) of_first = bias_corrections(first_steps, beta1, beta2);
    __syncthreads();
    if (at >= len || (flag && *flag)) return;
    const Tensor tensor = tensors[tensor_at(tensor_of, at)];
    if (is_frozen(tensor, number)) return;
    const u64 steps = own_steps(tensor, number);
    const float2 corrections =
        steps == first_steps ? of_first : bias_corrections(steps, beta1, beta2);
    const float one_over_first = corrections.x, root = corrections.y;
    const float step = *rate * tensor.rate_factor, keep = 1.f - step * tensor.decay, moved = step * one_over_first;
    float w[4], m[4], v[4], g[4];
    load_four(weights + at, w);
    load_four(mean + at, m);
    load_four(square + at, v);
    gradient_of_four(gradients, matrices, at, g);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        m[i] += (1.f - beta1) * (g[i] - m[i]);
        v[i] = beta2 * v[i] + (1.f - beta2) * (g[i] * g[i]);
        w[i] = keep * w[i] - moved * (m[i] / (sqrtf(v[i]) / root + epsilon));
    }
    store_four(weights + at, w);
    store_four(mean + at, m);
    store_four(square + at, v);
    if (at < matrices) store_four(copies + at, w);
}

// ---------------------------------------------------------------------------------------------------------------------
// target = m target + (1 - m) source.

extern "C" __global__ void __launch_bounds__(THREADS)
    ema(const float *m, const u32 *flag, const float *__restrict__ source, u64 matrices, u64 len, float *target,
        element *copies) {
    const u64 at = four_of_thread();
    if (at >= len || (flag && *flag)) return;
    const float kept = *m, rest = 1.f - kept;
    float t[4], s[4];
    load_four(target + at, t);
    load_four(source + at, s);
#pragma unroll
    for (int i = 0; i < 4; i++) t[i] = kept * t[i] + rest * s[i];
    store_four(target + at, t);
    if (at < matrices) store_four(copies + at, t);
}

// ---------------------------------------------------------------------------------------------------------------------
// What a step's passes have done to running statistics is kept, or undone where the flag is up.

extern "C" __global__ void __launch_bounds__(THREADS)
    settle_statistics(const u32 *flag, u64 len, float *statistics, float *kept) {
    const u64 at = four_of_thread();
    if (at >= len) return;
    const bool stopped = *flag;
    float v[4];
    load_four((stopped ? kept : statistics) + at, v);
    store_four((stopped ? statistics : kept) + at, v);
}
