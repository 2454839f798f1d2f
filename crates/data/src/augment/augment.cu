// The augmentation of params.rs, apply.rs and blur.rs on a GPU, to the bit: a block for each picture.
//
// Every operation on a float is a correctly rounded one that the compiler may not fuse (__fmul_rn and its kin), in the
// order of the Rust code; the draws are the same Philox words. A pixel's colours are a function of the pixel and of the mean
// grey of the whole picture just before the contrast, so nothing is stored between the operations: the mean is found in a
// pass of its own over the pixels, and the result computed in a second one. That needs no memory, for any size. Only a
// picture that is blurred has its second pass in strips, through the shared memory that held the greys (see `write_blurred`).
//
// Reads indices, epoch and step from device memory, so that one captured launch serves every step:
//   words:    what kernel.rs writes of the view's settings (see `Word`)
//   pictures: count x height x width x 3 bytes, or slots of so many bytes, each with its own rows and columns first; with a ring of r, the batches of r steps in turn, each in its order
//   indices:  the items of this batch; block b makes item indices[b]
//   current:  step in the epoch (for the ring alone), epoch
//   view:     which view of the items this is; it has draws of its own
//   out:      gridDim.x x height x width x channels, f32 or bf16; channels beyond the third are zero
//   chosen:   the parameters drawn (13 words each, as AugmentParams), or null

typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned char u8;
typedef unsigned short u16;

// The words of the first argument, as kernel.rs numbers them.
enum Word {
    HEIGHT, WIDTH, CHANNELS, BF16, RING, SEED_LOW, SEED_HIGH, BLUR_RADIUS, SLOT,
    SCALE_LOW, SCALE_HIGH, RATIO_LOW, RATIO_HIGH, LOG_RATIO_LOW, LOG_RATIO_HIGH,
    BRIGHTNESS, CONTRAST, SATURATION, HUE, GREY, FLIP, JITTER, BLUR, SIGMA_LOW, SIGMA_HIGH, SOLARISE,
    MEAN, STD = MEAN + 3
};

#define STREAM_AUGMENT 3
#define TRIES 10
#define COLOUR_BLOCK 16
#define CHOICE_BLOCK 17
#define SOMETIMES_BLOCK 18
#define VIEW_BLOCKS 32
#define THREADS 512
#define PART 4096  // pixels whose greys lie in shared memory at once
#define MOST_RADIUS 64

struct Params {
    u32 top, left, height, width;
    float brightness, contrast, saturation, hue;
    u32 order, grey, flip;
    float blur;
    u32 solarise;
};

struct Colour {
    float r, g, b;
};

__device__ __forceinline__ float add(float x, float y) { return __fadd_rn(x, y); }
__device__ __forceinline__ float less(float x, float y) { return __fsub_rn(x, y); }
__device__ __forceinline__ float times(float x, float y) { return __fmul_rn(x, y); }
__device__ __forceinline__ float over(float x, float y) { return __fdiv_rn(x, y); }

// ---------------------------------------------------------------------------------------------------------------------
// Choosing (params.rs)

__device__ uint4 philox(uint4 c, u32 key0, u32 key1) {
#pragma unroll
    for (int round = 0; round < 10; round++) {
        u32 high0 = __umulhi(0xD2511F53u, c.x), low0 = 0xD2511F53u * c.x;
        u32 high1 = __umulhi(0xCD9E8D57u, c.z), low1 = 0xCD9E8D57u * c.z;
        c = make_uint4(high1 ^ c.y ^ key0, low1, high0 ^ c.w ^ key1, low0);
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return c;
}

__device__ __forceinline__ float unit(u32 word) { return times((float)(word >> 8), 1.f / 16777216.f); }
__device__ __forceinline__ u32 below(u32 word, u32 n) { return __umulhi(word, n); }
__device__ __forceinline__ float between(float low, float high, float u) { return add(low, times(u, less(high, low))); }
__device__ __forceinline__ u32 rounded(float x) { return (u32)add(x, 0.5f); }

__device__ float factor(float amount, float u) {
    float low = less(1.f, amount);
    return between(low > 0.f ? low : 0.f, add(1.f, amount), u);
}

__device__ float exponential(float x) {
    const float c[] = {1.f / 120.f, 1.f / 24.f, 1.f / 6.f, 0.5f, 1.f, 1.f};
    float y = times(x, 0.125f), p = 1.f / 720.f;
#pragma unroll
    for (int i = 0; i < 6; i++) p = add(times(p, y), c[i]);
    p = times(p, p);
    p = times(p, p);
    return times(p, p);
}

__device__ __forceinline__ float real(const u32* words, int word) { return __uint_as_float(words[word]); }

__device__ void centre(const u32* words, u32 h, u32 w, Params& p) {
    float ratio = over((float)w, (float)h);
    p.height = h;
    p.width = w;
    if (ratio < real(words, RATIO_LOW))
        p.height = min(max(rounded(over((float)w, real(words, RATIO_LOW))), 1u), h);
    else if (ratio > real(words, RATIO_HIGH))
        p.width = min(max(rounded(times((float)h, real(words, RATIO_HIGH))), 1u), w);
    p.top = (h - p.height) / 2;
    p.left = (w - p.width) / 2;
}

// One warp draws for one h x w picture: lane t makes try t of the crop, and the lanes of the other blocks theirs.
__device__ void draw(const u32* words, u32 h, u32 w, u64 epoch, u64 item, u32 view, Params* to) {
    const int lane = threadIdx.x;
    uint4 counter = make_uint4(view * VIEW_BLOCKS + lane, (u32)item, (u32)(item >> 32) | (u32)epoch << 8,
                               STREAM_AUGMENT << 8 | (u32)(epoch >> 24));
    uint4 word = philox(counter, words[SEED_LOW], words[SEED_HIGH]);

    float target = times((float)(h * w), between(real(words, SCALE_LOW), real(words, SCALE_HIGH), unit(word.x)));
    float ratio = exponential(between(real(words, LOG_RATIO_LOW), real(words, LOG_RATIO_HIGH), unit(word.y)));
    u32 width = rounded(__fsqrt_rn(times(target, ratio))), height = rounded(__fsqrt_rn(over(target, ratio)));
    bool fits = lane < TRIES && width >= 1 && width <= w && height >= 1 && height <= h;
    u32 fitting = __ballot_sync(0xffffffffu, fits);
    if (fitting ? lane == __ffs(fitting) - 1 : lane == 0) {
        if (fitting) {
            to->top = below(word.z, h - height + 1);
            to->left = below(word.w, w - width + 1);
            to->height = height;
            to->width = width;
        } else {
            centre(words, h, w, *to);
        }
    }
    const u32 jitter = __shfl_sync(0xffffffffu, word.x, SOMETIMES_BLOCK);
    if (lane == COLOUR_BLOCK) {
        const bool changed = unit(jitter) < real(words, JITTER);
        to->brightness = changed ? factor(real(words, BRIGHTNESS), unit(word.x)) : 1.f;
        to->contrast = changed ? factor(real(words, CONTRAST), unit(word.y)) : 1.f;
        to->saturation = changed ? factor(real(words, SATURATION), unit(word.z)) : 1.f;
        to->hue = changed ? between(-real(words, HUE), real(words, HUE), unit(word.w)) : 0.f;
    }
    if (lane == CHOICE_BLOCK) {
        to->order = below(word.x, 24);
        to->grey = unit(word.y) < real(words, GREY);
        to->flip = unit(word.z) < real(words, FLIP);
    }
    if (lane == SOMETIMES_BLOCK) {
        float sigma = between(real(words, SIGMA_LOW), real(words, SIGMA_HIGH), unit(word.z));
        to->blur = unit(word.y) < real(words, BLUR) ? sigma : 0.f;
        to->solarise = unit(word.w) < real(words, SOLARISE);
    }
}

// Which change of colour comes at `turn` in the order of this number, of the 24 in lexicographic order.
__device__ int operation(u32 order, int turn) {
    u32 left = 0x3210;  // what is not chosen yet, four bits each, the lowest first
    const u32 weight[] = {6, 2, 1, 1};
    int chosen = 0;
    for (int i = 0; i <= turn; i++) {
        u32 at = order / weight[i];
        order %= weight[i];
        chosen = left >> 4 * at & 15;
        u32 kept = (1u << 4 * at) - 1;
        left = (left & kept) | (left >> 4 & ~kept);
    }
    return chosen;
}

// ---------------------------------------------------------------------------------------------------------------------
// Doing (apply.rs)

__device__ __forceinline__ float clip(float x) {
    x = x < 0.f ? 0.f : x;
    return x > 1.f ? 1.f : x;
}

__device__ __forceinline__ float grey(const Colour& c) {
    return add(add(times(0.2989f, c.r), times(0.587f, c.g)), times(0.114f, c.b));
}

__device__ __forceinline__ void towards(Colour& c, float other, float ratio) {
    float constant = times(less(1.f, ratio), other);
    c.r = clip(add(times(ratio, c.r), constant));
    c.g = clip(add(times(ratio, c.g), constant));
    c.b = clip(add(times(ratio, c.b), constant));
}

__device__ __forceinline__ float around(float sixths) {
    float up = sixths < 0.f ? add(sixths, 6.f) : sixths;
    return up >= 6.f ? less(up, 6.f) : up;
}

__device__ __forceinline__ float channel(float n, float sixths, float most, float range) {
    float k = add(n, sixths);
    k = k >= 6.f ? less(k, 6.f) : k;
    float back = less(4.f, k);
    return less(most, times(range, clip(k < back ? k : back)));
}

__device__ __forceinline__ void turn_hue(Colour& c, float turn) {
    float most = c.r > c.g ? c.r : c.g;
    most = most > c.b ? most : c.b;
    float least = c.r < c.g ? c.r : c.g;
    least = least < c.b ? least : c.b;
    float range = less(most, least);
    float inverse = over(1.f, range == 0.f ? 1.f : range);
    float red = times(less(c.g, c.b), inverse);
    float green = add(2.f, times(less(c.b, c.r), inverse));
    float blue = add(4.f, times(less(c.r, c.g), inverse));
    float sixths = most == c.g ? green : blue;
    sixths = most == c.r ? red : sixths;
    sixths = around(add(around(sixths), times(6.f, turn)));
    c.r = channel(5.f, sixths, most, range);
    c.g = channel(3.f, sixths, most, range);
    c.b = channel(1.f, sixths, most, range);
}

__device__ __forceinline__ void place(u32 i, float scale, u32 from, u32& first, u32& second, float& weight) {
    float at = less(times(add((float)i, 0.5f), scale), 0.5f);
    at = at > 0.f ? at : 0.f;
    first = min((u32)at, from - 1);
    second = min(first + 1, from - 1);
    weight = less(at, (float)first);
}

__device__ __forceinline__ float mix(float near, float far, float weight) {
    return add(times(near, less(1.f, weight)), times(far, weight));
}

struct Source {
    const u8* picture;
    const float* units;  // byte / 255
    u32 w;
    float scale_x, scale_y;
};

__device__ __forceinline__ Colour cropped(const Source& source, const Params& p, u32 y, u32 x) {
    u32 y0, y1, x0, x1;
    float fy, fx;
    place(y, source.scale_y, p.height, y0, y1, fy);
    place(x, source.scale_x, p.width, x0, x1, fx);
    const u8* above = source.picture + (size_t)(p.top + y0) * source.w * 3;
    const u8* below = source.picture + (size_t)(p.top + y1) * source.w * 3;
    x0 = (p.left + x0) * 3;
    x1 = (p.left + x1) * 3;
    float c[3];
#pragma unroll
    for (int i = 0; i < 3; i++) {
        float a = mix(source.units[above[x0 + i]], source.units[above[x1 + i]], fx);
        float b = mix(source.units[below[x0 + i]], source.units[below[x1 + i]], fx);
        c[i] = mix(a, b, fy);
    }
    return {c[0], c[1], c[2]};
}

// The operations from one turn up to another; the contrast takes the mean.
__device__ __forceinline__ void colour(Colour& c, const Params& p, const int* operations, int from, int to, float mean) {
    for (int turn = from; turn < to; turn++) {
        switch (operations[turn]) {
            case 0:
                if (p.brightness != 1.f) towards(c, 0.f, p.brightness);
                break;
            case 1:
                if (p.contrast != 1.f) towards(c, mean, p.contrast);
                break;
            case 2:
                if (p.saturation != 1.f) towards(c, grey(c), p.saturation);
                break;
            default:
                if (p.hue != 0.f) turn_hue(c, p.hue);
        }
    }
}

__device__ __forceinline__ u16 to_bf16(float x) {
    u16 bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}

// A pixel before the blur.
__device__ __forceinline__ Colour seen(const Source& source, const Params& p, const int* operations, float mean, u32 y,
                                       u32 x) {
    Colour c = cropped(source, p, y, x);
    colour(c, p, operations, 0, 4, mean);
    if (p.grey) c.r = c.g = c.b = grey(c);
    return c;
}

__device__ __forceinline__ float solarised(float v) { return v >= 0.5f ? less(1.f, v) : v; }

struct Target {
    void* out;
    size_t first;  // pixel of the block's picture
    u32 w, channels;
    bool flip, solarise;
};

// Solarises, normalises and mirrors a pixel.
__device__ __forceinline__ void put(const u32* words, const Target& target, Colour c, u32 y, u32 x) {
    const u32 w = target.w, channels = target.channels;
    if (target.solarise) c = {solarised(c.r), solarised(c.g), solarised(c.b)};
    const float values[3] = {c.r, c.g, c.b};
    const size_t at = (target.first + y * w + (target.flip ? w - 1 - x : x)) * channels;
    for (u32 j = 0; j < channels; j++) {
        float v = j < 3 ? over(less(values[j], real(words, MEAN + j)), real(words, STD + j)) : 0.f;
        if (words[BF16])
            ((u16*)target.out)[at + j] = to_bf16(v);
        else
            ((float*)target.out)[at + j] = v;
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Blur (blur.rs)

__device__ float exponential_below_zero(float x) {
    if (x < -50.f) return 0.f;
    int halvings = 0;
    for (; x < -2.f; halvings++) x = times(x, 0.5f);
    float p = exponential(x);
    for (int i = 0; i < halvings; i++) p = times(p, p);
    return p;
}

// The weights of the middle and of one side. All threads of the block.
__device__ void gaussian(float sigma, int radius, float* weights) {
    const int k = threadIdx.x;
    if (k <= radius) {
        float x = over((float)k, sigma);
        weights[k] = exponential_below_zero(times(-0.5f, times(x, x)));
    }
    __syncthreads();
    float sum = 0.f;
    for (int i = 0; i <= radius; i++) sum = add(sum, i ? times(2.f, weights[i]) : weights[i]);
    __syncthreads();
    if (k <= radius) weights[k] = over(weights[k], sum);
    __syncthreads();
}

__device__ __forceinline__ int mirrored(int i, int n) { return i > n - 1 ? 2 * (n - 1) - i : i < 0 ? -i : i; }

// Pixels of a plane at `middle` and either side of it, weighted.
template <typename At>
__device__ __forceinline__ float blurred(const float* weights, int radius, int middle, At at) {
    float sum = times(weights[0], at(middle));
    for (int k = 1; k <= radius; k++) sum = add(sum, times(weights[k], add(at(middle - k), at(middle + k))));
    return sum;
}

// A blurred pixel takes in (2r + 1)^2 others, too many to compute each time, and a picture of any size must do with the
// memory there is. So a strip of columns is walked down in bands of rows: a band's pixels with r more on either side are
// computed, blurred across, and put where the oldest rows were; the rows that now have all their neighbours are blurred
// down and written. Only the pixels beside a strip are computed twice (22 of 54 columns for 224 x 224), and `room`, PART
// floats, suffices for every radius: the strips are as narrow as it takes.
__device__ void write_blurred(const u32* words, const Source& source, const Params& p, const int* operations, float mean,
                              const float* weights, float* room, const Target& target) {
    const int h = words[HEIGHT], w = words[WIDTH], r = words[BLUR_RADIUS];
    int strip = 64, band;
    do {
        strip /= 2;
        band = (PART / 3 - 2 * r * strip) / (2 * strip + 2 * r);
    } while (band < 2);
    const int wide = strip + 2 * r, kept = band + 2 * r;
    float* across = room;                     // [3][kept][strip], a row at its number modulo kept
    float* plain = room + 3 * kept * strip;  // [3][band][wide]
    for (int left = 0; left < w; left += strip) {
        const int columns = min(strip, w - left), padded = columns + 2 * r;
        int written = 0;
        for (int top = 0; top < h; top += band) {
            const int rows = min(band, h - top);
            for (int i = threadIdx.x; i < rows * padded; i += THREADS) {
                const int y = i / padded, x = i % padded;
                const Colour c = seen(source, p, operations, mean, top + y, mirrored(left + x - r, w));
                float* to = plain + y * wide + x;
                to[0] = c.r;
                to[band * wide] = c.g;
                to[2 * band * wide] = c.b;
            }
            __syncthreads();
            for (int i = threadIdx.x; i < 3 * rows * columns; i += THREADS) {
                const int x = i % columns, y = i / columns % rows, j = i / columns / rows;
                const float* row = plain + (j * band + y) * wide;
                across[(j * kept + (top + y) % kept) * strip + x] =
                    blurred(weights, r, x + r, [=](int x) { return row[x]; });
            }
            __syncthreads();
            const int ready = top + rows == h ? h : max(top + rows - r, 0);
            for (int i = threadIdx.x; i < (ready - written) * columns; i += THREADS) {
                const int x = i % columns, y = written + i / columns, slot = y % kept;
                float c[3];
#pragma unroll
                for (int j = 0; j < 3; j++) {
                    const float* column = across + j * kept * strip + x;
                    c[j] = blurred(weights, r, y, [=](int at) {
                        int place = slot + mirrored(at, h) - y;  // modulo kept, at most r away
                        place += place < 0 ? kept : place >= kept ? -kept : 0;
                        return column[place * strip];
                    });
                }
                put(words, target, {c[0], c[1], c[2]}, y, left + x);
            }
            written = ready;
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    augment(const u32* words, const u8* pictures, const u32* indices, const u64* current, u32 view, void* out,
            Params* chosen) {
    __shared__ Params p;
    __shared__ int operations[4];
    __shared__ float units[256];
    __shared__ float room[PART];
    __shared__ float weights[MOST_RADIUS + 1];
    __shared__ float mean;
    const u32 h = words[HEIGHT], w = words[WIDTH], pixels = h * w;
    const u32 index = indices[blockIdx.x];
    const u32 ring = words[RING], slot = words[SLOT];
    const size_t position = ring ? current[0] % ring * gridDim.x + blockIdx.x : index;
    // What crops are cut from: a picture of the view's own size, or what a slot holds, whose rows and columns come first.
    const u8* item = pictures + position * (slot ? slot : pixels * 3);
    const u32 rows = slot ? ((const u32*)item)[0] : h, columns = slot ? ((const u32*)item)[1] : w;
    if (threadIdx.x < 32) draw(words, rows, columns, current[1], index, view, &p);
    if (threadIdx.x < 256) units[threadIdx.x] = over((float)threadIdx.x, 255.f);
    __syncthreads();
    if (threadIdx.x < 4) operations[threadIdx.x] = operation(p.order, threadIdx.x);
    if (chosen && threadIdx.x == 0) chosen[blockIdx.x] = p;
    __syncthreads();

    const Source source = {slot ? item + 8 : item, units, columns, over((float)p.width, (float)w),
                           over((float)p.height, (float)h)};
    int contrast = 0;
    while (operations[contrast] != 1) contrast++;
    if (p.contrast != 1.f) {
        // 32 lanes take the pixels in turn, and lane i then lane i + 16, i + 8, ...: the order of apply.rs.
        float lane = 0.f;
        for (u32 part = 0; part < pixels; part += PART) {
            const u32 end = min(part + PART, pixels);
            for (u32 i = part + threadIdx.x; i < end; i += THREADS) {
                Colour c = cropped(source, p, i / w, i % w);
                colour(c, p, operations, 0, contrast, 0.f);
                room[i - part] = grey(c);
            }
            __syncthreads();
            if (threadIdx.x < 32)
                for (u32 i = part + threadIdx.x; i < end; i += 32) lane = add(lane, room[i - part]);
            __syncthreads();
        }
        if (threadIdx.x < 32) {
            for (int half = 16; half; half /= 2) lane = add(lane, __shfl_down_sync(0xffffffffu, lane, half));
            if (threadIdx.x == 0) mean = over(lane, (float)pixels);
        }
        __syncthreads();
    }

    const Target target = {out, (size_t)blockIdx.x * pixels, w, words[CHANNELS], p.flip != 0, p.solarise != 0};
    if (p.blur > 0.f) {
        gaussian(p.blur, words[BLUR_RADIUS], weights);
        write_blurred(words, source, p, operations, mean, weights, room, target);
        return;
    }
    for (u32 i = threadIdx.x; i < pixels; i += THREADS) {
        const u32 y = i / w, x = i % w;
        put(words, target, seen(source, p, operations, mean, y, x), y, x);
    }
}
