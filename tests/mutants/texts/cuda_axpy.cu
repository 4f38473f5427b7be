// y + alpha * x, elementwise.
extern "C" __global__ void axpy(const float* x, const float* y, float* out, float alpha, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = y[i] + alpha * x[i];
    }
}
