// The end of a step that nobody watches: its loss is put aside, and the counters go on.

#define THREADS 256

// The mean of the batch's losses goes to means[total modulo capacity]; counter is step in the epoch, epoch, total.
extern "C" __global__ void advance(const float *losses, u32 batch, float *means, u32 capacity, u64 *counter,
                                   u64 *step) {
    __shared__ double parts[THREADS];
    double sum = 0.0;
    for (u32 i = threadIdx.x; i < batch; i += THREADS) sum += losses[i];
    parts[threadIdx.x] = sum;
    for (u32 half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
    }
    if (threadIdx.x != 0) return;
    means[counter[2] % capacity] = (float)(parts[0] / batch);
    counter[0] += 1;
    counter[2] += 1;
    // As the host counts steps for dropout.
    *step = (*step + 1) % (1 << 20);
}
