// y (+)= x where kept, scaled by 1/(1 − p); elsewhere zero, and NaN where x is not finite. Four
// neighbouring values share a block of words, which is drawn from (seed, step, place, block) again
// in the backward pass: `words_block` says which of its place's blocks, by pass and layer. `step`
// is in device memory, already below 2^20; `before` places are other processes'.
extern "C" __global__ void dropout(const element *x, u64 seed, u32 words_block, const u64 *step,
                                   u64 before, float p, int accumulate, u64 len, element *y) {
    RUN_OF_EIGHT(len)
    const u32 stream = 4;
    u32 epoch = (u32)*step;
    float scale = 1.0f / (1.0f - p);
    float v[8], w[8];
    load_some(x + at, n, v);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        u64 place = before + at / 4 + half;
        uint4 counter = make_uint4(words_block, (u32)place, (u32)(place >> 32) | epoch << 8,
                                   stream << 8 | epoch >> 24);
        uint4 words = philox(counter, make_uint2((u32)seed, (u32)(seed >> 32)));
        u32 word[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float unit = (float)(word[i] >> 8) * (1.0f / 16777216.0f);
            v[4 * half + i] = unit < p ? v[4 * half + i] * 0.0f + 0.0f : v[4 * half + i] * scale;
        }
    }
    if (accumulate) {
        load_some(y + at, n, w);
#pragma unroll
        for (int i = 0; i < 8; i++) v[i] += w[i];
    }
    store_some(y + at, n, v);
}
