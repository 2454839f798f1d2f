// The first kernel of a step: what changes from step to step is looked up, and the counters go on.

// next: the step in the epoch to be taken, the epoch, the number of that step among all. current takes these for the step's
// other kernels, and the number modulo 2^20, by which dropout draws. With an order, indices takes the batch's items; each
// schedule's value in this step goes to scalars. The step's loss begins at zero, also in the ring of losses.
extern "C" __global__ void begin_step(u64 *next, u64 *current, const u32 *order, u32 batch, u32 *indices,
                                      const float *schedules, u32 steps, u32 count, float *scalars, double *loss,
                                      float *ring, u32 capacity) {
    const u64 step = next[0], epoch = next[1], number = next[2];
    if (order)
        for (u32 b = threadIdx.x; b < batch; b += blockDim.x) indices[b] = order[step * batch + b];
    if (threadIdx.x < count && step < steps) scalars[threadIdx.x] = schedules[threadIdx.x * steps + step];
    __syncthreads();
    if (threadIdx.x != 0) return;
    current[0] = step, current[1] = epoch, current[2] = number, current[3] = number % (1 << 20);
    next[0] = step + 1, next[2] = number + 1;
    *loss = 0.0;
    ring[number % capacity] = 0.f;
}

// For work that is part of no epoch.
extern "C" __global__ void set_step(u64 number, float rate, u64 *current, float *scalars, double *loss) {
    current[0] = 0, current[1] = 0, current[2] = number, current[3] = number % (1 << 20);
    scalars[0] = rate;
    *loss = 0.0;
}

// to (+)= from
extern "C" __global__ void add_values(const float *from, u64 len, int accumulate, float *to) {
    const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at < len) to[at] = accumulate ? to[at] + from[at] : from[at];
}

// values *= factor
extern "C" __global__ void scale_values(u64 len, float factor, float *values) {
    const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at < len) values[at] *= factor;
}

// Numbers in [−1, 1); naive/uniform.rs says which. A thread draws four. `step` is in device memory, already below 2^20.
extern "C" __global__ void uniform(u32 seed_low, u32 seed_high, const u64 *step, u64 len, float *to) {
    const u64 block = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    const u32 stream = 18, now = (u32)*step;
    const uint4 counter = make_uint4(0, (u32)block, (u32)(block >> 32) | now << 8, stream << 8 | now >> 24);
    const uint4 words = philox(counter, make_uint2(seed_low, seed_high));
    const u32 word[4] = {words.x, words.y, words.z, words.w};
    for (u32 i = 0; i < 4 && 4 * block + i < len; i++) to[4 * block + i] = (float)(word[i] >> 8) * (2.0f / 16777216.0f) - 1.0f;
}
