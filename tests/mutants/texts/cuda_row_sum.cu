// Row sums, one block a row.
__inline__ __device__ float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_down_sync(0xffffffffu, value, offset);
    return value;
}

extern "C" __global__ void row_sum(const float* x, float* out, int columns) {
    const float* row = x + (long long)blockIdx.x * columns;
    float partial = 0.0f;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) partial += row[i];
    __shared__ float warps[32];
    partial = warp_sum(partial);
    if ((threadIdx.x & 31) == 0) warps[threadIdx.x >> 5] = partial;
    __syncthreads();
    if (threadIdx.x < 32) {
        partial = threadIdx.x < (blockDim.x >> 5) ? warps[threadIdx.x] : 0.0f;
        partial = warp_sum(partial);
        if (threadIdx.x == 0) out[blockIdx.x] = partial;
    }
}
