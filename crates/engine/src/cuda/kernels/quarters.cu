// A picture and its quarters, all of one size (naive/quarters.rs has the maths): rows of `to` are the wholes of all pictures, shrunk
// to half, then every picture's first quarter, and so on, each enlarged to size x size. A thread a value.

static __device__ __forceinline__ void between(u32 at, u32 size, u32 half, u32 *low, u32 *high, float *share) {
    float place = ((float)at + 0.5f) * (float)half / (float)size - 0.5f;
    place = fminf(fmaxf(place, 0.f), (float)(half - 1));
    *low = (u32)place;
    *high = min(*low + 1, half - 1);
    *share = place - (float)*low;
}

extern "C" __global__ void quarters(const float *__restrict__ pixels, u32 pictures, u32 size, u32 channels, float *to) {
    const u64 one = (u64)size * size * channels, at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= 5 * pictures * one) return;
    const u64 row = at / one;
    const u32 place = (u32)(at % one), c = place % channels, x = place / channels % size, y = place / channels / size;
    const u32 view = (u32)(row / pictures), half = size / 2;
    const float *picture = pixels + (row % pictures) * one;
    u32 ys[2], xs[2];
    float fy, fx, values[2][2];
    between(y, size, half, &ys[0], &ys[1], &fy);
    between(x, size, half, &xs[0], &xs[1], &fx);
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 2; j++) {
            if (view == 0) {
                const float *corner = picture + (u64)(2 * ys[i] * size + 2 * xs[j]) * channels + c;
                const u64 below = (u64)size * channels;
                values[i][j] = 0.25f * (corner[0] + corner[channels] + corner[below] + corner[below + channels]);
            } else {
                const u32 down = (view - 1) / 2 * (size - half), across = (view - 1) % 2 * (size - half);
                values[i][j] = picture[(u64)((down + ys[i]) * size + across + xs[j]) * channels + c];
            }
        }
    }
    const float top = values[0][0] * (1.f - fx) + values[0][1] * fx, bottom = values[1][0] * (1.f - fx) + values[1][1] * fx;
    to[at] = top * (1.f - fy) + bottom * fy;
}
