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

// Logits (base 2) of up to POSITIVES keys, a warp for each. Keys are numbers first..first + n; the logit of one that is not here is -infinity.
__device__ void positive_logits(float* logits, const float* query, const float* keys, u32 first, u32 n, const u32* members,
                                int count, int dim, float scale, int rounded) {
    const int lane = threadIdx.x % 32;
    __syncthreads();
    for (int p = threadIdx.x / 32; p < count; p += MERGE_THREADS / 32) {
        const u32 place = members[p] - first;
        float dot = MINUS_INFINITY;
        if (place < n) {
            const float* key = keys + (size_t)place * dim;
            dot = 0.f;
            for (int d = lane; d < dim; d += 32) dot = fmaf(seen(query[d], rounded), seen(key[d], rounded), dot);
            dot = warp_sum(dot) * scale;
        }
        if (lane == 0) logits[p] = dot;
    }
    __syncthreads();
}

// What the ranges say of a query together: their greatest maximum and the sum under it; shares takes what each range's sums count.
__device__ void ranges_together(const float* maxima, const float* sums, int batch, int query, int ranges, float* shares,
                                float* scratch, float& most, float& sum) {
    most = MINUS_INFINITY;
    for (int r = threadIdx.x; r < ranges; r += MERGE_THREADS) most = fmaxf(most, maxima[(size_t)r * batch + query]);
    most = max_of_block(most, scratch);
    sum = 0.f;
    for (int r = threadIdx.x; r < ranges; r += MERGE_THREADS) {
        const float own = maxima[(size_t)r * batch + query];
        const float share = own == MINUS_INFINITY ? 0.f : power_of_two(own - most); // a range may have no keys
        shares[r] = share;
        sum += share * sums[(size_t)r * batch + query];
    }
    sum = sum_of_block(sum, scratch);
}

// The positives that are here: the greatest logit, the sum under it, and the sum of logits.
struct PositiveSums {
    float most, sum;
    double logits;
};

__device__ PositiveSums positives_together(float* logits, const float* query, const float* keys, u32 first_key, u32 n,
                                           const u32* members, u32 begin, u32 end, int dim, float scale, int rounded) {
    PositiveSums all = {MINUS_INFINITY, 0.f, 0.};
    for (u32 first = begin; first < end; first += POSITIVES) {
        const int count = min(end - first, (u32)POSITIVES);
        positive_logits(logits, query, keys, first_key, n, members + first, count, dim, scale, rounded);
        float higher = all.most;
        for (int p = 0; p < count; p++) higher = fmaxf(higher, logits[p]);
        if (higher > MINUS_INFINITY) all.sum *= power_of_two(all.most - higher);
        for (int p = 0; p < count; p++) {
            if (logits[p] == MINUS_INFINITY) continue; // not here
            all.sum += power_of_two(logits[p] - higher), all.logits += logits[p];
        }
        all.most = higher;
    }
    return all;
}

// A group's part of sum e^(s - max) k of a query, column by column of 128; the first group's threads get the whole.
__device__ float weighted_together(const float* weighted, const float* shares, int ranges, int batch, int query, int dim, int d,
                                   float (*parts)[128]) {
    const int group = threadIdx.x / 128, column = threadIdx.x % 128;
    const int quarter = (ranges + GROUPS - 1) / GROUPS, last = min((group + 1) * quarter, ranges);
    float all = 0.f;
    if (d < dim)
#pragma unroll 16
        for (int r = group * quarter; r < last; r++)
            all = fmaf(shares[r], weighted[((size_t)r * batch + query) * dim + d], all);
    __syncthreads();
    parts[group][column] = all;
    __syncthreads();
    for (int g = 1; g < GROUPS; g++) all += parts[g][column];
    return all;
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

    float most, sum;
    ranges_together(maxima, sums, batch, query, ranges, shares, scratch, most, sum);

    const u32 row = items ? items[query % item_count] : query;
    const u32 begin = starts[row], end = starts[row + 1];
    const PositiveSums of = positives_together(logits, own, keys, 0, n, members, begin, end, dim, scale, rounded);
    const float members_weight = each ? (float)(end - begin) : of.sum;
    if (threadIdx.x == 0) {
        const double all = (double)most + log2((double)sum);
        const double positives = each ? of.logits / (end - begin) : (double)of.most + log2((double)of.sum);
        losses[query] = (float)((all - positives) / LOG2E);
    }

    for (int base = 0; base < dim; base += 128) {
        const int d = base + column;
        const float all = weighted_together(weighted, shares, ranges, batch, query, dim, d, parts);
        if (group == 0 && d < dim) gradient[(size_t)query * dim + d] = all / sum;
    }
    // Each thread of the first group now changes the columns that it wrote.
    for (u32 first = begin; first < end; first += POSITIVES) {
        const int count = min(end - first, (u32)POSITIVES);
        if (end - begin > POSITIVES)
            positive_logits(logits, own, keys, 0, n, members + first, count, dim, scale, rounded);
        if (group > 0) continue;
        const float factor = first + count == end ? weight * (inverse_temperature / batch) : 1.f;
        for (int d = column; d < dim; d += 128) {
            float positive = 0.f;
            for (int p = 0; p < count; p++) {
                float key = keys[(size_t)members[first + p] * dim + d];
                positive = fmaf(each ? 1.f : power_of_two(logits[p] - of.most), seen(key, rounded), positive);
            }
            float* place = gradient + (size_t)query * dim + d;
            *place = (*place - positive / members_weight) * factor;
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Keys that lie in parts on several processes, of which this one's are numbers first..first + n. Queries are those of all processes, of which
// each has per_rank; those of process r are of its items over and over, of which each process has item_count.
//
// What an item's positives are is known to the process that has the item. table[item] takes (=) how many they are and which, or zeros where
// that is another's to tell: the sum over the processes is what all then know.
//
// For a part r: A_r = log2 of sum e^s over its keys, P_r the same over its positives, and the means a_r and p_r of its keys under both
// softmaxes. Over all parts A = log2 of sum 2^A_r, P likewise, loss = A - P, and the part's share of the gradient is
// (2^(A_r - A) a_r - 2^(P_r - P) p_r) / (temperature * per_rank). Where each positive counts as much, P_r is the sum of their logits and p_r that
// of the keys, both over the number of all positives. With one part, these are loss_merge's numbers.

extern "C" __global__ void known_positives(const u32* __restrict__ starts, const u32* __restrict__ members,
                                           const u32* __restrict__ items, u32 count, u32 first, u32 here, u32 width,
                                           u32* table) {
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= count * width) return;
    const u32 item = items[at / width] - first, column = at % width;
    u32 told = 0;
    if (item < here) {
        const u32 begin = starts[item], of = starts[item + 1] - begin;
        told = column == 0 ? of : column - 1 < of ? members[begin + column - 1] : 0;
    }
    table[at] = told;
}

// A_r and P_r of each query to sums[query][2], a_r to means and p_r to positives (=).
extern "C" __global__ void __launch_bounds__(MERGE_THREADS)
    shard_look(const float* __restrict__ queries, const float* __restrict__ keys, int batch, int n, int dim,
               float inverse_temperature, int ranges, const float* __restrict__ maxima,
               const float* __restrict__ sums_of_ranges, const float* __restrict__ weighted,
               const u32* __restrict__ table, u32 width, u32 item_count, int each, int rounded, u32 first_key,
               int per_rank, double* sums, float* means, float* positives) {
    __shared__ float shares[MOST_RANGES];
    __shared__ float parts[GROUPS][128];
    __shared__ float logits[POSITIVES];
    __shared__ float scratch[MERGE_THREADS / 32];
    const int query = blockIdx.x, group = threadIdx.x / 128, column = threadIdx.x % 128;
    const float scale = inverse_temperature * (float)LOG2E;
    const float* own = queries + (size_t)query * dim;

    float most, sum;
    ranges_together(maxima, sums_of_ranges, batch, query, ranges, shares, scratch, most, sum);
    const u32 row = (u32)(query / per_rank) * item_count + (u32)(query % per_rank) % item_count;
    const u32 *members = table, begin = row * width + 1, end = begin + table[row * width];
    const PositiveSums of =
        positives_together(logits, own, keys, first_key, n, members, begin, end, dim, scale, rounded);
    if (threadIdx.x == 0) {
        // Of no keys both are -infinity.
        sums[2 * query] = (double)most + log2((double)sum);
        sums[2 * query + 1] = each ? of.logits / (end - begin) : (double)of.most + log2((double)of.sum);
    }
    for (int base = 0; base < dim; base += 128) {
        const int d = base + column;
        const float all = weighted_together(weighted, shares, ranges, batch, query, dim, d, parts);
        if (group > 0 || d >= dim) continue;
        means[(size_t)query * dim + d] = sum != 0.f ? all / sum : 0.f;
        positives[(size_t)query * dim + d] = 0.f;
    }
    const float members_weight = each ? (float)(end - begin) : of.sum;
    for (u32 first = begin; first < end; first += POSITIVES) {
        const int count = min(end - first, (u32)POSITIVES);
        if (end - begin > POSITIVES)
            positive_logits(logits, own, keys, first_key, n, members + first, count, dim, scale, rounded);
        if (group > 0) continue;
        for (int d = column; d < dim; d += 128) {
            float positive = 0.f;
            bool any = false;
            for (int p = 0; p < count; p++) {
                const u32 place = members[first + p] - first_key;
                if (place >= (u32)n) continue;
                any = true;
                float key = keys[(size_t)place * dim + d];
                positive = fmaf(each ? 1.f : power_of_two(logits[p] - of.most), seen(key, rounded), positive);
            }
            if (any) positives[(size_t)query * dim + d] += positive / members_weight;
        }
    }
}

// log2 of sum 2^x over the parts, in their order; what is no number stays none.
__device__ double log_of_parts(const double* parts, int ranks, int batch, int query, int which) {
    const double* own = parts + 2 * (size_t)query + which;
    const size_t step = 2 * (size_t)batch;
    double most = MINUS_INFINITY, sum = 0.;
    for (int r = 0; r < ranks; r++) most = fmax(most, own[r * step]);
    for (int r = 0; r < ranks; r++) {
        const double of = own[r * step];
        if (of == MINUS_INFINITY) continue; // nothing of it is there
        sum += exp2(of - most);
    }
    return most + log2(sum);
}

// From sums[rank][query][2] of all parts to the losses of this process's own queries, and to its share of the gradient of weight * mean(losses),
// in place of `means`. A block of 128 threads for each query.
extern "C" __global__ void __launch_bounds__(128)
    shard_share(const double* __restrict__ sums, int ranks, int rank, int batch, int per_rank, int dim,
                float inverse_temperature, int each, float weight, const float* __restrict__ positives, float* means,
                float* losses) {
    __shared__ float shares[2];
    const int query = blockIdx.x;
    if (threadIdx.x == 0) {
        const double* own = sums + 2 * ((size_t)rank * batch + query);
        const double all = log_of_parts(sums, ranks, batch, query, 0);
        double of = 0.;
        if (each)
            for (int r = 0; r < ranks; r++) of += sums[2 * ((size_t)r * batch + query) + 1];
        else
            of = log_of_parts(sums, ranks, batch, query, 1);
        shares[0] = (float)exp2(own[0] - all);
        shares[1] = each ? 1.f : (float)exp2(own[1] - of);
        if (query / per_rank == rank) losses[query - rank * per_rank] = (float)((all - of) / LOG2E);
    }
    __syncthreads();
    const float factor = weight * (inverse_temperature / per_rank);
    for (int d = threadIdx.x; d < dim; d += 128) {
        const size_t at = (size_t)query * dim + d;
        means[at] = (shares[0] * means[at] - shares[1] * positives[at]) * factor;
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Rows of the keys become normalise((1 - rate) * row + rate * query), unless the flag is up. A warp for each row; the first
// query of an index blends all of its queries, in order. Of all rows the keys here are numbers first..first + rows; others are left to others.

extern "C" __global__ void blend_rows(float* keys, const float* __restrict__ queries, int dim, int count, float rate,
                                      const u32* indices, const u32* flag, u32 first, u32 rows) {
    const int query = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (query >= count || *flag) return;
    const u32 index = indices[query];
    if (index - first >= rows) return;
    for (int earlier = lane; earlier - lane < query; earlier += 32)
        if (__any_sync(0xffffffffu, earlier < query && indices[earlier] == index)) return;
    float* row = keys + (size_t)(index - first) * dim;
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
