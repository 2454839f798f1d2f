// Max pooling, the global average, and division of each row by its Euclidean norm. One value (or row) a thread (or
// block); every output is a sum or maximum in a fixed order.

struct Sliding {
    u32 height, width, channels;    // of the input
    u32 out_height, out_width;
    u32 kernel_h, kernel_w, stride_h, stride_w, padding_h, padding_w;
};

extern "C" __global__ void max_pool(const element *x, Sliding s, u64 len, element *y) {
    u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= len) return;
    u32 c = (u32)(at % s.channels);
    u64 place = at / s.channels;
    u32 ox = (u32)(place % s.out_width), oy = (u32)(place / s.out_width % s.out_height);
    u64 picture = place / s.out_width / s.out_height;
    float best = __int_as_float(0xff800000);
    for (u32 i = 0; i < s.kernel_h; i++) {
        int iy = (int)(oy * s.stride_h + i) - (int)s.padding_h;
        if (iy < 0 || iy >= (int)s.height) continue;
        for (u32 j = 0; j < s.kernel_w; j++) {
            int ix = (int)(ox * s.stride_w + j) - (int)s.padding_w;
            if (ix < 0 || ix >= (int)s.width) continue;
            float v = to_float(x[((picture * s.height + iy) * s.width + ix) * s.channels + c]);
            // NaN wins and stays, as in PyTorch.
            if (v > best || v != v) best = v;
        }
    }
    y[at] = to_element(best);
}

// dx (+)= the gradients of the windows whose first maximum is here.
extern "C" __global__ void max_pool_backward(const element *x, const element *y, const element *dy, Sliding s, u64 len,
                                             int accumulate, element *dx) {
    u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= len) return;
    u32 c = (u32)(at % s.channels);
    u64 place = at / s.channels;
    int ix = (int)(place % s.width), iy = (int)(place / s.width % s.height);
    u64 picture = place / s.width / s.height;
    const element *from = x + picture * s.height * s.width * s.channels + c;
    float own = to_float(x[at]), sum = 0.0f;
    // Windows o with o·stride − padding ≤ i < o·stride − padding + kernel.
    int top = iy + (int)s.padding_h, left = ix + (int)s.padding_w;
    int oy0 = top < (int)s.kernel_h ? 0 : (top - (int)s.kernel_h) / (int)s.stride_h + 1;
    int ox0 = left < (int)s.kernel_w ? 0 : (left - (int)s.kernel_w) / (int)s.stride_w + 1;
    for (int oy = oy0; oy < (int)s.out_height && oy * (int)s.stride_h <= top; oy++) {
        for (int ox = ox0; ox < (int)s.out_width && ox * (int)s.stride_w <= left; ox++) {
            u64 o = ((picture * s.out_height + oy) * s.out_width + ox) * s.channels + c;
            if (to_float(y[o]) != own) continue;
            bool first = true;
            for (int wy = oy * (int)s.stride_h - (int)s.padding_h; wy <= iy && first; wy++) {
                int end = wy == iy ? ix : ox * (int)s.stride_w - (int)s.padding_w + (int)s.kernel_w;
                end = end < (int)s.width ? end : (int)s.width;
                int begin = ox * (int)s.stride_w - (int)s.padding_w;
                for (int wx = begin < 0 ? 0 : begin; wx < end && first; wx++) {
                    if (wy >= 0 && to_float(from[((u64)wy * s.width + wx) * s.channels]) == own) first = false;
                }
            }
            if (first) sum += to_float(dy[o]);
        }
    }
    dx[at] = to_element(accumulate ? to_float(dx[at]) + sum : sum);
}

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
