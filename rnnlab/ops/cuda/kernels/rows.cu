// Rows: gathered, scattered, rounded, added.

KERNEL(take)(const REAL* x, const Size* rows, REAL* out, Size n, Size columns, Size x_stride, Size out_stride) {
    FOR_EACH(i, n * columns) {
        Size row = i / columns, j = i % columns;
        out[row * out_stride + j] = x[rows[row] * x_stride + j];
    }
}

KERNEL(put)(const REAL* x, const Size* rows, REAL* out, Size n, Size columns, Size x_stride, Size out_stride) {
    FOR_EACH(i, n * columns) {
        Size row = i / columns, j = i % columns;
        out[rows[row] * out_stride + j] = x[row * x_stride + j];
    }
}

// Rounds float32 to bfloat16, the first 16 bits, to nearest even. The matrices lie `apart` elements apart, their
// lines `step`.
KERNEL(to_bfloat16)(const REAL* x, unsigned short* out, Size matrices, Size lines, Size length, Size apart,
                    Size step) {
    FOR_EACH(i, matrices * lines * length) {
        Size line = i / length, matrix = line / lines;
        float value = static_cast<float>(x[matrix * apart + line % lines * step + i % length]);
        unsigned bits = __float_as_uint(value);
        bool nan = value != value;  // rounding could make it infinite
        out[i] = static_cast<unsigned short>(nan ? bits >> 16 | 0x40u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
    }
}

// A block for each position in `tokens`. The block of a token's first position adds the rows of all its positions, in
// order. It lists the positions among as many as it has threads, so that several rows are loaded at a time.
BLOCK_KERNEL(embedding_gradient)(const REAL* dout, const Size* tokens, REAL* dW, Size M, Size columns) {
    SHARED(int, listed);  // (threads,), then the number of positions in each warp's share
    int* of_warp = listed + blockDim.x;
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    for (Size row = blockIdx.x; row < M; row += gridDim.x) {
        Size token = tokens[row];
        int before = 0;
        for (Size j = threadIdx.x; j < row; j += blockDim.x) before |= tokens[j] == token;
        if (__syncthreads_or(before)) continue;
        for (Size start = row; start < M; start += blockDim.x) {
            Size j = start + threadIdx.x;
            int same = j < M && tokens[j] == token;
            unsigned votes = __ballot_sync(0xffffffffu, same);
            int place = __popc(votes & ((1u << lane) - 1));
            if (lane == 0) of_warp[warp] = __popc(votes);
            int count = __syncthreads_count(same);
            if (!count) continue;
            for (int w = 0; w < warp; ++w) place += of_warp[w];
            if (same) listed[place] = static_cast<int>(threadIdx.x);
            __syncthreads();
            for (Size column = threadIdx.x; column < columns; column += blockDim.x) {
                REAL total = dW[token * columns + column];
#pragma unroll 8
                for (int k = 0; k < count; ++k) total += dout[(start + listed[k]) * columns + column];
                dW[token * columns + column] = total;
            }
            __syncthreads();  // before the list is written again
        }
    }
}
