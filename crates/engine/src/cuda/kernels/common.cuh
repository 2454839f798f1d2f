// Stands before every kernel file: the type of activations, and how runs of eight values are read and written.
//
// No header is included, so that NVRTC alone is enough. Activations are `element`: bf16 (rounded to nearest, ties to
// even) or f32; all arithmetic is f32.

typedef unsigned int u32;
typedef unsigned long long u64;

struct bf16 {
    unsigned short bits;
};

static __device__ __forceinline__ float to_float(bf16 v) { return __uint_as_float((u32)v.bits << 16); }
static __device__ __forceinline__ float to_float(float v) { return v; }

static __device__ __forceinline__ bf16 round_to(float v, bf16) {
    bf16 r;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r.bits) : "f"(v));
    return r;
}
static __device__ __forceinline__ float round_to(float v, float) { return v; }

// Two values in one word, `low` first in memory.
static __device__ __forceinline__ u32 pack(float low, float high) {
    u32 r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}

#if ELEMENT_BF16
typedef bf16 element;
#else
typedef float element;
#endif

static __device__ __forceinline__ element to_element(float v) { return round_to(v, element()); }

// Eight values from memory aligned to sixteen bytes.
static __device__ __forceinline__ void load8(const float *p, float v[8]) {
    float4 a = ((const float4 *)p)[0], b = ((const float4 *)p)[1];
    v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w;
    v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
}

static __device__ __forceinline__ void load8(const bf16 *p, float v[8]) {
    uint4 a = *(const uint4 *)p;
    u32 words[4] = {a.x, a.y, a.z, a.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        v[2 * i] = __uint_as_float(words[i] << 16);
        v[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
    }
}

static __device__ __forceinline__ void store8(float *p, const float v[8]) {
    ((float4 *)p)[0] = make_float4(v[0], v[1], v[2], v[3]);
    ((float4 *)p)[1] = make_float4(v[4], v[5], v[6], v[7]);
}

static __device__ __forceinline__ void store8(bf16 *p, const float v[8]) {
    *(uint4 *)p = make_uint4(pack(v[0], v[1]), pack(v[2], v[3]), pack(v[4], v[5]), pack(v[6], v[7]));
}

// `n` of at most eight values: all at once where there are eight, which must be aligned, else one by one.
template <typename T> static __device__ __forceinline__ void load_some(const T *p, int n, float v[8]) {
    if (n == 8) {
        load8(p, v);
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = i < n ? to_float(p[i]) : 0.0f;
}

template <typename T> static __device__ __forceinline__ void store_some(T *p, int n, const float v[8]) {
    if (n == 8) {
        store8(p, v);
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
        if (i < n) p[i] = round_to(v[i], T());
    }
}

// The first of a thread's values, and how many it has.
#define RUN_OF_EIGHT(len)                                                                                              \
    u64 at = 8 * ((u64)blockIdx.x * blockDim.x + threadIdx.x);                                                         \
    if (at >= len) return;                                                                                             \
    int n = len - at < 8 ? (int)(len - at) : 8;

// Eight values, aligned, or one.
template <int V, typename T> static __device__ __forceinline__ void load(const T *p, float v[V]) {
    if constexpr (V == 8)
        load8(p, v);
    else
        v[0] = to_float(p[0]);
}

template <int V> static __device__ __forceinline__ void store(element *p, const float v[V]) {
    if constexpr (V == 8)
        store8(p, v);
    else
        p[0] = to_element(v[0]);
}

// max(v, 0), and NaN where v is NaN, which fmaxf drops.
static __device__ __forceinline__ float relu_of(float v) {
    float r;
    asm("max.NaN.f32 %0, %1, 0f00000000;" : "=f"(r) : "f"(v));
    return r;
}

// The sum over a warp, the same in every lane and in every run.
static __device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
    return v;
}
static __device__ __forceinline__ double warp_sum(double v) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
    return v;
}

#define LOG2E 1.4426950408889634
#define MINUS_INFINITY __int_as_float(0xff800000)

// 2^x, with a relative error of at most 2^-22.
static __device__ __forceinline__ float power_of_two(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// The halves of two packed bf16.
static __device__ __forceinline__ float lower(u32 both) { return __uint_as_float(both << 16); }
static __device__ __forceinline__ float upper(u32 both) { return __uint_as_float(both & 0xffff0000u); }

// Four values of a row from a column on; zero beyond the matrix.
static __device__ __forceinline__ float4 load4(const float* matrix, int row, int rows, int column, int dim) {
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

// c += a·b by tensor cores: 16 rows of a, 8 columns of b, 16 summands, two bf16 to a word.
static __device__ __forceinline__ void multiply(float c[4], const u32 a[4], u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Four 8×8 matrices of bf16 from shared memory, each lane naming a row of eight values.
static __device__ __forceinline__ void load_matrices(u32 m[4], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(address)
                 : "memory");
}
static __device__ __forceinline__ void load_transposed(u32 m[4], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(address)
                 : "memory");
}

// Values that are on their way to shared memory (cp.async) travel in groups; the thread that asked for them has them when it
// has waited for all groups but the last so many.
static __device__ __forceinline__ void end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LATER> static __device__ __forceinline__ void wait_for_group() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LATER) : "memory");
}

// A window over pictures.
struct Window {
    u32 height, width, channels; // of the input
    u32 out_height, out_width, out_channels;
    u32 kernel_h, kernel_w, stride_h, stride_w, padding_h, padding_w;
};

// Where a value lies.
struct PlaceInPicture {
    u64 picture;
    int y, x;
    u32 c;
};

static __device__ __forceinline__ PlaceInPicture place_in(u32 height, u32 width, u32 channels, u64 at) {
    u64 row = at / channels / width;
    return {row / height, (int)(row % height), (int)(at / channels % width), (u32)(at % channels)};
}
static __device__ __forceinline__ PlaceInPicture place_in_input(const Window &s, u64 at) {
    return place_in(s.height, s.width, s.channels, at);
}

// Where the values of an input's place begin.
static __device__ __forceinline__ u64 input_at(const Window &s, u64 picture, int y, int x) {
    return ((picture * s.height + y) * s.width + x) * s.channels;
}
static __device__ __forceinline__ u64 output_at(const Window &s, u64 picture, int y, int x) {
    return ((picture * s.out_height + y) * s.out_width + x) * s.out_channels;
}

// What a norm has beside the activations. `saved` holds four rows of channels for the backward pass. The sums are over the rows of so many
// processes, each with as many.
struct Norm {
    const double *sums; // [group][2][channels]
    u32 groups, rows;
    float epsilon, momentum;
    u32 ranks;
    const float *gamma, *beta;
    float *running_mean, *running_variance, *saved;
};

enum { MEAN, INVERSE, SCALE, SHIFT };

// Philox4x32-10, as the CPU draws.
static __device__ uint4 philox(uint4 counter, uint2 key) {
#pragma unroll
    for (int round = 0; round < 10; round++) {
        u64 a = 0xD2511F53ull * counter.x, b = 0xCD9E8D57ull * counter.z;
        counter = make_uint4((u32)(b >> 32) ^ counter.y ^ key.x, (u32)b, (u32)(a >> 32) ^ counter.w ^ key.y, (u32)a);
        key.x += 0x9E3779B9u;
        key.y += 0xBB67AE85u;
    }
    return counter;
}
