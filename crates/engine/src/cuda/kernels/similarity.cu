// What the ranges of keys left behind (loss_bf16.cu, loss_f32.cu) becomes the loss and its gradient; and the keys' update.
//
// With s = q.k / temperature, p = softmax(s) over all keys and p~ the softmax over the positives alone:
//   loss = ln sum_all e^s - ln sum_pos e^s
//   gradient of the mean loss = (sum p k - sum p~ k) / (temperature * batch)
// or, where each positive counts as much, the mean of s over them in place of ln sum_pos e^s and their mean in place of sum p~ k.
// Both are written (=).
//
// The keys are cut into ranges, one block each. A block goes over its range once, tile by tile, with a running maximum and
// sum, and carries sum e^(s - max) k along (it shrinks when the maximum grows): the batch x keys matrix never exists, and
// nothing is computed twice. A range leaves maxima[range][query] and sums[range][query] (base 2: of s log2 e), and
// weighted[range][query][dim]. loss_merge puts the ranges together in their order, so the result is the same to the bit
// every time on one chip.

// The ranges put together, the positives subtracted. A block of 512 threads for each query: four groups of 128 columns,
// each group with a quarter of the ranges, since the time goes into waiting for memory.

#define MOST_RANGES 1024
#define POSITIVES 128
#define MERGE_THREADS 512
#define GROUPS (MERGE_THREADS / 128)

__device__ float sum_of_block(float x, float* scratch) {
    x = warp_sum(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = x;
    __syncthreads();
    x = 0.f;
    for (int warp = 0; warp < MERGE_THREADS / 32; warp++) x += scratch[warp];
    return x;
}

__device__ float max_of_block(float x, float* scratch) {
#pragma unroll
    for (int step = 16; step; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = x;
    __syncthreads();
    for (int warp = 0; warp < MERGE_THREADS / 32; warp++) x = fmaxf(x, scratch[warp]);
    return x;
}

__device__ __forceinline__ float seen(float x, int rounded) { return rounded ? lower(pack(x, 0.f)) : x; }

// Logits (base 2) of up to POSITIVES keys, a warp for each.
__device__ void positive_logits(float* logits, const float* query, const float* keys, const u32* members, int count,
                                int dim, float scale, int rounded) {
    const int lane = threadIdx.x % 32;
    __syncthreads();
    for (int p = threadIdx.x / 32; p < count; p += MERGE_THREADS / 32) {
        const float* key = keys + (size_t)members[p] * dim;
        float dot = 0.f;
        for (int d = lane; d < dim; d += 32) dot = fmaf(seen(query[d], rounded), seen(key[d], rounded), dot);
        dot = warp_sum(dot);
        if (lane == 0) logits[p] = dot * scale;
    }
    __syncthreads();
}

// Positives of query q: members[starts[r]..starts[r + 1]], r = q, or items[q modulo item_count] where items are given: the
// positives of all pictures can then lie on the device for a whole round. The gradient is that of weight * mean(losses).
// With `rounded` the positives are seen as loss_bf16 saw them, so that the loss of a certain query is 0 and not -0.01.
extern "C" __global__ void __launch_bounds__(MERGE_THREADS)
    loss_merge(const float* __restrict__ queries, const float* __restrict__ keys, int batch, int n, int dim,
               float inverse_temperature, int ranges, const float* __restrict__ maxima,
               const float* __restrict__ sums, const float* __restrict__ weighted, const u32* __restrict__ starts,
               const u32* __restrict__ members, const u32* __restrict__ items, u32 item_count, int each,
               float weight, int rounded, float* losses, float* gradient) {
    __shared__ float shares[MOST_RANGES];
    __shared__ float parts[GROUPS][128];
    __shared__ float logits[POSITIVES];
    __shared__ float scratch[MERGE_THREADS / 32];
    const int query = blockIdx.x, group = threadIdx.x / 128, column = threadIdx.x % 128;
    const float scale = inverse_temperature * (float)LOG2E;
    const float* own = queries + (size_t)query * dim;

    float most = MINUS_INFINITY;
    for (int r = threadIdx.x; r < ranges; r += MERGE_THREADS) most = fmaxf(most, maxima[(size_t)r * batch + query]);
    most = max_of_block(most, scratch);
    float sum = 0.f;
    for (int r = threadIdx.x; r < ranges; r += MERGE_THREADS) {
        float share = power_of_two(maxima[(size_t)r * batch + query] - most);
        shares[r] = share;
        sum += share * sums[(size_t)r * batch + query];
    }
    sum = sum_of_block(sum, scratch);

    const u32 row = items ? items[query % item_count] : query;
    const u32 begin = starts[row], end = starts[row + 1];
    float most_positive = MINUS_INFINITY, sum_positive = 0.f;
    double sum_logits = 0.;
    for (u32 first = begin; first < end; first += POSITIVES) {
        const int count = min(end - first, (u32)POSITIVES);
        positive_logits(logits, own, keys, members + first, count, dim, scale, rounded);
        float higher = most_positive;
        for (int p = 0; p < count; p++) higher = fmaxf(higher, logits[p]);
        sum_positive *= power_of_two(most_positive - higher);
        for (int p = 0; p < count; p++) sum_positive += power_of_two(logits[p] - higher), sum_logits += logits[p];
        most_positive = higher;
    }
    const float members_weight = each ? (float)(end - begin) : sum_positive;
    if (threadIdx.x == 0) {
        const double difference = (double)most - (each ? sum_logits / (end - begin) : (double)most_positive);
        const double positives = each ? 0. : log2((double)sum_positive);
        losses[query] = (float)((difference + log2((double)sum) - positives) / LOG2E);
    }

    const int quarter = (ranges + GROUPS - 1) / GROUPS, last = min((group + 1) * quarter, ranges);
    for (int base = 0; base < dim; base += 128) {
        const int d = base + column;
        float all = 0.f;
        if (d < dim)
#pragma unroll 16
            for (int r = group * quarter; r < last; r++)
                all = fmaf(shares[r], weighted[((size_t)r * batch + query) * dim + d], all);
        __syncthreads();
        parts[group][column] = all;
        __syncthreads();
        if (group > 0 || d >= dim) continue;
        for (int g = 1; g < GROUPS; g++) all += parts[g][column];
        gradient[(size_t)query * dim + d] = all / sum;
    }
    // Each thread of the first group now changes the columns that it wrote.
    for (u32 first = begin; first < end; first += POSITIVES) {
        const int count = min(end - first, (u32)POSITIVES);
        if (end - begin > POSITIVES)
            positive_logits(logits, own, keys, members + first, count, dim, scale, rounded);
        if (group > 0) continue;
        const float factor = first + count == end ? weight * (inverse_temperature / batch) : 1.f;
        for (int d = column; d < dim; d += 128) {
            float positive = 0.f;
            for (int p = 0; p < count; p++) {
                float key = keys[(size_t)members[first + p] * dim + d];
                positive = fmaf(each ? 1.f : power_of_two(logits[p] - most_positive), seen(key, rounded), positive);
            }
            float* place = gradient + (size_t)query * dim + d;
            *place = (*place - positive / members_weight) * factor;
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Rows of the keys become normalise((1 - rate) * row + rate * query), unless the flag is up. A warp for each row; the first
// query of an index blends all of its queries, in order.

extern "C" __global__ void blend_rows(float* keys, const float* __restrict__ queries, int dim, int count, float rate,
                                      const u32* indices, const u32* flag) {
    const int query = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (query >= count || *flag) return;
    const u32 index = indices[query];
    for (int earlier = lane; earlier - lane < query; earlier += 32)
        if (__any_sync(0xffffffffu, earlier < query && indices[earlier] == index)) return;
    float* row = keys + (size_t)index * dim;
    for (int q = query; q < count; q++) {
        if (indices[q] != index) continue;
        double square = 0.0;
        for (int d = lane; d < dim; d += 32) {
            float blended = __fadd_rn(__fmul_rn(1.f - rate, row[d]), __fmul_rn(rate, queries[(size_t)q * dim + d]));
            row[d] = blended;
            square += (double)blended * blended;
        }
#pragma unroll
        for (int step = 16; step; step /= 2) square += __shfl_xor_sync(0xffffffffu, square, step);
        const float scale = (float)(1.0 / fmax(sqrt(square), 1e-12));
        for (int d = lane; d < dim; d += 32) row[d] *= scale;
    }
}
