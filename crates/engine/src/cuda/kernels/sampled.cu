// A loss over a sample of the keys (cpu/similarity/sampled.rs has the maths): which rows a step looks at, and copies of those that are here.
//
// Places are first those of the rows drawn, then width - 1 for each item, its positives: table[item][0] says how many it has, and
// table[item][1..] which. A positive counts where it is met first; a drawn row counts, as often as it is drawn, unless it is a positive.
// Each place finds out by comparing with all positives: of Q queries that is Q comparisons, where the loss makes Q inner products.

#define THREADS 256
#define NOWHERE 0xffffffffu

struct Sample {
    u32 drawn, items, width, keys, seed_low, seed_high;
};

// The row in a place of the positives.
static __device__ __forceinline__ u32 listed_row(const Sample& of, const u32* table, u32 place) {
    const u32 most = of.width - 1, *item = table + place / most * of.width;
    return place % most < item[0] ? item[1 + place % most] : NOWHERE;
}

// The row that is drawn in a place: RowSample::draw, to the bit.
static __device__ __forceinline__ u32 drawn_row(const Sample& of, u64 step, u32 place) {
    const u32 stream = 16;
    const uint4 words =
        philox(make_uint4(place / 4, (u32)step, (u32)(step >> 32), stream << 8), make_uint2(of.seed_low, of.seed_high));
    const u32 word = place % 4 == 0 ? words.x : place % 4 == 1 ? words.y : place % 4 == 2 ? words.z : words.w;
    return (u32)((u64)word * of.keys >> 32);
}

// rows takes the row of each place, or NOWHERE; counts[0] += positives that count, counts[1] += drawn rows that count.
extern "C" __global__ void __launch_bounds__(THREADS)
    sample_places(Sample of, const u32* __restrict__ table, const u64* step, u32* rows, u32* counts) {
    __shared__ u32 others[THREADS];
    const u32 listed = of.items * (of.width - 1), place = blockIdx.x * THREADS + threadIdx.x;
    const bool draws = place < of.drawn, inside = place < of.drawn + listed;
    u32 row = !inside ? NOWHERE : draws ? drawn_row(of, *step, place) : listed_row(of, table, place - of.drawn);
    // A positive is compared with those before it, a drawn row with all.
    const u32 before = draws ? listed : place - of.drawn;
    bool counts_not = row == NOWHERE;
    for (u32 base = 0; base < listed; base += THREADS) {
        __syncthreads();
        others[threadIdx.x] = base + threadIdx.x < listed ? listed_row(of, table, base + threadIdx.x) : NOWHERE;
        __syncthreads();
        for (u32 i = 0; i < THREADS; i++) counts_not |= base + i < before && others[i] == row;
    }
    if (inside) rows[place] = counts_not ? NOWHERE : row;
    const u32 of_listed = __syncthreads_count(!counts_not && !draws), of_drawn = __syncthreads_count(!counts_not && draws);
    if (threadIdx.x == 0 && of_listed) atomicAdd(counts, of_listed);
    if (threadIdx.x == 0 && of_drawn) atomicAdd(counts + 1, of_drawn);
}

#define PACK_THREADS 1024

// The rows that are here, of numbers first..first + here, in the order of their places: picked takes their numbers among those here,
// log_weights (base 2) as how many each counts, *count how many there are. counts are zero again for the next step. One block.
extern "C" __global__ void __launch_bounds__(PACK_THREADS)
    sample_pack(Sample of, const u32* __restrict__ rows, u32 first, u32 here, u32* counts, u32* picked, float* log_weights,
                u32* count) {
    __shared__ u32 of_warps[PACK_THREADS / 32];
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, places = of.drawn + of.items * (of.width - 1);
    const float drawn_weight = (float)log2((double)(of.keys - counts[0]) / (double)counts[1]);
    u32 before = 0;
    for (u32 base = 0; base < places; base += PACK_THREADS) {
        const u32 place = base + threadIdx.x, row = place < places ? rows[place] : NOWHERE;
        const bool is_here = row != NOWHERE && row - first < here;
        const u32 alike = __ballot_sync(0xffffffffu, is_here);
        __syncthreads();
        if (lane == 0) of_warps[warp] = __popc(alike);
        __syncthreads();
        u32 at = before + __popc(alike & ((1u << lane) - 1));
        for (u32 w = 0; w < PACK_THREADS / 32; w++) {
            if (w < warp) at += of_warps[w];
            before += of_warps[w];
        }
        if (is_here) {
            picked[at] = row - first;
            log_weights[at] = place < of.drawn ? drawn_weight : 0.f;
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) *count = before, counts[0] = counts[1] = 0;
}

// Copies of the rows picked, a warp for each.
extern "C" __global__ void __launch_bounds__(THREADS)
    sample_copy(const float* __restrict__ keys, int dim, const u32* __restrict__ picked, const u32* __restrict__ count,
                float* to) {
    const u32 place = (blockIdx.x * THREADS + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (place >= *count) return;
    const float* from = keys + (size_t)picked[place] * dim;
    for (int d = lane; d < dim; d += 32) to[(size_t)place * dim + d] = from[d];
}
