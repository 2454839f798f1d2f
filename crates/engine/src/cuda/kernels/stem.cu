// The first convolution of networks for small pictures, by tensor cores: a 3×3 window of stride 1, 64 channels out, pictures
// of eight channels of which the last four are zero. cuDNN's ways take several times as long as reading and writing it.
//
// A row is a place of a picture; places come in whole tiles.

#if ELEMENT_BF16
#define OUT 64
#define TAPS 9

// Whether a tap of a place lies in the picture.
static __device__ __forceinline__ bool inside(u32 place, u32 tap, u32 height, u32 width) {
    u32 row = place / width % height + tap / 3 - 1, column = place % width + tap % 3 - 1;
    return tap < TAPS && row < height && column < width;
}

// y = x ∗ w. A warp takes sixteen places at a time. Summands are (tap, channel) with two channels to a word: word q is
// channels 2(q % 2) and the next of tap q / 2. Columns are shuffled so that a thread's results lie side by side.
extern "C" __global__ void __launch_bounds__(128) stem_forward(const element *x, const element *w, u32 height, u32 width,
                                                               u32 tiles, element *y) {
    u32 lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    u32 weights[8][3][2];
#pragma unroll
    for (int j = 0; j < 8; j++) {
        u32 o = 32 * (j / 4) + 8 * (g / 2) + 2 * (j % 4) + g % 2;
#pragma unroll
        for (int k = 0; k < 6; k++) {
            u32 q = 4 * k + t;
            weights[j][k / 2][k % 2] = q / 2 < TAPS ? *(const u32 *)(w + (o * TAPS + q / 2) * 8 + 2 * (q % 2)) : 0;
        }
    }
    for (u32 tile = blockIdx.x * 4 + threadIdx.x / 32; tile < tiles; tile += gridDim.x * 4) {
        u32 a[3][4];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            u32 place = 16 * tile + 8 * r + g;
#pragma unroll
            for (int k = 0; k < 6; k++) {
                u32 q = 4 * k + t, tap = q / 2;
                int from = (int)place + ((int)tap / 3 - 1) * (int)width + (int)tap % 3 - 1;
                a[k / 2][2 * (k % 2) + r] =
                    inside(place, tap, height, width) ? *(const u32 *)(x + (long long)from * 8 + 2 * (q % 2)) : 0;
            }
        }
        float c[8][4] = {};
#pragma unroll
        for (int k = 0; k < 3; k++) {
#pragma unroll
            for (int j = 0; j < 8; j++) multiply(c[j], a[k], weights[j][k][0], weights[j][k][1]);
        }
#pragma unroll
        for (int r = 0; r < 2; r++) {
            element *to = y + (u64)(16 * tile + 8 * r + g) * OUT + 8 * t;
#pragma unroll
            for (int h = 0; h < 2; h++) {
                float v[8];
#pragma unroll
                for (int i = 0; i < 8; i++) v[i] = c[4 * h + i / 2][2 * r + i % 2];
                store8(to + 32 * h, v);
            }
        }
    }
}

#define TILE 128
#define STAGES 3
#define MATRIX (TAPS * 8 * OUT)

static __device__ __forceinline__ void send_for(u32 to, const void *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

// Each block's part of dw = x ⋆ dy, as [tap][channel][out]. A tile's dy and x (with what its windows see before and behind it)
// travel to shared memory ahead of their turn. Warps share out the summands by four and the columns by two.
extern "C" __global__ void __launch_bounds__(256, 1) stem_weight_gradient(const element *x, const element *dy, u32 height,
                                                                          u32 width, u32 tiles, float *partials) {
    extern __shared__ __align__(128) unsigned char memory[];
    u32 around = width + 1, seen = TILE + 2 * around, stage_bytes = TILE * OUT * 2 + seen * 16;
    u32 base = (u32)__cvta_generic_to_shared(memory), nothing = base + STAGES * stage_bytes;
    u32 lane = threadIdx.x % 32, quarter = threadIdx.x / 32 % 4, half = threadIdx.x / 128;
    if (threadIdx.x < 4) ((u32 *)(memory + STAGES * stage_bytes))[threadIdx.x] = 0;
    auto bring = [&](u32 tile, u32 stage) {
        if (tile < tiles) {
            u32 to = base + stage * stage_bytes;
            for (u32 i = threadIdx.x; i < TILE * 8; i += 256) {
                u32 row = i / 8, part = i % 8;
                send_for(to + row * 128 + (part ^ row % 8) * 16, dy + ((u64)tile * TILE + row) * OUT + part * 8);
            }
            for (u32 i = threadIdx.x; i < seen; i += 256) {
                long long place = (long long)tile * TILE + i - around;
                if (place >= 0 && place < (long long)tiles * TILE) send_for(to + TILE * OUT * 2 + i * 16, x + place * 8);
            }
        }
        end_group();
    };
    for (u32 i = 0; i < STAGES - 1; i++) bring(blockIdx.x + i * gridDim.x, i);
    float c[5][4][4] = {};
    u32 turn = 0;
    for (u32 tile = blockIdx.x; tile < tiles; tile += gridDim.x, turn++) {
        wait_for_group<STAGES - 2>();
        __syncthreads();
        bring(tile + (STAGES - 1) * gridDim.x, (turn + STAGES - 1) % STAGES);
        u32 dys = base + turn % STAGES * stage_bytes, xs = dys + TILE * OUT * 2;
#pragma unroll
        for (int again = 0; again < 2; again++) {
            u32 first = 16 * (quarter + 4 * again), of = lane / 8;
            u32 b[2][4];
#pragma unroll
            for (int n = 0; n < 2; n++) {
                u32 row = first + of % 2 * 8 + lane % 8, part = half * 4 + 2 * n + of / 2;
                load_transposed(b[n], dys + row * 128 + (part ^ row % 8) * 16);
            }
            u32 row = first + of / 2 * 8 + lane % 8;
#pragma unroll
            for (int m = 0; m < 5; m++) {
                u32 tap = 2 * m + of % 2, a[4];
                u32 at = row + around + (tap / 3) * width + tap % 3 - width - 1;
                load_transposed(a, inside(tile * TILE + row, tap, height, width) ? xs + at * 16 : nothing);
#pragma unroll
                for (int n = 0; n < 4; n++) multiply(c[m][n], a, b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
            }
        }
    }
    wait_for_group<0>();
    float *sums = (float *)memory;
    for (u32 q = 0; q < 4; q++) {
        __syncthreads();
        if (quarter != q) continue;
#pragma unroll
        for (int m = 0; m < 5; m++) {
#pragma unroll
            for (int i = 0; i < 16; i++) {
                u32 row = 16 * m + i % 4 / 2 * 8 + lane / 4, column = 32 * half + i / 4 * 8 + lane % 4 * 2 + i % 2;
                float v = c[m][i / 4][i % 4];
                sums[row * OUT + column] = q == 0 ? v : sums[row * OUT + column] + v;
            }
        }
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < MATRIX; i += 256) partials[(u64)blockIdx.x * MATRIX + i] = sums[i];
}

// dw, as [out][tap][channel], from the parts of so many blocks. Eight threads add for each, in a fixed order.
extern "C" __global__ void __launch_bounds__(256) stem_weight_sums(const float *partials, u32 blocks, element *dw) {
    __shared__ float parts[8][32];
    u32 lane = threadIdx.x % 32, part = threadIdx.x / 32, at = blockIdx.x * 32 + lane;
    float sum = 0.0f;
#pragma unroll 6
    for (u32 b = part; b < blocks; b += 8) sum += partials[(u64)b * MATRIX + at];
    parts[part][lane] = sum;
    __syncthreads();
    if (part > 0) return;
    float total = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; i++) total += parts[i][lane];
    dw[at % OUT * TAPS * 8 + at / OUT] = to_element(total);
}
#endif
