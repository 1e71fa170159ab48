// Products with a matrix of few columns D, such as pixels one by one: reading the other matrix is all that takes time.

#define NARROW 4   // columns at most
#define SLABS 256  // of rows, each with a sum of its own

// out (rows, G) = x (rows, D) w (D, G) + b. A step is the distance from one row to the next, or of columns.
KERNEL(narrow_affine)(const REAL* x, const REAL* w, const REAL* b, REAL* out, Size rows, Size D, Size G, Size x_step,
                      Size w_step, Size w_column_step, Size out_step) {
    for (Size column = threadIdx.x; column < G; column += blockDim.x) {
        REAL own[NARROW] = {}, bias = b[column];
        for (int d = 0; d < NARROW; ++d)
            if (d < D) own[d] = w[d * w_step + column * w_column_step];
#pragma unroll 4
        for (Size row = blockIdx.x; row < rows; row += gridDim.x) {
            REAL a = bias;
            for (int d = 0; d < NARROW; ++d)
                if (d < D) a += x[row * x_step + d] * own[d];
            out[row * out_step + column] = a;
        }
    }
}

// out (rows, D) = x (rows, K) w (K, D). A warp has a row at a time.
BLOCK_KERNEL(narrow_product)(const REAL* x, const REAL* w, REAL* out, Size rows, Size K, Size D, Size x_step,
                             Size w_step, Size w_column_step, Size out_step) {
    int lane = threadIdx.x % WARP, warps = blockDim.x / WARP;
    for (Size row = static_cast<Size>(blockIdx.x) * warps + threadIdx.x / WARP; row < rows;
         row += static_cast<Size>(gridDim.x) * warps) {
        REAL sums[NARROW] = {};
#pragma unroll 4
        for (Size k = lane; k < K; k += WARP) {
            REAL value = x[row * x_step + k];
            for (int d = 0; d < NARROW; ++d)
                if (d < D) sums[d] += value * w[k * w_step + d * w_column_step];
        }
        for (int d = 0; d < NARROW; ++d) {
            if (d >= D) break;
            REAL sum = warp_sum(sums[d]);
            if (lane == 0) out[row * out_step + d] = sum;
        }
    }
}

// slabs (SLABS, D + 1, G): x^T dout and the column sums of dout (rows, G), of every SLABS-th row.
KERNEL(narrow_gradients)(const REAL* dout, REAL* slabs, const REAL* x, Size rows, Size D, Size G, Size dout_step,
                         Size x_step) {
    for (Size column = threadIdx.x; column < G; column += blockDim.x) {
        REAL sums[NARROW + 1] = {};
#pragma unroll 8
        for (Size row = blockIdx.x; row < rows; row += SLABS) {
            REAL value = dout[row * dout_step + column];
            for (int d = 0; d < NARROW; ++d)
                if (d < D) sums[d] += x[row * x_step + d] * value;
            sums[NARROW] += value;
        }
        REAL* own = slabs + blockIdx.x * (D + 1) * G + column;
        for (int d = 0; d < NARROW; ++d)
            if (d < D) own[d * G] = sums[d];
        own[D * G] = sums[NARROW];
    }
}
