// Transposes a matrix through shared memory.
extern "C" __global__ void transpose(const float* x, float* out, int rows, int columns) {
    __shared__ float tile[32][33];
    int column = blockIdx.x * 32 + threadIdx.x;
    int row = blockIdx.y * 32 + threadIdx.y;
    if (row < rows && column < columns) tile[threadIdx.y][threadIdx.x] = x[row * columns + column];
    __syncthreads();
    int to_column = blockIdx.y * 32 + threadIdx.x;
    int to_row = blockIdx.x * 32 + threadIdx.y;
    if (to_row < columns && to_column < rows) out[to_row * rows + to_column] = tile[threadIdx.x][threadIdx.y];
}
