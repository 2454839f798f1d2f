// Tiles cut out of pictures, by which a puzzle is set; naive/tiles.rs has the maths. A block for each tile. `step` is in device
// memory, already below 2^20.

#define THREADS 256

struct Tiles {
    u32 size, channels, classes, tiles, side, jitter;
    int normalise;
    u32 seed_low, seed_high;
    u32 first; // the place of the first picture in the batch of all processes
};

static __device__ __forceinline__ uint4 draw(const Tiles &of, u32 step, u32 picture, u32 block) {
    const u32 stream = 17;
    return philox(make_uint4(block, of.first + picture, step << 8, stream << 8 | step >> 24), make_uint2(of.seed_low, of.seed_high));
}

static __device__ __forceinline__ u32 below(u32 word, u32 n) { return (u32)((u64)word * n >> 32); }

struct Between {
    u32 low, high;
    float share;
};

static __device__ __forceinline__ Between between(u32 o, u32 side, u32 size) {
    float at = ((float)o + 0.5f) * ((float)side / (float)size) - 0.5f;
    at = fminf(fmaxf(at, 0.0f), (float)(side - 1));
    u32 low = (u32)at;
    return {low, min(low + 1, side - 1), at - (float)low};
}

extern "C" __global__ void __launch_bounds__(THREADS)
    tiles(const float *__restrict__ pixels, const u32 *__restrict__ places, Tiles of, const u64 *step, u32 *labels, float *to) {
    __shared__ float mean[THREADS], inverse[THREADS];
    const u32 picture = blockIdx.x / of.tiles, tile = blockIdx.x % of.tiles, now = (u32)*step;
    const u32 class_ = below(draw(of, now, picture, 0).x, of.classes);
    const uint4 words = draw(of, now, picture, 1 + tile);
    const u32 room = of.size - of.side - of.jitter, place = places[class_ * of.tiles + tile];
    const u32 top = place / (room + 1) + below(words.x, of.jitter + 1);
    const u32 left = place % (room + 1) + below(words.y, of.jitter + 1);
    if (tile == 0 && threadIdx.x == 0) labels[picture] = class_;
    const u64 one = (u64)of.size * of.size * of.channels;
    const float *from = pixels + picture * one + ((u64)top * of.size + left) * of.channels;
    const u32 c = threadIdx.x;
    if (c < of.channels) {
        double sum = 0.0, squares = 0.0, count = (double)of.side * of.side;
        for (u32 i = 0; i < of.side * of.side; i++) sum += from[(i / of.side * of.size + i % of.side) * of.channels + c];
        for (u32 i = 0; i < of.side * of.side; i++) {
            double d = from[(i / of.side * of.size + i % of.side) * of.channels + c] - sum / count;
            squares += d * d;
        }
        mean[c] = of.normalise ? (float)(sum / count) : 0.0f;
        inverse[c] = of.normalise ? (float)(1.0 / sqrt(squares / count + 1e-5)) : 1.0f;
    }
    __syncthreads();
    to += blockIdx.x * one;
    for (u32 i = threadIdx.x; i < one; i += THREADS) {
        const u32 k = i % of.channels;
        const Between y = between(i / of.channels / of.size, of.side, of.size);
        const Between x = between(i / of.channels % of.size, of.side, of.size);
        const float *upper_row = from + y.low * of.size * of.channels + k, *lower_row = from + y.high * of.size * of.channels + k;
        const float a = upper_row[x.low * of.channels] * (1.0f - x.share) + upper_row[x.high * of.channels] * x.share;
        const float b = lower_row[x.low * of.channels] * (1.0f - x.share) + lower_row[x.high * of.channels] * x.share;
        to[i] = ((a * (1.0f - y.share) + b * y.share) - mean[k]) * inverse[k];
    }
}
