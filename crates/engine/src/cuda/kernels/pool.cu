// Max pooling (eight channels a thread where they are a multiple of eight), the global average, and division
// of each row by its Euclidean norm (a row a block); every output is a sum or maximum in a fixed order.

template <int V>
static __device__ __forceinline__ void max_pool(const element *x, const Window &s, u64 len, element *y) {
    u64 at = V * ((u64)blockIdx.x * blockDim.x + threadIdx.x);
    if (at >= len) return;
    PlaceInPicture to = place_in(s.out_height, s.out_width, s.channels, at);
    float best[V];
#pragma unroll
    for (int k = 0; k < V; k++) best[k] = MINUS_INFINITY;
    for (u32 i = 0; i < s.kernel_h; i++) {
        int iy = to.y * (int)s.stride_h + (int)i - (int)s.padding_h;
        if (iy < 0 || iy >= (int)s.height) continue;
        for (u32 j = 0; j < s.kernel_w; j++) {
            int ix = to.x * (int)s.stride_w + (int)j - (int)s.padding_w;
            if (ix < 0 || ix >= (int)s.width) continue;
            float v[V];
            load<V>(x + input_at(s, to.picture, iy, ix) + to.c, v);
            // NaN wins and stays, as in PyTorch.
#pragma unroll
            for (int k = 0; k < V; k++) {
                if (v[k] > best[k] || v[k] != v[k]) best[k] = v[k];
            }
        }
    }
    store<V>(y + at, best);
}

// dx (+)= the gradients of the windows whose first maximum is here.
template <int V>
static __device__ __forceinline__ void max_pool_backward(const element *x, const element *y, const element *dy,
                                                         const Window &s, u64 len, int accumulate, element *dx) {
    u64 at = V * ((u64)blockIdx.x * blockDim.x + threadIdx.x);
    if (at >= len) return;
    PlaceInPicture of = place_in_input(s, at);
    float own[V], sum[V] = {};
    load<V>(x + at, own);
    // Windows o with o·stride − padding ≤ i < o·stride − padding + kernel.
    int top = of.y + (int)s.padding_h, left = of.x + (int)s.padding_w;
    int oy0 = top < (int)s.kernel_h ? 0 : (top - (int)s.kernel_h) / (int)s.stride_h + 1;
    int ox0 = left < (int)s.kernel_w ? 0 : (left - (int)s.kernel_w) / (int)s.stride_w + 1;
    for (int oy = oy0; oy < (int)s.out_height && oy * (int)s.stride_h <= top; oy++) {
        for (int ox = ox0; ox < (int)s.out_width && ox * (int)s.stride_w <= left; ox++) {
            u64 o = output_at(s, of.picture, oy, ox) + of.c;
            float best[V], d[V];
            load<V>(y + o, best);
            bool here[V], any = false;
#pragma unroll
            for (int k = 0; k < V; k++) here[k] = best[k] == own[k], any |= here[k];
            if (!any) continue;
            // An equal value before this one, in the order of the window, has it instead.
            int begin = ox * (int)s.stride_w - (int)s.padding_w, end = min(begin + (int)s.kernel_w, (int)s.width);
            for (int wy = max(oy * (int)s.stride_h - (int)s.padding_h, 0); wy <= of.y; wy++) {
                for (int wx = max(begin, 0); wx < (wy == of.y ? of.x : end); wx++) {
                    float v[V];
                    load<V>(x + input_at(s, of.picture, wy, wx) + of.c, v);
#pragma unroll
                    for (int k = 0; k < V; k++) here[k] &= v[k] != own[k];
                }
            }
            load<V>(dy + o, d);
#pragma unroll
            for (int k = 0; k < V; k++) sum[k] += here[k] ? d[k] : 0.0f;
        }
    }
    if (accumulate) {
        float before[V];
        load<V>(dx + at, before);
#pragma unroll
        for (int k = 0; k < V; k++) sum[k] += before[k];
    }
    store<V>(dx + at, sum);
}

#define MAX_POOL(V)                                                                                                    \
    extern "C" __global__ void max_pool_##V(const element *x, Window s, u64 len, element *y) {                         \
        max_pool<V>(x, s, len, y);                                                                                     \
    }                                                                                                                  \
    extern "C" __global__ void max_pool_backward_##V(const element *x, const element *y, const element *dy, Window s,  \
                                                     u64 len, int accumulate, element *dx) {                           \
        max_pool_backward<V>(x, y, dy, s, len, accumulate, dx);                                                        \
    }
MAX_POOL(8)
MAX_POOL(1)

extern "C" __global__ void global_average(const element *x, u32 pixels, u32 channels, u64 len, element *y) {
    u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= len) return;
    const element *from = x + at / channels * pixels * channels + at % channels;
    float sum = 0.0f;
#pragma unroll 4
    for (u32 i = 0; i < pixels; i++) sum += to_float(from[(u64)i * channels]);
    y[at] = to_element(sum / (float)pixels);
}

extern "C" __global__ void global_average_backward(const element *dy, u32 pixels, u32 channels, u64 len, int accumulate,
                                                   element *dx) {
    u64 at = 8 * ((u64)blockIdx.x * blockDim.x + threadIdx.x);
    if (at >= len) return;
    int n = len - at < 8 ? (int)(len - at) : 8;
    float share = 1.0f / (float)pixels, d[8], v[8];
    u64 row = at / channels;
    u32 c = (u32)(at % channels);
    if (channels % 8 == 0) {
        load8(dy + row / pixels * channels + c, d);
    } else {
        for (int i = 0; i < n; i++) {
            d[i] = to_float(dy[row / pixels * channels + c]);
            if (++c == channels) c = 0, row++;
        }
    }
    if (accumulate) load_some(dx + at, n, v);
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = accumulate ? v[i] + d[i] * share : d[i] * share;
    store_some(dx + at, n, v);
}

// The sum over a block of 128 threads, the same in each of them.
static __device__ float block_sum(float v) {
    __shared__ float shared[4];
    v = warp_sum(v);
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
    __syncthreads();
    return shared[0] + shared[1] + shared[2] + shared[3];
}

static __device__ float row_norm(const element *x, u32 dim) {
    float squares = 0.0f;
    for (u32 i = threadIdx.x; i < dim; i += blockDim.x) squares += to_float(x[i]) * to_float(x[i]);
    return sqrtf(block_sum(squares));
}

// y = x / max(‖x‖, 1e-12), a block a row; unrounded to `wide` too, if there is one.
extern "C" __global__ void l2_normalise(const element *x, u32 dim, element *y, float *wide) {
    u64 row = (u64)blockIdx.x * dim;
    float norm = fmaxf(row_norm(x + row, dim), 1e-12f);
    for (u32 i = threadIdx.x; i < dim; i += blockDim.x) {
        float v = to_float(x[row + i]) / norm;
        y[row + i] = to_element(v);
        if (wide) wide[row + i] = v;
    }
}

// dx (+)= (dy − y·⟨y, dy⟩)/‖x‖, or dy/1e-12 where the norm is below that; dy is `wide` if there is one.
extern "C" __global__ void l2_normalise_backward(const element *x, const element *dy, const float *wide, u32 dim,
                                                 int accumulate, element *dx) {
    u64 row = (u64)blockIdx.x * dim;
    float norm = row_norm(x + row, dim);
    bool tiny = norm < 1e-12f;
    float divisor = tiny ? 1e-12f : norm, along = 0.0f;
    for (u32 i = threadIdx.x; i < dim && !tiny; i += blockDim.x) {
        float d = wide ? wide[row + i] : to_float(dy[row + i]);
        along += to_float(x[row + i]) / divisor * d;
    }
    along = block_sum(along);
    for (u32 i = threadIdx.x; i < dim; i += blockDim.x) {
        float d = wide ? wide[row + i] : to_float(dy[row + i]);
        float v = (d - to_float(x[row + i]) / divisor * along) / divisor;
        dx[row + i] = to_element(accumulate ? to_float(dx[row + i]) + v : v);
    }
}
