// The softmax of each query over all keys, its loss, its gradient, and the update of the keys.
//
// With s = q.k / temperature, p = softmax(s) over all keys and p~ the softmax over the positives alone:
//   loss = ln sum_all e^s - ln sum_pos e^s
//   gradient of the mean loss = (sum p k - sum p~ k) / (temperature * batch)
// Both are written (=).
//
// The keys are cut into ranges, one block each. A block goes over its range once, tile by tile, with a running maximum and
// sum, and carries sum e^(s - max) k along (it shrinks when the maximum grows): the batch x keys matrix never exists, and
// nothing is computed twice. loss_merge puts the ranges together in their order, so the result is the same to the bit
// every time on one chip.
//
// What a range leaves behind: maxima[range][query] and sums[range][query] (base 2: s * log2 e), and
// weighted[range][query][dim].
//
// The keys stay f32 in memory. loss_bf16 rounds a tile while it copies it to shared memory, which costs less than keeping
// a second copy of the bank in step: at 128 queries a tile is multiplied 256 times for each time it is read.
//
// No header is included, so that NVRTC alone is enough.

typedef unsigned int u32;
typedef unsigned short u16;

#define LOG2E 1.4426950408889634
#define MINUS_INFINITY __int_as_float(0xff800000)

__device__ __forceinline__ float power_of_two(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Two f32 rounded to bf16, the first in the lower half.
__device__ __forceinline__ u32 pack(float first, float second) {
    u32 both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
}

__device__ __forceinline__ float lower(u32 both) { return __uint_as_float(both << 16); }
__device__ __forceinline__ float upper(u32 both) { return __uint_as_float(both & 0xffff0000u); }

// Four values of a row from a column on; zero beyond the matrix.
__device__ __forceinline__ float4 load4(const float* matrix, int row, int rows, int column, int dim) {
    float4 v = make_float4(0.f, 0.f, 0.f, 0.f);
    if (row >= rows || column >= dim) return v;
    const float* from = matrix + (size_t)row * dim + column;
    if (dim % 4 == 0) return *(const float4*)from;
    v.x = from[0];
    if (column + 1 < dim) v.y = from[1];
    if (column + 2 < dim) v.z = from[2];
    if (column + 3 < dim) v.w = from[3];
    return v;
}

// ---------------------------------------------------------------------------------------------------------------------
// bf16 on the tensor cores, for rows of up to 128 values.
// A block: 8 warps of 16 queries each, tiles of 64 keys. Grid: (ranges of keys, blocks of 128 queries).

#define KEYS 64
#define DIM 128
#define STRIDE (DIM + 8)  // rows start 4 banks apart, so that ldmatrix meets no conflict

__device__ __forceinline__ void multiply(float* c, const u32* a, u32 b0, u32 b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void load_matrices(u32* m, u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(address)
                 : "memory");
}

__device__ __forceinline__ void load_transposed(u32* m, u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(address)
                 : "memory");
}

struct Staged {
    float4 values[KEYS * DIM / 4 / 256];
};

__device__ __forceinline__ void fetch(Staged& staged, const float* keys, int first, int n, int dim) {
#pragma unroll
    for (int i = 0; i < KEYS * DIM / 4 / 256; i++) {
        int at = i * 256 + threadIdx.x;
        staged.values[i] = load4(keys, first + at / (DIM / 4), n, at % (DIM / 4) * 4, dim);
    }
}

__device__ __forceinline__ void store(const Staged& staged, u16* tile) {
#pragma unroll
    for (int i = 0; i < KEYS * DIM / 4 / 256; i++) {
        int at = i * 256 + threadIdx.x;
        float4 v = staged.values[i];
        uint2 rounded = make_uint2(pack(v.x, v.y), pack(v.z, v.w));
        *(uint2*)(tile + at / (DIM / 4) * STRIDE + at % (DIM / 4) * 4) = rounded;
    }
}

extern "C" __global__ void __launch_bounds__(256, 1)
    loss_bf16(const float* __restrict__ queries, const float* __restrict__ keys, int batch, int n, int dim,
              float inverse_temperature, int tiles_per_range, float* maxima, float* sums, float* weighted) {
    __shared__ __align__(16) u16 tiles[2][KEYS * STRIDE];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int group = lane / 4, pair = lane % 4 * 2;
    const int row0 = blockIdx.y * 128 + warp * 16 + group, row1 = row0 + 8;
    const bool idle = blockIdx.y * 128 + warp * 16 >= batch;
    const float scale = inverse_temperature * (float)LOG2E;

    u32 q[DIM / 16][4];
#pragma unroll
    for (int k = 0; k < DIM / 16; k++) {
#pragma unroll
        for (int part = 0; part < 4; part++) {
            int row = part % 2 ? row1 : row0, column = k * 16 + part / 2 * 8 + pair;
            bool inside = row < batch;
            const float* from = queries + (size_t)row * dim + column;
            float first = inside && column < dim ? from[0] : 0.f;
            float second = inside && column + 1 < dim ? from[1] : 0.f;
            q[k][part] = pack(first, second);
        }
    }

    float total[DIM / 8][4];
#pragma unroll
    for (int j = 0; j < DIM / 8; j++)
        for (int c = 0; c < 4; c++) total[j][c] = 0.f;
    float max0 = MINUS_INFINITY, max1 = MINUS_INFINITY, sum0 = 0.f, sum1 = 0.f;

    const int tiles_all = (n + KEYS - 1) / KEYS;
    const int begin = blockIdx.x * tiles_per_range;
    const int end = min(begin + tiles_per_range, tiles_all);
    Staged staged;
    fetch(staged, keys, begin * KEYS, n, dim);
    // Where this lane reads matrices of the tile: as keys x dim for s, transposed for sum p k.
    const u32 straight = ((lane & 7) + (lane >> 4) * 8) * STRIDE + (lane >> 3 & 1) * 8;
    const u32 across = ((lane & 7) + (lane >> 3 & 1) * 8) * STRIDE + (lane >> 4) * 8;

    for (int t = begin; t < end; t++) {
        u16* tile = tiles[t & 1];
        store(staged, tile);
        __syncthreads();
        // The other tile is free again only after this barrier of the next turn: two tiles need one barrier a turn.
        if (t + 1 < end) fetch(staged, keys, (t + 1) * KEYS, n, dim);
        if (idle) continue;
        const u32 base = (u32)__cvta_generic_to_shared(tile);

        float s[KEYS / 8][4];
#pragma unroll
        for (int j = 0; j < KEYS / 8; j++)
            for (int c = 0; c < 4; c++) s[j][c] = 0.f;
#pragma unroll
        for (int k = 0; k < DIM / 16; k++) {
#pragma unroll
            for (int j = 0; j < KEYS / 16; j++) {
                u32 m[4];
                load_matrices(m, base + (straight + j * 16 * STRIDE + k * 16) * 2);
                multiply(s[2 * j], q[k], m[0], m[1]);
                multiply(s[2 * j + 1], q[k], m[2], m[3]);
            }
        }

        if ((t + 1) * KEYS > n) {
#pragma unroll
            for (int j = 0; j < KEYS / 8; j++) {
                int key = t * KEYS + j * 8 + pair;
                if (key >= n) s[j][0] = s[j][2] = MINUS_INFINITY;
                if (key + 1 >= n) s[j][1] = s[j][3] = MINUS_INFINITY;
            }
        }
        float new0 = MINUS_INFINITY, new1 = MINUS_INFINITY;
#pragma unroll
        for (int j = 0; j < KEYS / 8; j++) {
            new0 = fmaxf(new0, fmaxf(s[j][0], s[j][1]));
            new1 = fmaxf(new1, fmaxf(s[j][2], s[j][3]));
        }
#pragma unroll
        for (int step = 1; step < 4; step *= 2) {
            new0 = fmaxf(new0, __shfl_xor_sync(0xffffffffu, new0, step));
            new1 = fmaxf(new1, __shfl_xor_sync(0xffffffffu, new1, step));
        }
        new0 = fmaxf(max0, new0 * scale);
        new1 = fmaxf(max1, new1 * scale);
        if (__any_sync(0xffffffffu, new0 > max0 || new1 > max1)) {
            float shrink0 = power_of_two(max0 - new0), shrink1 = power_of_two(max1 - new1);
            sum0 *= shrink0;
            sum1 *= shrink1;
#pragma unroll
            for (int j = 0; j < DIM / 8; j++) {
                total[j][0] *= shrink0;
                total[j][1] *= shrink0;
                total[j][2] *= shrink1;
                total[j][3] *= shrink1;
            }
            max0 = new0;
            max1 = new1;
        }

#pragma unroll
        for (int k = 0; k < KEYS / 16; k++) {
            u32 p[4];
#pragma unroll
            for (int part = 0; part < 4; part++) {
                const float* values = s[2 * k + part / 2] + part % 2 * 2;
                float max = part % 2 ? max1 : max0;
                u32 both = pack(power_of_two(fmaf(values[0], scale, -max)), power_of_two(fmaf(values[1], scale, -max)));
                // The sum is of the rounded weights, so that they sum to one after division.
                (part % 2 ? sum1 : sum0) += lower(both) + upper(both);
                p[part] = both;
            }
#pragma unroll
            for (int j = 0; j < DIM / 16; j++) {
                u32 m[4];
                load_transposed(m, base + (across + k * 16 * STRIDE + j * 16) * 2);
                multiply(total[2 * j], p, m[0], m[1]);
                multiply(total[2 * j + 1], p, m[2], m[3]);
            }
        }
    }

#pragma unroll
    for (int step = 1; step < 4; step *= 2) {
        sum0 += __shfl_xor_sync(0xffffffffu, sum0, step);
        sum1 += __shfl_xor_sync(0xffffffffu, sum1, step);
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int row = half ? row1 : row0;
        if (row >= batch) continue;
        size_t at = (size_t)blockIdx.x * batch + row;
        if (pair == 0) {
            maxima[at] = half ? max1 : max0;
            sums[at] = half ? sum1 : sum0;
        }
#pragma unroll
        for (int j = 0; j < DIM / 8; j++) {
            int column = j * 8 + pair;
            if (column < dim) weighted[at * dim + column] = total[j][half * 2];
            if (column + 1 < dim) weighted[at * dim + column + 1] = total[j][half * 2 + 1];
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// f32 throughout, for rows of any length.
// A block: 64 queries, tiles of 64 keys, 16 x 16 threads of 4 x 4 similarities each (rows ty + 16 i, keys tx + 16 j).
// Grid: (ranges of keys, blocks of 64 queries, chunks of 128 columns). Rows longer than a chunk are read in chunks for s,
// and each block carries sum e^(s - max) k for its own chunk only.

#define SIDE 64
#define CHUNK 128
#define PITCH (CHUNK + 4)
#define WEIGHTS_PITCH (SIDE + 4)

__device__ __forceinline__ void copy_rows(float* to, const float* matrix, int first, int rows, int chunk, int dim) {
#pragma unroll
    for (int i = 0; i < SIDE * CHUNK / 4 / 256; i++) {
        int at = i * 256 + threadIdx.x;
        int row = at / (CHUNK / 4), column = at % (CHUNK / 4) * 4;
        *(float4*)(to + row * PITCH + column) = load4(matrix, first + row, rows, chunk * CHUNK + column, dim);
    }
}

extern "C" __global__ void __launch_bounds__(256, 2)
    loss_f32(const float* __restrict__ queries, const float* __restrict__ keys, int batch, int n, int dim,
             float inverse_temperature, int tiles_per_range, float* maxima, float* sums, float* weighted) {
    // 2 * SIDE * PITCH + SIDE * WEIGHTS_PITCH values.
    extern __shared__ __align__(16) float memory[];
    float* query_rows = memory;
    float* key_rows = memory + SIDE * PITCH;
    float* weights = memory + 2 * SIDE * PITCH;
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const float scale = inverse_temperature * (float)LOG2E;
    const int chunks = (dim + CHUNK - 1) / CHUNK, own = blockIdx.z;

    float max[4], sum[4], total[4][8];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        max[i] = MINUS_INFINITY;
        sum[i] = 0.f;
        for (int j = 0; j < 8; j++) total[i][j] = 0.f;
    }
    if (chunks == 1) copy_rows(query_rows, queries, blockIdx.y * SIDE, batch, 0, dim);

    const int tiles_all = (n + SIDE - 1) / SIDE;
    const int begin = blockIdx.x * tiles_per_range;
    const int end = min(begin + tiles_per_range, tiles_all);
    for (int t = begin; t < end; t++) {
        float s[4][4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 4; j++) s[i][j] = 0.f;
        for (int chunk = 0; chunk < chunks; chunk++) {
            __syncthreads();  // nobody reads the old rows any more
            if (chunks > 1) copy_rows(query_rows, queries, blockIdx.y * SIDE, batch, chunk, dim);
            copy_rows(key_rows, keys, t * SIDE, n, chunk, dim);
            __syncthreads();
            const int width = min(CHUNK, dim - chunk * CHUNK);
            for (int d = 0; d < width; d += 4) {
                float4 k[4];
#pragma unroll
                for (int j = 0; j < 4; j++) k[j] = *(const float4*)(key_rows + (tx + 16 * j) * PITCH + d);
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    float4 q = *(const float4*)(query_rows + (ty + 16 * i) * PITCH + d);
#pragma unroll
                    for (int j = 0; j < 4; j++) {
                        s[i][j] = fmaf(q.x, k[j].x, s[i][j]);
                        s[i][j] = fmaf(q.y, k[j].y, s[i][j]);
                        s[i][j] = fmaf(q.z, k[j].z, s[i][j]);
                        s[i][j] = fmaf(q.w, k[j].w, s[i][j]);
                    }
                }
            }
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float most = MINUS_INFINITY;
#pragma unroll
            for (int j = 0; j < 4; j++) {
                s[i][j] = t * SIDE + tx + 16 * j < n ? s[i][j] * scale : MINUS_INFINITY;
                most = fmaxf(most, s[i][j]);
            }
#pragma unroll
            for (int step = 1; step < 16; step *= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, step));
            most = fmaxf(most, max[i]);
            float shrink = most > max[i] ? power_of_two(max[i] - most) : 1.f;
            max[i] = most;
            sum[i] *= shrink;
#pragma unroll
            for (int j = 0; j < 8; j++) total[i][j] *= shrink;
#pragma unroll
            for (int j = 0; j < 4; j++) {
                float weight = power_of_two(s[i][j] - most);
                sum[i] += weight;
                weights[(ty + 16 * i) * WEIGHTS_PITCH + tx + 16 * j] = weight;
            }
        }
        __syncthreads();
        if (own != chunks - 1) {
            copy_rows(key_rows, keys, t * SIDE, n, own, dim);
            __syncthreads();
        }
        for (int key = 0; key < SIDE; key += 4) {
            float4 w[4];
#pragma unroll
            for (int i = 0; i < 4; i++) w[i] = *(const float4*)(weights + (ty + 16 * i) * WEIGHTS_PITCH + key);
#pragma unroll
            for (int step = 0; step < 4; step++) {
                const float* row = key_rows + (key + step) * PITCH + tx * 4;
                float4 left = *(const float4*)row, right = *(const float4*)(row + CHUNK / 2);
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    float weight = step == 0 ? w[i].x : step == 1 ? w[i].y : step == 2 ? w[i].z : w[i].w;
                    total[i][0] = fmaf(weight, left.x, total[i][0]);
                    total[i][1] = fmaf(weight, left.y, total[i][1]);
                    total[i][2] = fmaf(weight, left.z, total[i][2]);
                    total[i][3] = fmaf(weight, left.w, total[i][3]);
                    total[i][4] = fmaf(weight, right.x, total[i][4]);
                    total[i][5] = fmaf(weight, right.y, total[i][5]);
                    total[i][6] = fmaf(weight, right.z, total[i][6]);
                    total[i][7] = fmaf(weight, right.w, total[i][7]);
                }
            }
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int step = 1; step < 16; step *= 2) sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], step);
        int row = blockIdx.y * SIDE + ty + 16 * i;
        if (row >= batch) continue;
        size_t at = (size_t)blockIdx.x * batch + row;
        if (tx == 0 && own == 0) {
            maxima[at] = max[i];
            sums[at] = sum[i];
        }
#pragma unroll
        for (int j = 0; j < 8; j++) {
            int column = own * CHUNK + j / 4 * (CHUNK / 2) + tx * 4 + j % 4;
            if (column < dim) weighted[at * dim + column] = total[i][j];
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// The ranges put together, the positives subtracted. A block of 128 threads for each query.

#define MOST_RANGES 1024
#define POSITIVES 128

__device__ float sum_of_warp(float x) {
#pragma unroll
    for (int step = 16; step; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

__device__ float sum_of_block(float x, float* scratch) {
    x = sum_of_warp(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = x;
    __syncthreads();
    return scratch[0] + scratch[1] + scratch[2] + scratch[3];
}

__device__ float max_of_block(float x, float* scratch) {
#pragma unroll
    for (int step = 16; step; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = x;
    __syncthreads();
    return fmaxf(fmaxf(scratch[0], scratch[1]), fmaxf(scratch[2], scratch[3]));
}

__device__ __forceinline__ float seen(float x, int rounded) { return rounded ? lower(pack(x, 0.f)) : x; }

// Positives of query b: members[starts[r]..starts[r + 1]], r = b, or order[step * batch + b] where an order is given (with
// the step in counter[0]): the positives of all pictures can then lie on the device for a whole round.
// With `rounded` the positives are seen as loss_bf16 saw them, so that the loss of a certain query is 0 and not -0.01.
extern "C" __global__ void __launch_bounds__(128)
    loss_merge(const float* __restrict__ queries, const float* __restrict__ keys, int batch, int n, int dim,
               float inverse_temperature, int ranges, const float* maxima, const float* sums, const float* weighted,
               const u32* starts, const u32* members, const u32* order, const unsigned long long* counter, int rounded,
               float* losses, float* gradient) {
    __shared__ float shares[MOST_RANGES];
    __shared__ float logits[POSITIVES];
    __shared__ float scratch[4];
    const int query = blockIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const float scale = inverse_temperature * (float)LOG2E;

    float most = MINUS_INFINITY;
    for (int r = threadIdx.x; r < ranges; r += 128) most = fmaxf(most, maxima[(size_t)r * batch + query]);
    most = max_of_block(most, scratch);
    float sum = 0.f;
    for (int r = threadIdx.x; r < ranges; r += 128) {
        float share = power_of_two(maxima[(size_t)r * batch + query] - most);
        shares[r] = share;
        sum += share * sums[(size_t)r * batch + query];
    }
    sum = sum_of_block(sum, scratch);

    const u32 row = order ? order[counter[0] * batch + query] : query;
    const u32 begin = starts[row], end = starts[row + 1];
    const float* own = queries + (size_t)query * dim;
    float most_positive = MINUS_INFINITY, sum_positive = 0.f;
    // The gradient's columns are walked over once for every 128 positives, the first time with the ranges.
    for (u32 first = begin; first < end; first += POSITIVES) {
        const int count = min(end - first, (u32)POSITIVES);
        __syncthreads();
        for (int p = warp; p < count; p += 4) {
            const float* key = keys + (size_t)members[first + p] * dim;
            float dot = 0.f;
            for (int d = lane; d < dim; d += 32) dot = fmaf(seen(own[d], rounded), seen(key[d], rounded), dot);
            dot = sum_of_warp(dot);
            if (lane == 0) logits[p] = dot * scale;
        }
        __syncthreads();
        float higher = most_positive;
        for (int p = 0; p < count; p++) higher = fmaxf(higher, logits[p]);
        const float shrink = power_of_two(most_positive - higher);
        sum_positive *= first == begin ? 0.f : shrink;
        for (int p = 0; p < count; p++) sum_positive += power_of_two(logits[p] - higher);
        most_positive = higher;
        const bool last = first + count == end;
        for (int d = threadIdx.x; d < dim; d += 128) {
            float* place = gradient + (size_t)query * dim + d;
            // Until the last positives are seen, the place holds their weighted sum.
            float positive = first == begin ? 0.f : *place * shrink;
            for (int p = 0; p < count; p++) {
                float key = keys[(size_t)members[first + p] * dim + d];
                positive = fmaf(power_of_two(logits[p] - higher), seen(key, rounded), positive);
            }
            if (last) {
                float all = 0.f;
#pragma unroll 8
                for (int r = 0; r < ranges; r++)
                    all = fmaf(shares[r], weighted[((size_t)r * batch + query) * dim + d], all);
                positive = (all / sum - positive / sum_positive) * (inverse_temperature / batch);
            }
            *place = positive;
        }
    }
    if (threadIdx.x == 0) {
        double difference = (double)most - (double)most_positive;
        losses[query] = (float)((difference + log2((double)sum) - log2((double)sum_positive)) / LOG2E);
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Rows of the keys become normalise((1 - rate) * row + rate * query). A warp for each row; where `repeated`, the first
// query of an index blends all of its queries, in order.

extern "C" __global__ void blend_rows(float* keys, const float* __restrict__ queries, int dim, int count, float rate,
                                      const u32* indices, const unsigned long long* counter, int repeated) {
    const int query = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (query >= count) return;
    if (counter) indices += counter[0] * count;
    const u32 index = indices[query];
    if (repeated)
        for (int earlier = 0; earlier < query; earlier++)
            if (indices[earlier] == index) return;
    float* row = keys + (size_t)index * dim;
    for (int q = query; q < (repeated ? count : query + 1); q++) {
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
