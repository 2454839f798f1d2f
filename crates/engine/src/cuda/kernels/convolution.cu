// Convolutions by plain loops, for the shapes cuDNN does not take: few channels, odd ones, unusual windows. NHWC, weights
// OHWI, sums in f32 in a fixed order.

// The places that a 1×1 window of some stride reads, one after the other. Eight channels a thread.
extern "C" __global__ void gather(const element *x, Window s, u64 eights, element *y) {
    u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= eights) return;
    PlaceInPicture to = place_in(s.out_height, s.out_width, s.channels, 8 * at);
    float v[8];
    load8(x + input_at(s, to.picture, to.y * s.stride_h, to.x * s.stride_w) + to.c, v);
    store8(y + 8 * at, v);
}

// Back to where they came from: x (+)= y there; elsewhere x is 0, unless it is added to.
extern "C" __global__ void scatter(const element *y, Window s, u64 eights, int accumulate, element *x) {
    u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= eights) return;
    PlaceInPicture of = place_in_input(s, 8 * at);
    bool there = of.y % s.stride_h == 0 && of.x % s.stride_w == 0;
    if (!there && accumulate) return;
    float v[8] = {}, before[8];
    u64 place = (of.picture * s.out_height + of.y / s.stride_h) * s.out_width + of.x / s.stride_w;
    if (there) load8(y + place * s.channels + of.c, v);
    if (accumulate) {
        load8(x + 8 * at, before);
#pragma unroll
        for (int i = 0; i < 8; i++) v[i] += before[i];
    }
    store8(x + 8 * at, v);
}

extern "C" __global__ void direct_forward(const element *x, const element *w, Window s, u64 len, element *y) {
    u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= len) return;
    PlaceInPicture to = place_in(s.out_height, s.out_width, s.out_channels, at);
    float sum = 0.0f;
    for (u32 i = 0; i < s.kernel_h; i++) {
        int iy = to.y * (int)s.stride_h + (int)i - (int)s.padding_h;
        if (iy < 0 || iy >= (int)s.height) continue;
        for (u32 j = 0; j < s.kernel_w; j++) {
            int ix = to.x * (int)s.stride_w + (int)j - (int)s.padding_w;
            if (ix < 0 || ix >= (int)s.width) continue;
            const element *from = x + input_at(s, to.picture, iy, ix);
            const element *tap = w + (((u64)to.c * s.kernel_h + i) * s.kernel_w + j) * s.channels;
            for (u32 c = 0; c < s.channels; c++) sum += to_float(from[c]) * to_float(tap[c]);
        }
    }
    y[at] = to_element(sum);
}

// dx (+)= the gradient of the input.
extern "C" __global__ void direct_input_gradient(const element *w, const element *dy, Window s, u64 len, int accumulate,
                                                 element *dx) {
    u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= len) return;
    PlaceInPicture of = place_in_input(s, at);
    float sum = 0.0f;
    for (u32 i = 0; i < s.kernel_h; i++) {
        int top = of.y + (int)s.padding_h - (int)i;
        if (top < 0 || top % (int)s.stride_h != 0 || top / s.stride_h >= s.out_height) continue;
        for (u32 j = 0; j < s.kernel_w; j++) {
            int left = of.x + (int)s.padding_w - (int)j;
            if (left < 0 || left % (int)s.stride_w != 0 || left / s.stride_w >= s.out_width) continue;
            const element *d = dy + output_at(s, of.picture, top / s.stride_h, left / s.stride_w);
            const element *tap = w + ((u64)i * s.kernel_w + j) * s.channels + of.c;
            u64 step = (u64)s.kernel_h * s.kernel_w * s.channels;
            for (u32 o = 0; o < s.out_channels; o++) sum += to_float(d[o]) * to_float(tap[o * step]);
        }
    }
    dx[at] = to_element(accumulate ? to_float(dx[at]) + sum : sum);
}

// dw = the gradient of one weight, a block of 128 threads each.
extern "C" __global__ void direct_weight_gradient(const element *x, const element *dy, Window s, u32 batch, element *dw) {
    __shared__ float shared[4];
    u64 at = blockIdx.x;
    u32 c = (u32)(at % s.channels);
    u32 j = (u32)(at / s.channels % s.kernel_w), i = (u32)(at / s.channels / s.kernel_w % s.kernel_h);
    u32 o = (u32)(at / s.channels / s.kernel_w / s.kernel_h);
    u64 places = (u64)batch * s.out_height * s.out_width;
    float sum = 0.0f;
    for (u64 place = threadIdx.x; place < places; place += blockDim.x) {
        PlaceInPicture to = place_in(s.out_height, s.out_width, 1, place);
        int iy = to.y * (int)s.stride_h + (int)i - (int)s.padding_h;
        int ix = to.x * (int)s.stride_w + (int)j - (int)s.padding_w;
        if (iy < 0 || iy >= (int)s.height || ix < 0 || ix >= (int)s.width) continue;
        sum += to_float(x[input_at(s, to.picture, iy, ix) + c]) * to_float(dy[place * s.out_channels + o]);
    }
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) dw[at] = to_element(shared[0] + shared[1] + shared[2] + shared[3]);
}
