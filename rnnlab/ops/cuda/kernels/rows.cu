// Rows: gathered, scattered, rounded, split, added.

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

union Quad {
    int4 words;
    unsigned bits[4];  // of float32 numbers
};

// The nearest number of TF32, which has the first 19 bits, ties to even; towards zero where the nearest is infinite.
__device__ inline unsigned nearest_tf32(unsigned bits) {
    unsigned rounded = (bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu;
    return (rounded & 0x7f800000u) == 0x7f800000u ? bits & ~0x1fffu : rounded;
}

// Splits float32 numbers in a large and a small one of TF32 and writes three terms of each, see factors.py: the small
// one at `low`, the large one at `high` and once more at `last`. Of numbers that are not finite only the last term is
// not zero. The matrices of x lie `apart` elements apart, their lines `step`; the lines of the terms are filled up with
// zeros to `out_lines` of 4 `quads` numbers, `out_step` apart.
KERNEL(split_tf32)(const float* x, float* out, unsigned matrices, unsigned lines, unsigned length, Size apart, Size step,
                   unsigned out_lines, unsigned quads, Size out_step, Size low, Size high, Size last) {
    bool aligned = ((reinterpret_cast<unsigned long long>(x) | apart * 4 | step * 4) & 15) == 0;
    unsigned start = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
    unsigned quad = start % quads, line = start / quads % out_lines, matrix = start / quads / out_lines;
    unsigned next_quad = stride % quads, next_line = stride / quads % out_lines, next = stride / quads / out_lines;
    while (matrix < matrices) {
        Quad given = {}, small, large, finite;
        if (line < lines) {
            const float* from = x + matrix * apart + line * step + 4 * quad;
            unsigned count = length - 4 * quad;
            if (aligned && count >= 4) {
                given.words = *reinterpret_cast<const int4*>(from);
            } else {
#pragma unroll
                for (unsigned k = 0; k < 4; ++k)
                    if (k < count) given.bits[k] = __float_as_uint(from[k]);
            }
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            unsigned bits = given.bits[k], rounded = nearest_tf32(bits);
            bool is_finite = (bits & 0x7f800000u) != 0x7f800000u, nan = (bits & 0x7fffffffu) > 0x7f800000u;
            float rest = __uint_as_float(bits) - __uint_as_float(rounded);
            small.bits[k] = is_finite ? nearest_tf32(__float_as_uint(rest)) : 0u;
            finite.bits[k] = is_finite ? rounded : 0u;
            large.bits[k] = is_finite ? rounded : nan ? bits | 0x400000u : bits;
        }
        float* to = out + matrix * (12LL * quads * out_lines) + line * out_step + 4 * quad;
        *reinterpret_cast<int4*>(to + low) = small.words;
        *reinterpret_cast<int4*>(to + high) = finite.words;
        *reinterpret_cast<int4*>(to + last) = large.words;
        // The next one, with no division: a quad carries over to the next line, and a line to the next matrix.
        quad += next_quad;
        line += next_line;
        matrix += next;
        if (quad >= quads) {
            quad -= quads;
            ++line;
        }
        if (line >= out_lines) {
            line -= out_lines;
            ++matrix;
        }
    }
}

// Sums of columns: a block has WARP columns and `part` rows, and each warp every so many of these. Writes the sums of
// part k to row k of `out`, or adds them to it, in a fixed order.
BLOCK_KERNEL(column_sums)(const REAL* x, REAL* out, Size rows, Size columns, Size down, Size across, Size part,
                          Size add) {
    SHARED(REAL, of_warps);  // (warps, WARP)
    unsigned tiles = static_cast<unsigned>((columns + WARP - 1) / WARP), index = blockIdx.x / tiles;
    Size lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    Size column = static_cast<Size>(blockIdx.x % tiles) * WARP + lane, first = index * part;
    Size end = first + part < rows ? first + part : rows;
    REAL total = 0;
    if (column < columns) {
        const REAL* from = x + column * across;
#pragma unroll 8
        for (Size row = first + warp; row < end; row += warps) total += from[row * down];
    }
    of_warps[threadIdx.x] = total;
    __syncthreads();
    if (warp > 0 || column >= columns) return;
    for (Size k = 1; k < warps; ++k) total += of_warps[k * WARP + lane];
    REAL* to = out + index * columns + column;
    *to = add ? *to + total : total;
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
