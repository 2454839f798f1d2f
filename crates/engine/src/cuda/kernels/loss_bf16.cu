// A batch's softmax over a range of keys (see similarity.cu) in bf16 on the tensor cores, for rows of up to 128 values.
//
// The keys stay f32 in memory. A tile is rounded while it is copied to shared memory, which costs less than keeping a
// second copy of the bank in step: at 128 queries a tile is multiplied 256 times for each time it is read.
//
// A block: 8 warps of 16 queries each, tiles of 64 keys. Grid: (ranges of keys, blocks of 128 queries).

typedef unsigned short u16;

#define KEYS 64
#define DIM 128
#define STRIDE (DIM + 8)  // rows start 4 banks apart, so that ldmatrix meets no conflict

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

// Where keys are weighted, there are *count of them, no more than n, and each counts as 2^log_weights[key].
template <bool WEIGHTED>
static __device__ __forceinline__ void
softmax_bf16(const float* __restrict__ queries, const float* __restrict__ keys, int batch, int n, int dim,
             float inverse_temperature, int tiles_per_range, float* maxima, float* sums, float* weighted,
             const float* __restrict__ log_weights, const u32* __restrict__ count) {
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

    if (WEIGHTED) n = *count;
    const int tiles_all = (n + KEYS - 1) / KEYS;
    if (WEIGHTED) tiles_per_range = (tiles_all + gridDim.x - 1) / gridDim.x;
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

        if (WEIGHTED) {
#pragma unroll
            for (int j = 0; j < KEYS / 8; j++) {
                const int key = t * KEYS + j * 8 + pair;
                const float first = key < n ? log_weights[key] / scale : 0.f;
                const float second = key + 1 < n ? log_weights[key + 1] / scale : 0.f;
                s[j][0] += first, s[j][1] += second, s[j][2] += first, s[j][3] += second;
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

extern "C" __global__ void __launch_bounds__(256, 1)
    loss_bf16(const float* queries, const float* keys, int batch, int n, int dim, float inverse_temperature,
              int tiles_per_range, float* maxima, float* sums, float* weighted) {
    softmax_bf16<false>(queries, keys, batch, n, dim, inverse_temperature, tiles_per_range, maxima, sums, weighted, 0, 0);
}

extern "C" __global__ void __launch_bounds__(256, 1)
    loss_bf16_weighted(const float* queries, const float* keys, int batch, int n, int dim, float inverse_temperature,
                       int tiles_per_range, float* maxima, float* sums, float* weighted, const float* log_weights,
                       const u32* count) {
    softmax_bf16<true>(queries, keys, batch, n, dim, inverse_temperature, tiles_per_range, maxima, sums, weighted,
                       log_weights, count);
}
