// All steps of an LSTM over a chunk in one launch. The sequences are divided into `parts` parts. A block computes
// `units` hidden units of one part's rows, and holds its columns of the recurrent weight in shared memory for all
// steps. The rows alive at a step are the first ones, so that every part has its share of them at every step. The
// blocks of a part wait for each other after each step; different parts need nothing of each other.
//
// Both directions multiply rows, (rows, K), by the block's columns, which come in fours: the four gates of a unit
// in the forward, K = H; four units in the backward, K = 4H. A thread has ROWS rows of four columns, and every
// splits-th quad of k; the splits' sums are added in their order.
//
// What other blocks wrote in the previous step is read past the L1 cache, which does not see their writes.

#define ROWS 4
#define COUNTER_STRIDE 32  // from one part's counter to the next: no two in one cache line

union Words {
    Four four;
    int4 words[sizeof(Four) / sizeof(int4)];
};

template <bool WHOLE>
__device__ inline Four fresh_four(const REAL* x, int left) {
    Words to;
    if (WHOLE) {
        for (int i = 0; i < static_cast<int>(sizeof(Four) / sizeof(int4)); ++i)
            to.words[i] = __ldcg(reinterpret_cast<const int4*>(x) + i);
    } else {
        for (int j = 0; j < 4; ++j) to.four.x[j] = j < left ? __ldcg(x + j) : REAL(0);
    }
    return to.four;
}

// How a block divides a product among its threads.
struct Shares {
    int columns;  // in fours
    int splits;
    int rows;  // at a time
    int K;
    __device__ int fours() const { return (K + 4 * splits - 1) / (4 * splits) * 4 * splits * columns; }
    // Where the weight of row k lies, so that neighbouring threads read neighbouring fours.
    __device__ int place(int k, int column) const {
        int quad = k / 4;
        return ((quad / splits * 4 + k % 4) * splits + quad % splits) * columns + column;
    }
};

template <bool WHOLE>
__device__ inline void multiply_tile(const Shares& shares, const REAL* x, int rows, Size stride, const Four* weight,
                                     Four* sums) {
    int column = threadIdx.x % shares.columns, split = threadIdx.x / shares.columns % shares.splits;
    int first = threadIdx.x / (shares.columns * shares.splits) * ROWS, apart = shares.splits * shares.columns;
    if (first >= rows) return;
    const REAL* row[ROWS];
    Four total[ROWS] = {};
#pragma unroll
    for (int r = 0; r < ROWS; ++r) row[r] = x + (first + r < rows ? first + r : rows - 1) * stride;
    weight += split * shares.columns + column;
#pragma unroll 2
    for (int k = 4 * split; k < shares.K; k += 4 * shares.splits) {
        Four from[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) from[r] = fresh_four<WHOLE>(row[r] + k, shares.K - k);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            Four w = weight[j * apart];
#pragma unroll
            for (int r = 0; r < ROWS; ++r)
#pragma unroll
                for (int n = 0; n < 4; ++n) total[r].x[n] += from[r].x[j] * w.x[n];
        }
        weight += 4 * apart;
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
        if (first + r < rows) sums[(split * shares.rows + first + r) * shares.columns + column] = total[r];
}

// The sums of rows x, `stride` numbers apart, by the block's columns: (splits, shares.rows, columns) of fours.
__device__ inline void multiply(const Shares& shares, const REAL* x, int rows, Size stride, const Four* weight,
                                Four* sums) {
    if (shares.K % 4 == 0 && reinterpret_cast<unsigned long long>(x) % sizeof(int4) == 0)
        multiply_tile<true>(shares, x, rows, stride, weight, sums);
    else
        multiply_tile<false>(shares, x, rows, stride, weight, sums);
}

struct Step {
    Size start;  // of its rows in packed arrays
    Size before, after;  // the start of the states
    Size alive;  // how many rows
};

// How many of the rows that are alive belong to a part.
__device__ inline int rows_of(Size part, Size parts, const Step& step) {
    return static_cast<int>(step.alive > part ? (step.alive - part + parts - 1) / parts : 0);
}

GRID_KERNEL(lstm_steps_forward)(REAL* gates, REAL* h, REAL* c, REAL* tanh_c, const REAL* Wh, const Size* places,
                                unsigned* counter, Size T, Size H, Size stride, Size column_stride, Size units,
                                Size parts, Size rows, Size splits) {
    SHARED(Four, weight);
    Shares shares = {static_cast<int>(units), static_cast<int>(splits), static_cast<int>(rows), static_cast<int>(H)};
    Four* sums = weight + shares.fours();
    unsigned groups = gridDim.x / static_cast<unsigned>(parts);
    Size part = blockIdx.x / groups, first = blockIdx.x % groups * units;
    counter += part * COUNTER_STRIDE;
    for (int i = threadIdx.x; i < shares.fours(); i += blockDim.x) {
        int own = i % shares.columns, k = i / shares.columns;
        Four w = {};
        if (k < shares.K && first + own < H)
            for (int n = 0; n < 4; ++n) w.x[n] = Wh[k * stride + (n * H + first + own) * column_stride];
        weight[shares.place(k, own)] = w;
    }
    __syncthreads();
    int own = threadIdx.x % shares.columns, own_row = threadIdx.x / shares.columns;
    Size unit = first + own;
    const Step* steps = reinterpret_cast<const Step*>(places);
    Step step = steps[0], next = step;
    for (Size t = 0; t < T; ++t, step = next) {
        if (t) part_barrier(counter, groups, static_cast<unsigned>(t));
        if (t + 1 < T) next = steps[t + 1];  // prefetched
        int alive = rows_of(part, parts, step);
        for (int done = 0; done < alive; done += shares.rows) {
            int left = min(alive - done, shares.rows);
            bool mine = own_row < left && unit < H;
            Size row = part + (done + own_row) * parts;
            REAL* a = gates + (step.start + row) * 4 * H + unit;
            Four gate = {};
            REAL now = 0;
            if (mine) {  // loaded while the product is computed
                for (int n = 0; n < 4; ++n) gate.x[n] = a[n * H];
                now = c[(step.before + row) * H + unit];
            }
            multiply(shares, h + (step.before + part + done * parts) * H, left, parts * H, weight, sums);
            __syncthreads();
            if (mine) {
                for (int split = 0; split < shares.splits; ++split) {
                    Four sum = sums[(split * shares.rows + own_row) * shares.columns + own];
                    for (int n = 0; n < 4; ++n) gate.x[n] += sum.x[n];
                }
                for (int n = 0; n < 4; ++n) a[n * H] = gate.x[n] = n < 3 ? sigmoid_of(gate.x[n]) : tanh(gate.x[n]);
                now = gate.x[1] * now + gate.x[0] * gate.x[3];
                REAL squashed = tanh(now);
                c[(step.after + row) * H + unit] = now;
                tanh_c[(step.start + row) * H + unit] = squashed;
                h[(step.after + row) * H + unit] = gate.x[2] * squashed;
            }
            __syncthreads();  // before the sums are written again
        }
    }
}

// A block computes da of its units from dh of its units. The next dh of its units needs da of all units, which it reads
// after a barrier. So there is one barrier a step, and dh never leaves the block.
GRID_KERNEL(lstm_steps_backward)(const REAL* dh, REAL* dstate, REAL* dcell, const REAL* gates, const REAL* c,
                                 const REAL* tanh_c, REAL* da, const REAL* to_h, const Size* places,
                                 unsigned* counter, Size T, Size H, Size stride, Size column_stride, Size units,
                                 Size parts, Size rows, Size splits) {
    SHARED(Four, weight);
    Shares shares = {static_cast<int>(units) / 4, static_cast<int>(splits), static_cast<int>(rows),
                     static_cast<int>(4 * H)};
    Four* sums = weight + shares.fours();
    unsigned groups = gridDim.x / static_cast<unsigned>(parts);
    Size part = blockIdx.x / groups, first = blockIdx.x % groups * units;
    counter += part * COUNTER_STRIDE;
    int all_k = shares.fours() / shares.columns;
    for (int i = threadIdx.x; i < shares.fours(); i += blockDim.x) {
        int k = i % all_k, column = i / all_k;
        Four w = {};
        for (int n = 0; n < 4; ++n)
            if (k < shares.K && first + 4 * column + n < H)
                w.x[n] = to_h[k * stride + (first + 4 * column + n) * column_stride];
        weight[shares.place(k, column)] = w;
    }
    __syncthreads();
    int own = threadIdx.x % static_cast<int>(units), own_row = threadIdx.x / static_cast<int>(units);
    Size unit = first + own;
    const Step* steps = reinterpret_cast<const Step*>(places);
    Size origin = steps[0].start;  // of the chunk
    Step step = steps[T - 1], later = {}, earlier = step;
    for (Size t = T - 1; t >= -1; --t, later = step, step = earlier) {
        // First the gradient of the states after step t: the product with da of the later step, for the rows alive
        // there. Then da of step t; t = -1 has none, only the gradient of the states before the chunk.
        if (t < T - 1) part_barrier(counter, groups, static_cast<unsigned>(T - 1 - t));
        if (t > 0) earlier = steps[t - 1];  // prefetched
        int known = rows_of(part, parts, later), alive = t < 0 ? known : rows_of(part, parts, step);
        for (int done = 0; done < alive; done += shares.rows) {
            int left = min(alive - done, shares.rows), multiplied = max(0, min(known - done, shares.rows));
            bool mine = own_row < left && unit < H;
            Size row = part + (done + own_row) * parts, here = (step.start + row) * H + unit;
            const REAL* a = gates + (step.start + row) * 4 * H + unit;
            Four gate = {};
            REAL dnow = 0, dc = 0, prev_c = 0, squashed = 0;
            if (mine && t >= 0) {  // loaded while the product is computed
                for (int n = 0; n < 4; ++n) gate.x[n] = a[n * H];
                prev_c = c[(step.before + row) * H + unit];
                squashed = tanh_c[here];
                dnow = dh[here - origin * H];
                dc = dcell[row * H + unit];
                if (own_row >= multiplied) dnow += dstate[row * H + unit];
            }
            if (multiplied)
                multiply(shares, da + (later.start - origin + part + done * parts) * shares.K, multiplied,
                         parts * shares.K, weight, sums);
            __syncthreads();
            if (mine && own_row < multiplied) {
                const REAL* sum = reinterpret_cast<const REAL*>(sums) + own_row * units + own;
                for (int split = 0; split < shares.splits; ++split) dnow += sum[split * shares.rows * units];
            }
            if (mine && t < 0) {
                dstate[row * H + unit] = dnow;
            } else if (mine) {
                REAL in = gate.x[0], f = gate.x[1], o = gate.x[2], g = gate.x[3];
                REAL* d = da + (step.start - origin + row) * shares.K + unit;
                dc += dnow * o * (REAL(1) - squashed * squashed);
                d[0] = dc * g * in * (REAL(1) - in);
                d[H] = dc * prev_c * f * (REAL(1) - f);
                d[2 * H] = dnow * squashed * o * (REAL(1) - o);
                d[3 * H] = dc * in * (REAL(1) - g * g);
                dcell[row * H + unit] = dc * f;
            }
            __syncthreads();  // before the sums are written again
        }
    }
}
