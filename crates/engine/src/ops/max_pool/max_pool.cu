// Max pooling, eight channels a thread where they are a multiple of eight.

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
