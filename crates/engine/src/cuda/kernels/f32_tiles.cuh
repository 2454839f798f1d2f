// Stands before contrastive.cu, loss_f32.cu and nearest.cu: tiles of inner products between rows in f32, and sums of weighted keys.
//
// A block: 64 queries, tiles of 64 keys, 16 x 16 threads of 4 x 4 similarities each (rows ty + 16 i, keys tx + 16 j). Rows
// longer than a chunk are read in chunks. Shared memory holds a chunk of the queries' rows, one of the keys', and the weights.

#define SIDE 64
#define CHUNK 128
#define PITCH (CHUNK + 4)
#define WEIGHTS_PITCH (SIDE + 4)

static __device__ __forceinline__ void copy_rows(float *to, const float *matrix, int first, int rows, int chunk, int dim) {
#pragma unroll
    for (int i = 0; i < SIDE * CHUNK / 4 / 256; i++) {
        int at = i * 256 + threadIdx.x;
        int row = at / (CHUNK / 4), column = at % (CHUNK / 4) * 4;
        *(float4 *)(to + row * PITCH + column) = load4(matrix, first + row, rows, chunk * CHUNK + column, dim);
    }
}

// s = inner products of a block's queries and a tile's keys. The last chunk of the keys is then in shared memory, and so
// are the queries, if there is but one chunk: they are brought with the first tile.
static __device__ __forceinline__ void inner_products(float s[4][4], float *query_rows, float *key_rows,
                                                      const float *queries, int batch, const float *keys, int n, int dim,
                                                      int first_key, bool first_tile) {
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16, chunks = (dim + CHUNK - 1) / CHUNK;
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) s[i][j] = 0.f;
    for (int chunk = 0; chunk < chunks; chunk++) {
        __syncthreads(); // nobody reads the old rows any more
        if (chunks > 1 || first_tile) copy_rows(query_rows, queries, blockIdx.y * SIDE, batch, chunk, dim);
        copy_rows(key_rows, keys, first_key, n, chunk, dim);
        __syncthreads();
        const int width = min(CHUNK, dim - chunk * CHUNK);
        for (int d = 0; d < width; d += 4) {
            float4 k[4];
#pragma unroll
            for (int j = 0; j < 4; j++) k[j] = *(const float4 *)(key_rows + (tx + 16 * j) * PITCH + d);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float4 q = *(const float4 *)(query_rows + (ty + 16 * i) * PITCH + d);
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
}

// total += the tile's weights times its keys, for the block's own chunk of columns (blockIdx.z). The tile's last chunk is in
// shared memory, where the own one replaces it.
static __device__ __forceinline__ void add_weighted_keys(float total[4][8], const float *weights, float *key_rows,
                                                         const float *keys, int n, int dim, int first_key) {
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16, chunks = (dim + CHUNK - 1) / CHUNK, own = blockIdx.z;
    __syncthreads();
    if (own != chunks - 1) {
        copy_rows(key_rows, keys, first_key, n, own, dim);
        __syncthreads();
    }
    for (int key = 0; key < SIDE; key += 4) {
        float4 w[4];
#pragma unroll
        for (int i = 0; i < 4; i++) w[i] = *(const float4 *)(weights + (ty + 16 * i) * WEIGHTS_PITCH + key);
#pragma unroll
        for (int step = 0; step < 4; step++) {
            const float *row = key_rows + (key + step) * PITCH + tx * 4;
            float4 left = *(const float4 *)row, right = *(const float4 *)(row + CHUNK / 2);
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

// The own chunk of a row's total goes to weighted[at].
static __device__ __forceinline__ void store_total(const float total[8], float *weighted, size_t at, int dim) {
    const int tx = threadIdx.x % 16;
#pragma unroll
    for (int j = 0; j < 8; j++) {
        const int column = blockIdx.z * CHUNK + j / 4 * (CHUNK / 2) + tx * 4 + j % 4;
        if (column < dim) weighted[at * dim + column] = total[j];
    }
}

