// Losses over rows of f32, each with the gradient of weight * mean(losses); naive/ has the maths. Losses and gradients are
// written (=). Sums have one order, so a loss has the same bits in every run.

#define THREADS 256
#define WARPS (THREADS / 32)

// Over a block, the same in every thread.
static __device__ double block_sum(double v) {
    __shared__ double parts[WARPS];
    v = warp_sum(v);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0.0;
    for (int warp = 0; warp < WARPS; warp++) v += parts[warp];
    return v;
}

static __device__ float block_max(float v) {
    __shared__ float parts[WARPS];
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, offset));
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
    __syncthreads();
    for (int warp = 0; warp < WARPS; warp++) v = fmaxf(v, parts[warp]);
    return v;
}

// ---------------------------------------------------------------------------------------------------------------------
// Softmax cross-entropy: row b's class is labels[indices[b]]. A block a row; the gradient holds e^(logit - greatest) until
// their sum is known. `scale` is weight / rows; where there are `weights`, a row counts with its class's.

extern "C" __global__ void __launch_bounds__(THREADS)
    cross_entropy(const float *__restrict__ logits, u32 classes, const u32 *__restrict__ labels,
                  const u32 *__restrict__ indices, const float *__restrict__ weights, float scale, float *losses,
                  float *gradient) {
    const u32 own = labels[indices[blockIdx.x]];
    const float weight = weights ? weights[own] : 1.f;
    scale *= weight;
    logits += (u64)blockIdx.x * classes;
    gradient += (u64)blockIdx.x * classes;
    float most = MINUS_INFINITY;
    for (u32 c = threadIdx.x; c < classes; c += THREADS) most = fmaxf(most, logits[c]);
    most = block_max(most);
    float sum = 0.f;
    for (u32 c = threadIdx.x; c < classes; c += THREADS) {
        float e = expf(logits[c] - most);
        gradient[c] = e;
        sum += e;
    }
    const double all = block_sum(sum);
    const float factor = (float)((double)scale / all);
    // Each thread changes what it wrote.
    for (u32 c = threadIdx.x; c < classes; c += THREADS) gradient[c] = gradient[c] * factor - (c == own ? scale : 0.f);
    if (threadIdx.x == 0) losses[blockIdx.x] = weight * (float)(log(all) + (double)most - (double)logits[own]);
}

// ---------------------------------------------------------------------------------------------------------------------
// tally[0] += 1 where the greatest logit of a row, the first of equal ones, is that of its class labels[indices[b]];
// tally[1 + class] += 1. Whole numbers: their order does not matter. A block a row.

extern "C" __global__ void __launch_bounds__(THREADS)
    tally(const float *__restrict__ logits, u32 classes, const u32 *__restrict__ labels, const u32 *__restrict__ indices,
          u32 *counts) {
    __shared__ float values[THREADS];
    __shared__ u32 places[THREADS];
    logits += (u64)blockIdx.x * classes;
    float best = MINUS_INFINITY;
    u32 at = classes;
    for (u32 c = threadIdx.x; c < classes; c += THREADS) {
        if (at == classes || logits[c] > best) best = logits[c], at = c;
    }
    values[threadIdx.x] = best, places[threadIdx.x] = at;
    for (u32 half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x >= half) continue;
        float other = values[threadIdx.x + half];
        u32 place = places[threadIdx.x + half];
        bool nearer = other == values[threadIdx.x] && place < places[threadIdx.x];
        if (place < classes && (other > values[threadIdx.x] || nearer)) {
            values[threadIdx.x] = other;
            places[threadIdx.x] = place;
        }
    }
    if (threadIdx.x != 0) return;
    u32 own = labels[indices[blockIdx.x]];
    if (places[0] == own && values[0] == values[0]) atomicAdd(counts, 1u);
    atomicAdd(counts + 1 + own, 1u);
}

// The number of the entry of a codebook nearest to each row; of equally near ones the first. A thread a row.
extern "C" __global__ void __launch_bounds__(THREADS)
    quantise(const float *__restrict__ rows, const float *__restrict__ codebook, u32 count, u32 entries, u32 dim, u32 *to) {
    u32 row = blockIdx.x * THREADS + threadIdx.x;
    if (row >= count) return;
    rows += (u64)row * dim;
    float least = -MINUS_INFINITY;
    u32 nearest = 0;
    for (u32 entry = 0; entry < entries; entry++) {
        float distance = 0.f;
        for (u32 d = 0; d < dim; d++) {
            float difference = rows[d] - codebook[(u64)entry * dim + d];
            distance += difference * difference;
        }
        if (distance < least) least = distance, nearest = entry;
    }
    to[row] = nearest;
}

// ---------------------------------------------------------------------------------------------------------------------
// The loss of a step: weight * mean(losses) is added to `sum`; ring[number of all steps modulo capacity] = sum; the flag
// goes up, and stays up, where the sum is not finite. `current` is step in the epoch, epoch, number of all steps. One block.
// Where several processes take the step, each makes its share first, and adds the sum of all.

// weight * mean(losses), in the first thread.
static __device__ double share_of(const float *losses, u32 count, float weight) {
    __shared__ double parts[THREADS];
    double own = 0.0;
    for (u32 i = threadIdx.x; i < count; i += THREADS) own += losses[i];
    parts[threadIdx.x] = own;
    for (u32 half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
    }
    return __dmul_rn((double)weight, parts[0] / count);
}

static __device__ void add_share(double share, double *sum, float *ring, u32 capacity, const u64 *current, u32 *flag) {
    const double total = __dadd_rn(*sum, share);
    *sum = total;
    ring[current[2] % capacity] = (float)total;
    if (!isfinite(total)) *flag = 1;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    accumulate_loss(const float *losses, u32 count, float weight, double *sum, float *ring, u32 capacity,
                    const u64 *current, u32 *flag) {
    const double share = share_of(losses, count, weight);
    if (threadIdx.x == 0) add_share(share, sum, ring, capacity, current, flag);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    loss_share(const float *losses, u32 count, float weight, double *to) {
    const double share = share_of(losses, count, weight);
    if (threadIdx.x == 0) *to = share;
}

extern "C" __global__ void add_loss(const double *share, double *sum, float *ring, u32 capacity, const u64 *current,
                                    u32 *flag) {
    if (threadIdx.x == 0) add_share(*share, sum, ring, capacity, current, flag);
}

// ---------------------------------------------------------------------------------------------------------------------
// A warp a row from here on.

static __device__ __forceinline__ u32 row_of_warp() { return (blockIdx.x * THREADS + threadIdx.x) / 32; }

static __device__ __forceinline__ double dot(const float *a, const float *b, u32 dim) {
    double sum = 0.0;
    for (u32 d = threadIdx.x % 32; d < dim; d += 32) sum += (double)a[d] * (double)b[d];
    return warp_sum(sum);
}

// loss = -cos(p, z), each norm at least 1e-8; the gradient is that of p alone.
extern "C" __global__ void __launch_bounds__(THREADS)
    cosine(const float *__restrict__ predictions, const float *__restrict__ targets, u32 rows, u32 dim, float scale,
           float *losses, float *gradient) {
    const u32 row = row_of_warp();
    if (row >= rows) return;
    const float *p = predictions + (u64)row * dim, *z = targets + (u64)row * dim;
    const double p_norm = sqrt(dot(p, p, dim)), z_norm = sqrt(dot(z, z, dim)), least = 1e-8;
    const double p_length = fmax(p_norm, least), z_length = fmax(z_norm, least);
    const double similarity = dot(p, z, dim) / (p_length * z_length);
    // A norm below the least does not change the loss.
    const double along = p_norm > least ? similarity / p_length : 0.0;
    const float of_z = (float)(-(double)scale / (p_length * z_length)), of_p = (float)((double)scale * along / p_length);
    for (u32 d = threadIdx.x % 32; d < dim; d += 32) gradient[(u64)row * dim + d] = of_z * z[d] + of_p * p[d];
    // NaN, which fmax drops, is in the product.
    if (threadIdx.x % 32 == 0) losses[row] = (float)-similarity;
}

// out (v, i) = the mean over the other views u of row (u, i), each divided by its length (at least 1e-12) first if
// `normalise`. Rows are view after view.
extern "C" __global__ void __launch_bounds__(THREADS)
    mean_of_others(const float *__restrict__ x, u32 views, u32 batch, u32 dim, int normalise, float *out) {
    const u32 row = row_of_warp();
    if (row >= views * batch) return;
    const u32 view = row / batch, picture = row % batch;
    for (u32 d = threadIdx.x % 32; d < dim; d += 32) out[(u64)row * dim + d] = 0.f;
    for (u32 u = 0; u < views; u++) {
        if (u == view) continue;
        const float *other = x + (u64)(u * batch + picture) * dim;
        const double length = normalise ? fmax(sqrt(dot(other, other, dim)), 1e-12) : 1.0;
        const float share = (float)(1.0 / (length * (views - 1)));
        for (u32 d = threadIdx.x % 32; d < dim; d += 32) out[(u64)row * dim + d] += share * other[d];
    }
}

// to[row] = from[indices[row]].
extern "C" __global__ void __launch_bounds__(THREADS)
    gather_rows(const float *__restrict__ from, const u32 *__restrict__ indices, u32 rows, u32 dim, float *to) {
    const u32 row = row_of_warp();
    if (row >= rows) return;
    from += (u64)indices[row] * dim, to += (u64)row * dim;
    for (u32 d = threadIdx.x % 32; d < dim; d += 32) to[d] = from[d];
}

// ---------------------------------------------------------------------------------------------------------------------
// Counting (cpu/losses/counting.rs has the maths): rows are the wholes of n pictures, then every picture's first part, and so
// on. What the parts of one picture add up to, less the whole of another, at a place of their rows:

static __device__ __forceinline__ float apart(const float *x, u32 views, u32 n, u32 dim, u32 parts_of, u32 whole_of, u32 at) {
    float sum = 0.f;
    for (u32 view = 1; view < views; view++) sum += x[((u64)view * n + parts_of) * dim + at];
    return sum - x[(u64)whole_of * dim + at];
}

// A warp a picture: its loss, and minus its squared distances from the next picture's whole and from its own.
extern "C" __global__ void __launch_bounds__(THREADS)
    counting_losses(const float *__restrict__ x, u32 views, u32 n, u32 dim, float margin, float *distances, float *losses) {
    const u32 i = row_of_warp();
    if (i >= n) return;
    double own = 0.0, other = 0.0;
    for (u32 d = threadIdx.x % 32; d < dim; d += 32) {
        const double a = apart(x, views, n, dim, i, i, d), b = apart(x, views, n, dim, i, (i + 1) % n, d);
        own += a * a, other += b * b;
    }
    own = warp_sum(own), other = warp_sum(other);
    if (threadIdx.x % 32 != 0) return;
    const float near = (float)own, far = (float)other;
    distances[2 * i] = -far, distances[2 * i + 1] = -near;
    // What is not a number stays so.
    losses[i] = near + (far >= margin ? 0.f : margin - far);
}

// A warp a row, after the losses. `scale` is 2 weight / n.
extern "C" __global__ void __launch_bounds__(THREADS)
    counting_gradient(const float *__restrict__ x, u32 views, u32 n, u32 dim, float margin,
                      const float *__restrict__ distances, float scale, float *gradient) {
    const u32 row = row_of_warp();
    if (row >= views * n) return;
    const u32 view = row / n, i = row % n, before = (i + n - 1) % n, after = (i + 1) % n;
    const bool asked = -distances[2 * (view == 0 ? before : i)] < margin;
    for (u32 d = threadIdx.x % 32; d < dim; d += 32) {
        float own = apart(x, views, n, dim, i, i, d), contrast = 0.f;
        if (asked) contrast = view == 0 ? apart(x, views, n, dim, before, i, d) : -apart(x, views, n, dim, i, after, d);
        gradient[(u64)row * dim + d] = scale * ((view == 0 ? -own : own) + contrast);
    }
}
