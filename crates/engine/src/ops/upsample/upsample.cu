// Each place becomes 2×2; the input is so wide. Rows of one picture follow those of the one before: doubled, they still do.
extern "C" __global__ void upsample(const element *x, u32 width, u32 channels, u64 len, element *y) {
    u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= len) return;
    u64 place = at / channels, row = place / (2 * width);
    u32 column = (u32)(place % (2 * width));
    y[at] = x[(row / 2 * width + column / 2) * channels + at % channels];
}

// dx (+)= the sum of the four.
extern "C" __global__ void upsample_backward(const element *dy, u32 width, u32 channels, u64 len, int accumulate, element *dx) {
    u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= len) return;
    u64 place = at / channels, line = 2 * (u64)width * channels;
    const element *from = dy + place / width * 2 * line + place % width * 2 * channels + at % channels;
    float upper = to_float(from[0]) + to_float(from[channels]), lower = to_float(from[line]) + to_float(from[line + channels]);
    dx[at] = to_element((accumulate ? to_float(dx[at]) : 0.0f) + (upper + lower));
}
