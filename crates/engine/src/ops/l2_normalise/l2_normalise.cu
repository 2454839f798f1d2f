// Division of each row by its Euclidean norm, a row a block; every sum is in a fixed order.

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
