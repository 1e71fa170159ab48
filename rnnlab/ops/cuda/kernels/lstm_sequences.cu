// All steps of an LSTM over a chunk in one launch, whole sequences in a block. A block has BLOCK_ROWS sequences and
// holds the whole recurrent weight for all steps, in registers and, where they are too few, in shared memory. It
// computes everything that its next step reads, so that no block waits for another.
//
// This file is compiled for each BLOCK_ROWS, QUADS and HELD. A product has rows x (BLOCK_ROWS, K) and the weight
// (K, columns): K = H and the columns are the gates in the forward, K = 4 H and the columns are the units in the
// backward. A thread has eight columns, and QUADS quads of k: every SPLITS-th one. The weights of HELD of its 4 QUADS
// k's are in registers, first those of the first k in every quad. The others are in shared memory.
//
// SPLITS neighbouring lanes add up their sums by shuffles: each gives half of its columns to another lane and keeps the
// other half, until it has its own columns alone. It keeps its columns in such an order that those come first.
//
// For H = 128 in float32 a multiprocessor takes 512 cycles to multiply a row by the 64 K weights, and 64 cycles to read
// those of one k of each thread from shared memory.

#define SEQUENCE_THREADS 256  // of a block at most, so that each has 255 registers
#define COLUMNS 8             // of the weight in a thread
#define FORWARD_SPLITS 4      // threads with the same columns: 4 x 8 are the gates of two units
#define BACKWARD_SPLITS 16    // threads with the same 8 units

struct Held {
    static constexpr int rest = (4 * QUADS - HELD) * 2 * SEQUENCE_THREADS;  // fours in shared memory
    REAL x[HELD][COLUMNS];
};

// The steps of a chunk. The rows alive at a step are the first ones. In packed arrays they follow those of the step
// before.
struct Sequences {
    const Size* table;  // null if all steps have the same rows
    int T;
    int start, before, after, alive;  // of the first step: its first row in packed arrays, in the states before and
                                      // after it, and the number of rows

    __device__ int alive_at(int t) const {
        return table ? static_cast<int>(table[4 * static_cast<Size>(t) + 3]) : alive;
    }
    __device__ int start_at(int t) const {
        return table ? static_cast<int>(table[4 * static_cast<Size>(t)]) : start + t * alive;
    }

    // How many steps a row has.
    __device__ int steps_of(int row) const {
        if (!table) return T;
        int low = 0, high = T;
        while (low < high) {
            int middle = (low + high) / 2;
            if (alive_at(middle) > row)
                low = middle + 1;
            else
                high = middle;
        }
        return low;
    }
};

// The weights of a place, which is a constant where this is inlined.
__device__ __forceinline__ void weights_of(int place, const Held& held, const Four* rest, REAL (&w)[COLUMNS]) {
    if (place < HELD) {
#pragma unroll
        for (int slot = 0; slot < COLUMNS; ++slot) w[slot] = held.x[place][slot];
    } else {
        rest += (place - HELD) * 2 * SEQUENCE_THREADS;
        Four first = rest[0], second = rest[SEQUENCE_THREADS];
#pragma unroll
        for (int slot = 0; slot < 4; ++slot) w[slot] = first.x[slot], w[4 + slot] = second.x[slot];
    }
}

// The sums over the thread's share of the weight, for each row of x. A quad of x and the weights of the last k in a
// quad are loaded ahead.
template <int SPLITS>
__device__ __forceinline__ void multiply_share(const REAL* const (&x)[BLOCK_ROWS], const Held& held,
                                               const Four* rest, REAL (&sums)[BLOCK_ROWS][COLUMNS]) {
    Four from[BLOCK_ROWS], ahead[BLOCK_ROWS];
    REAL last[COLUMNS];
#pragma unroll
    for (int r = 0; r < BLOCK_ROWS; ++r) {
        ahead[r] = *reinterpret_cast<const Four*>(x[r]);
#pragma unroll
        for (int slot = 0; slot < COLUMNS; ++slot) sums[r][slot] = REAL(0);
    }
    weights_of(3 * QUADS, held, rest, last);
#pragma unroll
    for (int quad = 0; quad < QUADS; ++quad) {
#pragma unroll
        for (int r = 0; r < BLOCK_ROWS; ++r) {
            from[r] = ahead[r];
            if (quad + 1 < QUADS) ahead[r] = *reinterpret_cast<const Four*>(x[r] + 4 * SPLITS * (quad + 1));
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            REAL w[COLUMNS];
            if (k < 3) {
                weights_of(k * QUADS + quad, held, rest, w);
            } else {
#pragma unroll
                for (int slot = 0; slot < COLUMNS; ++slot) w[slot] = last[slot];
            }
#pragma unroll
            for (int r = 0; r < BLOCK_ROWS; ++r)
#pragma unroll
                for (int slot = 0; slot < COLUMNS; ++slot) sums[r][slot] += from[r].x[k] * w[slot];
        }
        if (quad + 1 < QUADS) weights_of(3 * QUADS + quad + 1, held, rest, last);
    }
}

// Loads a thread's share of the weight. `columns` are where its columns are in a row, -1 for those that do not exist.
template <int SPLITS>
__device__ __forceinline__ void load_share(const REAL* weight, const int (&columns)[COLUMNS], int split, int K,
                                           int stride, Held& held, Four* rest) {
    int k = 4 * split;
    weight += k * stride;
#pragma unroll
    for (int quad = 0; quad < QUADS; ++quad) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            REAL w[COLUMNS];
#pragma unroll
            for (int slot = 0; slot < COLUMNS; ++slot)
                w[slot] = k < K && columns[slot] >= 0 ? weight[columns[slot]] : REAL(0);
            const int place = j * QUADS + quad;
            if (place < HELD) {
#pragma unroll
                for (int slot = 0; slot < COLUMNS; ++slot) held.x[place][slot] = w[slot];
            } else {
                Four* here = rest + (place - HELD) * 2 * SEQUENCE_THREADS;
                here[0] = {w[0], w[1], w[2], w[3]};
                here[SEQUENCE_THREADS] = {w[4], w[5], w[6], w[7]};
            }
            int step = j < 3 ? 1 : 4 * SPLITS - 3;
            k += step;
            weight += step * stride;
            __syncthreads();  // or the compiler moves loads to where it has no registers for them
        }
    }
}

// Adds up over the lanes that differ in `bit`: the first half of the columns is kept, the second is the other lane's.
template <int HALF>
__device__ __forceinline__ void exchange(REAL (&sums)[COLUMNS], int bit) {
#pragma unroll
    for (int slot = 0; slot < HALF; ++slot) sums[slot] += __shfl_xor_sync(0xffffffffu, sums[HALF + slot], bit);
}

// Four lanes have the gates of two units: lanes 0 and 1 those of the first unit, lanes 2 and 3 those of the second. The
// even lane has i and g. The odd lane has f and o, and the cell.
__device__ inline void sequences_forward(REAL* gates, REAL* h, REAL* c, REAL* tanh_c, const REAL* Wh,
                                         const Sequences& sequences, int H, int stride, int column_stride,
                                         Four* rest) {
    constexpr int K = 4 * FORWARD_SPLITS * QUADS;
    REAL* states = reinterpret_cast<REAL*>(rest + Held::rest);  // (2, BLOCK_ROWS, K): before and after a step
    rest += threadIdx.x;
    int split = threadIdx.x % FORWARD_SPLITS, pair = threadIdx.x / FORWARD_SPLITS;
    int first = blockIdx.x * BLOCK_ROWS, unit = 2 * pair + split / 2;
    bool has_cell = split % 2;  // the lane with f and o
    Held held;
    {
        int columns[COLUMNS];
        int flip = split / 2 * 4 + split % 2 * 2;
#pragma unroll
        for (int slot = 0; slot < COLUMNS; ++slot) {
            int column = slot ^ flip, of = 2 * pair + column / 4;
            int gate = column % 4 < 2 ? column % 4 * 3 : column % 4 - 1;  // i, g, f, o
            columns[slot] = of < H ? (gate * H + of) * column_stride : -1;
        }
        load_share<FORWARD_SPLITS>(Wh, columns, split, H, stride, held, rest);
    }
    int alive = sequences.alive, count = sequences.steps_of(first);
    for (int i = threadIdx.x; i < 2 * BLOCK_ROWS * K; i += blockDim.x) {
        int row = first + i / K, k = i % K;
        bool given = i < BLOCK_ROWS * K && row < alive && k < H;
        states[i] = given ? h[static_cast<Size>(sequences.before + row) * H + k] : REAL(0);
    }
    // A lane's pre-activations of a row begin at `mine`; its second gate is `apart` further.
    int width = 4 * H, apart = has_cell ? H : 3 * H;
    REAL* mine = gates + has_cell * H + unit;
    REAL now[BLOCK_ROWS], next[BLOCK_ROWS][2] = {};
    int row = sequences.start + first, to_state = sequences.after - sequences.start;
    c += unit, tanh_c += unit, h += unit;
#pragma unroll
    for (int r = 0; r < BLOCK_ROWS; ++r) {
        bool here = unit < H && first + r < alive;
        now[r] = here && has_cell ? c[static_cast<Size>(sequences.before + first + r) * H] : REAL(0);
        const REAL* a = mine + static_cast<Size>(row + r) * width;
        if (here) next[r][0] = a[0], next[r][1] = a[apart];
    }
    int next_alive = count > 1 ? sequences.alive_at(1) : 0;
    __syncthreads();
    for (int t = 0; t < count; ++t) {
        int after_next = t + 2 < count ? sequences.alive_at(t + 2) : 0;
        REAL pre[BLOCK_ROWS][2];
        const REAL* from[BLOCK_ROWS];
#pragma unroll
        for (int r = 0; r < BLOCK_ROWS; ++r) {
            pre[r][0] = next[r][0], pre[r][1] = next[r][1];
            const REAL* a = mine + static_cast<Size>(row + alive + r) * width;
            if (unit < H && first + r < next_alive) next[r][0] = a[0], next[r][1] = a[apart];
            from[r] = states + ((t & 1) * BLOCK_ROWS + r) * K + 4 * split;
        }
        REAL sums[BLOCK_ROWS][COLUMNS];
        multiply_share<FORWARD_SPLITS>(from, held, rest, sums);
        REAL squashed[BLOCK_ROWS], after[BLOCK_ROWS];
        REAL* to = states + (t + 1 & 1) * BLOCK_ROWS * K + unit;
#pragma unroll
        for (int r = 0; r < BLOCK_ROWS; ++r) {
            exchange<4>(sums[r], 2);
            exchange<2>(sums[r], 1);
            pre[r][0] = sigmoid_of(pre[r][0] + sums[r][0]);
            pre[r][1] += sums[r][1];
            pre[r][1] = has_cell ? sigmoid_of(pre[r][1]) : tanh(pre[r][1]);  // o or g
            REAL added = __shfl_xor_sync(0xffffffffu, pre[r][0] * pre[r][1], 1);  // i g
            now[r] = pre[r][0] * now[r] + added;
            squashed[r] = tanh(now[r]);
            after[r] = pre[r][1] * squashed[r];
            if (has_cell && unit < H) to[r * K] = after[r];
        }
        __syncthreads();
#pragma unroll
        for (int r = 0; r < BLOCK_ROWS; ++r) {
            if (unit >= H || first + r >= alive) continue;
            REAL* a = mine + static_cast<Size>(row + r) * width;
            a[0] = pre[r][0];
            a[apart] = pre[r][1];
            if (has_cell) {
                tanh_c[static_cast<Size>(row + r) * H] = squashed[r];
                c[static_cast<Size>(to_state + row + r) * H] = now[r];
                h[static_cast<Size>(to_state + row + r) * H] = after[r];
            }
        }
        row += alive;
        alive = next_alive;
        next_alive = after_next;
    }
}

// What the backward of a step reads of a row and unit.
struct Loaded {
    REAL in, f, o, g, prev_c, squashed, dh;
};

// `row` of packed arrays, `before` of states, `here` of dh; the arrays begin at the unit.
__device__ __forceinline__ Loaded loaded(const REAL* dh, const REAL* gates, const REAL* c, const REAL* tanh_c, int row,
                                         int before, int here, int H) {
    const REAL* a = gates + static_cast<Size>(row) * (4 * H);
    return {a[0], a[H], a[2 * H], a[3 * H], c[static_cast<Size>(before) * H], tanh_c[static_cast<Size>(row) * H],
            dh[static_cast<Size>(here) * H]};
}

// What da of a step is, as multiples of the gradients of h and c.
struct Factors {
    REAL dh, c;             // the gradient of h, and the share of c in it
    REAL in, f, g, forget;  // of the gradient of c
    REAL o;                 // of that of h
};

__device__ __forceinline__ Factors factors_of(const Loaded& x) {
    return {x.dh,
            x.o * (REAL(1) - x.squashed * x.squashed),
            x.g * x.in * (REAL(1) - x.in),
            x.prev_c * x.f * (REAL(1) - x.f),
            x.in * (REAL(1) - x.g * x.g),
            x.f,
            x.squashed * x.o * (REAL(1) - x.o)};
}

// Sixteen lanes have eight units: a lane ends with unit split % 8 of its rows. Lanes 8 to 15 have the second half of
// the rows. If there is one row, they compute the same as lanes 0 to 7 and write nothing.
__device__ inline void sequences_backward(const REAL* dh, REAL* dstate, REAL* dcell, const REAL* gates,
                                          const REAL* c, const REAL* tanh_c, REAL* da, const REAL* to_h,
                                          const Sequences& sequences, int H, int stride, int column_stride,
                                          Four* rest) {
    constexpr int K = 4 * BACKWARD_SPLITS * QUADS, OWN = BLOCK_ROWS > 1 ? BLOCK_ROWS / 2 : 1;
    REAL* gradients = reinterpret_cast<REAL*>(rest + Held::rest);  // (2, BLOCK_ROWS, K): da of two steps
    rest += threadIdx.x;
    int split = threadIdx.x % BACKWARD_SPLITS, group = threadIdx.x / BACKWARD_SPLITS;
    int high = split / 8, unit = 8 * group + split % 8, first = blockIdx.x * BLOCK_ROWS;
    int half = BLOCK_ROWS > 1 ? high * OWN : 0, own = first + half;  // the lane's rows are own, own + 1, ...
    bool writes = unit < H && (BLOCK_ROWS > 1 || !high);
    Held held;
    {
        int columns[COLUMNS];
#pragma unroll
        for (int slot = 0; slot < COLUMNS; ++slot) {
            int of = 8 * group + (slot ^ split % 8);
            columns[slot] = of < H ? of * column_stride : -1;
        }
        load_share<BACKWARD_SPLITS>(to_h, columns, split, 4 * H, stride, held, rest);
    }
    for (int i = threadIdx.x; i < 2 * BLOCK_ROWS * K; i += blockDim.x) gradients[i] = REAL(0);
    int count = sequences.steps_of(first), origin = sequences.start, to_state = sequences.after - origin;
    dh += unit, gates += unit, c += unit, tanh_c += unit, da += unit, dstate += unit, dcell += unit;
    // The rows alive at this step and at the two before it; the lane's first row at this step and at the one before it.
    int last = count - 1, alive = sequences.alive_at(last);
    int next_alive = last > 0 ? sequences.alive_at(last - 1) : 0;
    int after_next = last > 1 ? sequences.alive_at(last - 2) : 0;
    int row = sequences.start_at(last) + own, next_row = row - next_alive;
    Loaded next[OWN] = {};
    REAL carried[OWN], dc[OWN];  // the gradients of the states after a row's last step
#pragma unroll
    for (int r = 0; r < OWN; ++r) {
        bool here = unit < H && own + r < sequences.alive;
        carried[r] = here ? dstate[static_cast<Size>(own + r) * H] : REAL(0);
        dc[r] = here ? dcell[static_cast<Size>(own + r) * H] : REAL(0);
        int before = last > 0 ? to_state + next_row : sequences.before + own;
        if (unit < H && own + r < alive)
            next[r] = loaded(dh, gates, c, tanh_c, row + r, before + r, row - origin + r, H);
    }
    __syncthreads();
    for (int t = last;; --t) {
        int incoming = t > 2 ? sequences.alive_at(t - 3) : 0;
        int before = t > 1 ? to_state + next_row - after_next : sequences.before + own;
        Factors factors[OWN];
#pragma unroll
        for (int r = 0; r < OWN; ++r) {
            factors[r] = factors_of(next[r]);
            if (t > 0 && unit < H && own + r < next_alive)
                next[r] = loaded(dh, gates, c, tanh_c, next_row + r, before + r, next_row - origin + r, H);
        }
        const REAL* from[BLOCK_ROWS];
#pragma unroll
        for (int r = 0; r < BLOCK_ROWS; ++r)
            from[r] = gradients + ((t & 1) * BLOCK_ROWS + (r ^ half)) * K + 4 * split;
        REAL sums[BLOCK_ROWS][COLUMNS];
        multiply_share<BACKWARD_SPLITS>(from, held, rest, sums);
        if (BLOCK_ROWS > 1) {
#pragma unroll
            for (int r = 0; r < OWN; ++r)
#pragma unroll
                for (int slot = 0; slot < COLUMNS; ++slot)
                    sums[r][slot] += __shfl_xor_sync(0xffffffffu, sums[BLOCK_ROWS - OWN + r][slot], 8);
        }
#pragma unroll
        for (int r = 0; r < OWN; ++r) {
            exchange<4>(sums[r], 4);
            exchange<2>(sums[r], 2);
            exchange<1>(sums[r], 1);
            if (BLOCK_ROWS == 1) sums[r][0] += __shfl_xor_sync(0xffffffffu, sums[r][0], 8);
        }
        if (t < 0) {
#pragma unroll
            for (int r = 0; r < OWN; ++r) {
                if (!writes || own + r >= sequences.alive) continue;
                dstate[static_cast<Size>(own + r) * H] = sums[r][0];
                dcell[static_cast<Size>(own + r) * H] = dc[r];
            }
            return;
        }
        REAL* to = gradients + (t + 1 & 1) * BLOCK_ROWS * K + half * K + unit;
        REAL d[OWN][4];
#pragma unroll
        for (int r = 0; r < OWN; ++r) {
            if (own + r >= alive) continue;
            const Factors& factor = factors[r];
            REAL dnow = sums[r][0] + (factor.dh + carried[r]);
            carried[r] = REAL(0);
            dc[r] += dnow * factor.c;
            d[r][0] = dc[r] * factor.in;
            d[r][1] = dc[r] * factor.f;
            d[r][2] = dnow * factor.o;
            d[r][3] = dc[r] * factor.g;
            dc[r] *= factor.forget;
            if (writes)
#pragma unroll
                for (int n = 0; n < 4; ++n) to[r * K + n * H] = d[r][n];
        }
        __syncthreads();
#pragma unroll
        for (int r = 0; r < OWN; ++r) {
            if (!writes || own + r >= alive) continue;
            REAL* here = da + static_cast<Size>(row - origin + r) * (4 * H);
#pragma unroll
            for (int n = 0; n < 4; ++n) here[n * H] = d[r][n];
        }
        row = next_row;
        next_row -= after_next;
        alive = next_alive;
        next_alive = after_next;
        after_next = incoming;
    }
}

BLOCK_KERNEL(lstm_sequences_forward)(REAL* gates, REAL* h, REAL* c, REAL* tanh_c, const REAL* Wh, const Size* table,
                                     Size T, Size H, Size stride, Size column_stride, Size start, Size before,
                                     Size after, Size alive) {
    SHARED(Four, shared);
    Sequences sequences = {table, static_cast<int>(T), static_cast<int>(start), static_cast<int>(before),
                           static_cast<int>(after), static_cast<int>(alive)};
    sequences_forward(gates, h, c, tanh_c, Wh, sequences, static_cast<int>(H), static_cast<int>(stride),
                      static_cast<int>(column_stride), shared);
}

BLOCK_KERNEL(lstm_sequences_backward)(const REAL* dh, REAL* dstate, REAL* dcell, const REAL* gates, const REAL* c,
                                      const REAL* tanh_c, REAL* da, const REAL* to_h, const Size* table, Size T,
                                      Size H, Size stride, Size column_stride, Size start, Size before, Size after,
                                      Size alive) {
    SHARED(Four, shared);
    Sequences sequences = {table, static_cast<int>(T), static_cast<int>(start), static_cast<int>(before),
                           static_cast<int>(after), static_cast<int>(alive)};
    sequences_backward(dh, dstate, dcell, gates, c, tanh_c, da, to_h, sequences, static_cast<int>(H),
                       static_cast<int>(stride), static_cast<int>(column_stride), shared);
}
