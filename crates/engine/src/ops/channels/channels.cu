// Channel c of a place of y (+)= channel c + `first` of x where there is one, else zero. A thread for each value of y.
extern "C" __global__ void channels(const element *x, u32 from, int first, u32 to, int accumulate, u64 len, element *y) {
    u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= len) return;
    int c = (int)(at % to) + first;
    float v = c >= 0 && c < (int)from ? to_float(x[at / to * from + c]) : 0.0f;
    y[at] = to_element(accumulate ? to_float(y[at]) + v : v);
}
