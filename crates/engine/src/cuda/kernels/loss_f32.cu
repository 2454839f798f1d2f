// A batch's softmax over a range of keys (see similarity.cu) in f32 throughout, for rows of any length.
//
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
