// The primitives that cupy_ops does not leave to CuPy, as plain CUDA C. Each kernel is the function of the
// same name in numpy_ops, whose docstring says what it does; arrays are C-contiguous unless a kernel is given
// the distance between their rows. Compiled for one dtype at a time: REAL is float or double.
//
//     KERNEL         every thread by itself; a grid of any size does all the work
//     BLOCK_KERNEL   the threads of a block work on a row together
//     GRID_KERNEL    all blocks run at once, and wait for each other
//
// No atomics on floating-point numbers anywhere: two runs give the same bits. Without a GPU the same source
// is compiled for the host, where HOST_SHIM is defined and has what CUDA has built in.

#define GRID_THREADS 512  // of a block of a GRID_KERNEL at most

#ifndef HOST_SHIM
#define KERNEL(name) extern "C" __global__ void name
#define BLOCK_KERNEL(name) extern "C" __global__ void name
#define GRID_KERNEL(name) extern "C" __global__ void __launch_bounds__(GRID_THREADS) name
#define SHARED(type, name)                                                                                   \
    extern __shared__ __align__(16) unsigned char dynamic_shared[];                                          \
    type* name = reinterpret_cast<type*>(dynamic_shared)
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#endif

// All blocks wait for each other, and see what the others wrote before. `counter` is zero at the launch, and only
// grows: a block that is late at one barrier does not mind others that have come to the next.
__device__ inline void grid_barrier(unsigned* counter) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        unsigned ticket = atomicAdd(counter, 1u), all = (ticket / gridDim.x + 1) * gridDim.x;
        while (*static_cast<volatile unsigned*>(counter) < all) {
        }
        __threadfence();
    }
    __syncthreads();
}
#endif

typedef long long Size;           // of arrays, and the type of indices in them
typedef unsigned long long Key;   // of noise

// The numbers that a thread works on, whatever the size of the grid.
#define FOR_EACH(i, size)                                                                                    \
    for (Size i = static_cast<Size>(blockIdx.x) * blockDim.x + threadIdx.x; i < (size);                      \
         i += static_cast<Size>(gridDim.x) * blockDim.x)

#define WARP 32

// ---------------------------------------------------------------- arithmetic

__device__ inline REAL sigmoid_of(REAL x) { return REAL(0.5) * tanh(REAL(0.5) * x) + REAL(0.5); }

__device__ inline REAL largest(REAL x, REAL y) { return x > y || x != x ? x : y; }  // NaN if x is

__device__ inline REAL sum(REAL x, REAL y) { return x + y; }

// What the threads of a block have, combined: every thread gets it. `room` has a number for each warp.
#define REDUCTION(name, combine, neutral, type)                                                              \
    __device__ inline type name(type value, type* room) {                                                    \
        int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = (blockDim.x + WARP - 1) / WARP;    \
        for (int distance = WARP / 2; distance; distance /= 2)                                               \
            value = combine(value, __shfl_xor_sync(0xffffffffu, value, distance));                           \
        if (warps == 1) return value;                                                                        \
        __syncthreads(); /* the room may still be read from the last time */                                 \
        if (lane == 0) room[warp] = value;                                                                   \
        __syncthreads();                                                                                     \
        value = neutral;                                                                                     \
        for (int k = 0; k < warps; ++k) value = combine(value, room[k]);                                     \
        return value;                                                                                        \
    }

__device__ inline double sum_double(double x, double y) { return x + y; }

REDUCTION(block_max, largest, REAL(-INFINITY), REAL)
REDUCTION(block_sum, sum, REAL(0), REAL)
REDUCTION(block_sum_double, sum_double, 0.0, double)

__device__ inline REAL warp_sum(REAL value) {
    for (int distance = WARP / 2; distance; distance /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
}

// ---------------------------------------------------------------- rows

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

// float32 numbers as bfloat16, their first 16 bits, by lines of `matrices` that lie `apart`: to the nearest, to even
// where two are.
KERNEL(to_bfloat16)(const REAL* x, unsigned short* out, Size matrices, Size lines, Size length, Size apart,
                    Size step) {
    FOR_EACH(i, matrices * lines * length) {
        Size line = i / length, matrix = line / lines;
        float value = static_cast<float>(x[matrix * apart + line % lines * step + i % length]);
        unsigned bits = __float_as_uint(value);
        bool nan = value != value;  // which rounding could make infinite
        out[i] = static_cast<unsigned short>(nan ? bits >> 16 | 0x40u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
    }
}

// A block for each place in `tokens`: the first place of a token adds the rows of all its places, in order.
BLOCK_KERNEL(embedding_gradient)(const REAL* dout, const Size* tokens, REAL* dW, Size M, Size columns) {
    SHARED(int, here);  // (threads,)
    for (Size row = blockIdx.x; row < M; row += gridDim.x) {
        Size token = tokens[row];
        int before = 0;
        for (Size j = threadIdx.x; j < row; j += blockDim.x) before |= tokens[j] == token;
        if (__syncthreads_or(before)) continue;
        for (Size start = row; start < M; start += blockDim.x) {
            Size j = start + threadIdx.x;
            int same = j < M && tokens[j] == token;
            here[threadIdx.x] = same;
            if (!__syncthreads_or(same)) continue;
            for (Size column = threadIdx.x; column < columns; column += blockDim.x) {
                REAL total = dW[token * columns + column];
                for (int k = 0; k < static_cast<int>(blockDim.x); ++k)
                    if (here[k]) total += dout[(start + k) * columns + column];
                dW[token * columns + column] = total;
            }
            __syncthreads();  // before `here` is written again
        }
    }
}

// ---------------------------------------------------------------- noise

// Whether number i of an array is drawn: as numpy_noise says, to the bit.
__device__ inline bool drawn(Key limit, Key key, Key i) {
    Key z = (i + 1) * 0x9E3779B97F4A7C15ull + key;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return ((z ^ (z >> 31)) >> 32) < limit;
}

__device__ inline bool drawn_of_step(unsigned limit, Key key, Key i) {
    unsigned z = static_cast<unsigned>(i + 1) * 0x9E3779B9u + static_cast<unsigned>(key);
    z = (z ^ (z >> 17)) * 0xED5AD4BBu + static_cast<unsigned>(key >> 32);
    z = (z ^ (z >> 11)) * 0xAC4C1B51u;
    z = (z ^ (z >> 15)) * 0x31848BABu;
    return (z ^ (z >> 14)) < limit;
}

// A key comes as a number or, where a captured launch is to have another one each time, in memory.
__device__ inline Key told(Key key, const Key* place) { return place ? *place : key; }

KERNEL(dropout)(const REAL* x, REAL* out, Size size, REAL scale, Key limit, Key key, const Key* place) {
    key = told(key, place);
    FOR_EACH(i, size) out[i] = drawn(limit, key, i) ? REAL(0) : x[i] * scale;
}

KERNEL(keep_mask)(REAL* out, Size size, REAL scale, unsigned limit, Key start, Key key, const Key* place) {
    key = told(key, place);
    FOR_EACH(i, size) out[i] = drawn_of_step(limit, key, start + i) ? REAL(0) : scale;
}

// ---------------------------------------------------------------- cells

// Zoneout of a number of the state: it is drawn, or in inference there is its expectation, `share` of what was.
struct Zoneout {
    unsigned limit;
    REAL share;
    Key key;

    __device__ REAL forward(Key i, REAL was, REAL made) const {
        if (share != REAL(0)) return made + share * (was - made);
        return limit && drawn_of_step(limit, key, i) ? was : made;
    }

    // What of d goes through the cell; d is left as what goes past it.
    __device__ REAL split(Key i, REAL& d) const {
        REAL whole = d;
        if (share != REAL(0)) {
            d *= share;
            return whole - d;
        }
        bool stays = limit && drawn_of_step(limit, key, i);
        d = stays ? whole : REAL(0);
        return stays ? REAL(0) : whole;
    }
};

// Dropout of a number of the candidate: what multiplies it.
struct Dropout {
    unsigned limit;
    REAL scale;
    Key key;

    __device__ REAL keep(Key i) const { return limit && drawn_of_step(limit, key, i) ? REAL(0) : scale; }
};

// The noise of a step, whose number i is number start + i of the whole. A limit of zero draws nothing.
struct StepNoise {
    Key start;
    Zoneout h, c;
    Dropout candidate;
};

__device__ inline StepNoise no_noise() { return {0, {0, 0, 0}, {0, 0, 0}, {0, 1, 0}}; }

KERNEL(rnn_forward)(const REAL* a, REAL* h, Size size) {
    FOR_EACH(i, size) h[i] = tanh(a[i]);
}

KERNEL(rnn_backward)(const REAL* dh, const REAL* h, REAL* da, Size size) {
    FOR_EACH(i, size) da[i] = dh[i] * (REAL(1) - h[i] * h[i]);
}

KERNEL(rnn_noisy_forward)(const REAL* a, const REAL* prev_h, REAL* made, REAL* h, Size n, Size H, Key start,
                          unsigned limit, REAL share, Key key, const Key* place) {
    Zoneout zoneout = {limit, share, told(key, place)};
    FOR_EACH(i, n * H) {
        made[i] = tanh(a[i]);
        h[i] = zoneout.forward(start + i, prev_h[i], made[i]);
    }
}

KERNEL(rnn_noisy_backward)(REAL* dh, const REAL* made, REAL* da, Size n, Size H, Key start, unsigned limit,
                           REAL share, Key key, const Key* place) {
    Zoneout zoneout = {limit, share, told(key, place)};
    FOR_EACH(i, n * H) da[i] = zoneout.split(start + i, dh[i]) * (REAL(1) - made[i] * made[i]);
}

__device__ inline void lstm_cell(REAL* gates, const REAL* prev_h, const REAL* prev_c, REAL* c, REAL* tanh_c, REAL* h,
                                 Size n, Size H, const StepNoise& noise) {
    FOR_EACH(i, n * H) {
        REAL* a = gates + (i / H) * 4 * H + i % H;
        REAL in = sigmoid_of(a[0]), f = sigmoid_of(a[H]), o = sigmoid_of(a[2 * H]), g = tanh(a[3 * H]);
        REAL now = f * prev_c[i] + in * (noise.candidate.keep(noise.start + i) * g), squashed = tanh(now);
        a[0] = in;
        a[H] = f;
        a[2 * H] = o;
        a[3 * H] = g;
        c[i] = noise.c.forward(noise.start + i, prev_c[i], now);
        tanh_c[i] = squashed;
        h[i] = prev_h ? noise.h.forward(noise.start + i, prev_h[i], o * squashed) : o * squashed;
    }
}

// What reaches the last c through the cell; da is written. `dh` and `dc` are what goes through it.
__device__ inline REAL lstm_cell_backward(REAL dh, REAL dc, const REAL* a, REAL keep, REAL prev_c, REAL tanh_c,
                                          REAL* d, Size H) {
    REAL in = a[0], f = a[H], o = a[2 * H], g = a[3 * H];
    dc += dh * o * (REAL(1) - tanh_c * tanh_c);
    d[0] = dc * keep * g * in * (REAL(1) - in);
    d[H] = dc * prev_c * f * (REAL(1) - f);
    d[2 * H] = dh * tanh_c * o * (REAL(1) - o);
    d[3 * H] = dc * keep * in * (REAL(1) - g * g);
    return dc * f;
}

KERNEL(lstm_forward)(REAL* gates, const REAL* prev_c, REAL* c, REAL* tanh_c, REAL* h, Size n, Size H) {
    lstm_cell(gates, nullptr, prev_c, c, tanh_c, h, n, H, no_noise());
}

KERNEL(lstm_backward)(const REAL* dh, REAL* dc, const REAL* gates, const REAL* prev_c, const REAL* tanh_c, REAL* da,
                      Size n, Size H) {
    FOR_EACH(i, n * H) {
        Size first = (i / H) * 4 * H + i % H;
        dc[i] = lstm_cell_backward(dh[i], dc[i], gates + first, REAL(1), prev_c[i], tanh_c[i], da + first, H);
    }
}

KERNEL(lstm_noisy_forward)(REAL* gates, const REAL* prev_h, const REAL* prev_c, REAL* c, REAL* tanh_c, REAL* h,
                           Size n, Size H, Key start, unsigned h_limit, REAL h_share, Key h_key,
                           const Key* h_place, unsigned c_limit, REAL c_share, Key c_key, const Key* c_place,
                           unsigned drop_limit, REAL drop_scale, Key drop_key, const Key* drop_place) {
    StepNoise noise = {start, {h_limit, h_share, told(h_key, h_place)}, {c_limit, c_share, told(c_key, c_place)},
                       {drop_limit, drop_scale, told(drop_key, drop_place)}};
    lstm_cell(gates, prev_h, prev_c, c, tanh_c, h, n, H, noise);
}

KERNEL(lstm_noisy_backward)(REAL* dh, REAL* dc, const REAL* gates, const REAL* prev_c, const REAL* tanh_c, REAL* da,
                            Size n, Size H, Key start, unsigned h_limit, REAL h_share, Key h_key,
                            const Key* h_place, unsigned c_limit, REAL c_share, Key c_key, const Key* c_place,
                            unsigned drop_limit, REAL drop_scale, Key drop_key, const Key* drop_place) {
    StepNoise noise = {start, {h_limit, h_share, told(h_key, h_place)}, {c_limit, c_share, told(c_key, c_place)},
                       {drop_limit, drop_scale, told(drop_key, drop_place)}};
    FOR_EACH(i, n * H) {
        Size first = (i / H) * 4 * H + i % H;
        REAL past = dc[i], keep = noise.candidate.keep(start + i);
        REAL through_h = noise.h.split(start + i, dh[i]), through_c = noise.c.split(start + i, past);
        dc[i] = past + lstm_cell_backward(through_h, through_c, gates + first, keep, prev_c[i], tanh_c[i],
                                          da + first, H);
    }
}

KERNEL(gru_gates_forward)(REAL* gates, const REAL* prev_h, REAL* reset_h, Size n, Size H) {
    FOR_EACH(i, n * H) {
        REAL* a = gates + (i / H) * 3 * H + i % H;
        a[0] = sigmoid_of(a[0]);
        REAL r = a[H] = sigmoid_of(a[H]);
        reset_h[i] = r * prev_h[i];
    }
}

KERNEL(gru_gates_backward)(REAL* dreset_h, REAL* dh, const REAL* gates, const REAL* prev_h, REAL* da, Size n,
                           Size H) {
    FOR_EACH(i, n * H) {
        REAL r = gates[(i / H) * 3 * H + H + i % H];
        da[(i / H) * 3 * H + H + i % H] = r * (REAL(1) - r) * prev_h[i] * dreset_h[i];
        dh[i] += dreset_h[i] * r;
    }
}

// The candidate g is activated and mixed with prev_h by z. A cell's gates lie `width` apart, z first; g is
// `candidate` further on. With `activate_z`, z comes in as a pre-activation too.
__device__ inline void interpolate(REAL* gates, const REAL* prev_h, REAL* h, Size n, Size H, int width,
                                   bool activate_z, const StepNoise& noise) {
    FOR_EACH(i, n * H) {
        REAL* a = gates + (i / H) * width * H + i % H;
        REAL z = activate_z ? sigmoid_of(a[0]) : a[0], g = tanh(a[(width - 1) * H]);
        REAL mixed = noise.candidate.keep(noise.start + i) * g;
        if (activate_z) a[0] = z;
        a[(width - 1) * H] = g;
        h[i] = noise.h.forward(noise.start + i, prev_h[i], mixed + z * (prev_h[i] - mixed));
    }
}

__device__ inline void interpolate_backward(REAL* dh, const REAL* gates, const REAL* prev_h, REAL* da, Size n, Size H,
                                            int width, const StepNoise& noise) {
    FOR_EACH(i, n * H) {
        const REAL* a = gates + (i / H) * width * H + i % H;
        REAL* d = da + (i / H) * width * H + i % H;
        REAL z = a[0], g = a[(width - 1) * H], keep = noise.candidate.keep(noise.start + i);
        REAL past = dh[i], through = noise.h.split(noise.start + i, past);
        d[0] = (prev_h[i] - keep * g) * z * (REAL(1) - z) * through;
        d[(width - 1) * H] = (REAL(1) - z) * through * (REAL(1) - g * g) * keep;
        dh[i] = past + through * z;
    }
}

KERNEL(gru_candidate_forward)(REAL* gates, const REAL* prev_h, REAL* h, Size n, Size H) {
    interpolate(gates, prev_h, h, n, H, 3, false, no_noise());
}

KERNEL(gru_candidate_backward)(REAL* dh, const REAL* gates, const REAL* prev_h, REAL* da, Size n, Size H) {
    interpolate_backward(dh, gates, prev_h, da, n, H, 3, no_noise());
}

KERNEL(gru_candidate_noisy_forward)(REAL* gates, const REAL* prev_h, REAL* h, Size n, Size H, Key start, unsigned h_limit,
                                    REAL h_share, Key h_key, const Key* h_place, unsigned drop_limit,
                                    REAL drop_scale, Key drop_key, const Key* drop_place) {
    StepNoise noise = {start, {h_limit, h_share, told(h_key, h_place)}, {0, 0, 0},
                       {drop_limit, drop_scale, told(drop_key, drop_place)}};
    interpolate(gates, prev_h, h, n, H, 3, false, noise);
}

KERNEL(gru_candidate_noisy_backward)(REAL* dh, const REAL* gates, const REAL* prev_h, REAL* da, Size n, Size H, Key start,
                                     unsigned h_limit, REAL h_share, Key h_key, const Key* h_place,
                                     unsigned drop_limit, REAL drop_scale, Key drop_key, const Key* drop_place) {
    StepNoise noise = {start, {h_limit, h_share, told(h_key, h_place)}, {0, 0, 0},
                       {drop_limit, drop_scale, told(drop_key, drop_place)}};
    interpolate_backward(dh, gates, prev_h, da, n, H, 3, noise);
}

KERNEL(simplified_gru_forward)(REAL* gates, const REAL* prev_h, REAL* h, Size n, Size H) {
    interpolate(gates, prev_h, h, n, H, 2, true, no_noise());
}

KERNEL(simplified_gru_backward)(REAL* dh, const REAL* gates, const REAL* prev_h, REAL* da, Size n, Size H) {
    interpolate_backward(dh, gates, prev_h, da, n, H, 2, no_noise());
}

KERNEL(simplified_gru_noisy_forward)(REAL* gates, const REAL* prev_h, REAL* h, Size n, Size H, Key start, unsigned h_limit,
                                     REAL h_share, Key h_key, const Key* h_place, unsigned drop_limit,
                                     REAL drop_scale, Key drop_key, const Key* drop_place) {
    StepNoise noise = {start, {h_limit, h_share, told(h_key, h_place)}, {0, 0, 0},
                       {drop_limit, drop_scale, told(drop_key, drop_place)}};
    interpolate(gates, prev_h, h, n, H, 2, true, noise);
}

KERNEL(simplified_gru_noisy_backward)(REAL* dh, const REAL* gates, const REAL* prev_h, REAL* da, Size n, Size H, Key start,
                                      unsigned h_limit, REAL h_share, Key h_key, const Key* h_place,
                                      unsigned drop_limit, REAL drop_scale, Key drop_key, const Key* drop_place) {
    StepNoise noise = {start, {h_limit, h_share, told(h_key, h_place)}, {0, 0, 0},
                       {drop_limit, drop_scale, told(drop_key, drop_place)}};
    interpolate_backward(dh, gates, prev_h, da, n, H, 2, noise);
}

// ---------------------------------------------------------------- steps of an LSTM

// All steps of a chunk in one launch. The sequences are dealt out to `parts` parts, and a block has `units` hidden
// units of one part's rows, with its columns of the recurrent weight in shared memory for all steps. The rows alive
// at a step are the first ones, so that every part has its share of them to the end.
//
// Both directions multiply rows, (rows, K), by the block's columns, which come in fours: the four gates of a unit
// in the forward, K = H; four units in the backward, K = 4H. A thread has ROWS rows of four columns, and every
// splits-th quad of k; the splits' sums are added in their order.
//
// What other blocks wrote in the step before is read past the first cache, which does not see their writes.

#define ROWS 4

struct alignas(16) Four {
    REAL x[4];
};

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

// How a block shares out a product to its threads.
struct Shares {
    int columns;  // in fours
    int splits;
    int rows;  // at a time
    int K;
    __device__ int fours() const { return (K + 4 * splits - 1) / (4 * splits) * 4 * splits * columns; }
    // Where the weight of a k lies, so that neighbouring threads read neighbouring fours.
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
    Size alive;  // how many rows
    Size before, after;  // the start of the states
};

// How many of the rows that are alive are a part's.
__device__ inline int rows_of(Size part, Size parts, const Step& step) {
    return static_cast<int>(step.alive > part ? (step.alive - part + parts - 1) / parts : 0);
}

GRID_KERNEL(lstm_steps_forward)(REAL* gates, REAL* h, REAL* c, REAL* tanh_c, const REAL* Wh, const Size* places,
                                unsigned* counter, Size T, Size H, Size stride, Size column_stride, Size units,
                                Size parts, Size rows, Size splits) {
    SHARED(Four, weight);
    Shares shares = {static_cast<int>(units), static_cast<int>(splits), static_cast<int>(rows), static_cast<int>(H)};
    Four* sums = weight + shares.fours();
    Size groups = gridDim.x / parts, part = blockIdx.x / groups, first = blockIdx.x % groups * units;
    for (int i = threadIdx.x; i < shares.fours(); i += blockDim.x) {
        int own = i % shares.columns, k = i / shares.columns;
        Four w = {};
        if (k < shares.K && first + own < H)
            for (int n = 0; n < 4; ++n) w.x[n] = Wh[k * stride + (n * H + first + own) * column_stride];
        weight[shares.place(k, own)] = w;
    }
    __syncthreads();
    int own = threadIdx.x % shares.columns, slot = threadIdx.x / shares.columns;
    Size unit = first + own;
    const Step* steps = reinterpret_cast<const Step*>(places);
    Step step = steps[0], next = step;
    for (Size t = 0; t < T; ++t, step = next) {
        if (t) grid_barrier(counter);
        if (t + 1 < T) next = steps[t + 1];  // before it is needed
        int alive = rows_of(part, parts, step);
        for (int done = 0; done < alive; done += shares.rows) {
            int left = min(alive - done, shares.rows);
            bool mine = slot < left && unit < H;
            Size row = part + (done + slot) * parts;
            REAL* a = gates + (step.start + row) * 4 * H + unit;
            Four gate = {};
            REAL now = 0;
            if (mine) {  // on their way while the product is computed
                for (int n = 0; n < 4; ++n) gate.x[n] = a[n * H];
                now = c[(step.before + row) * H + unit];
            }
            multiply(shares, h + (step.before + part + done * parts) * H, left, parts * H, weight, sums);
            __syncthreads();
            if (mine) {
                for (int split = 0; split < shares.splits; ++split) {
                    Four sum = sums[(split * shares.rows + slot) * shares.columns + own];
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

// A block computes da of its units from dh of its units; the next dh of its units needs da of all, which it
// reads once the blocks have met. So they meet once a step, and dh never leaves the block.
GRID_KERNEL(lstm_steps_backward)(const REAL* dh, REAL* dstate, REAL* dcell, const REAL* gates, const REAL* c,
                                 const REAL* tanh_c, REAL* da, const REAL* to_h, const Size* places,
                                 unsigned* counter, Size T, Size H, Size stride, Size column_stride, Size units,
                                 Size parts, Size rows, Size splits) {
    SHARED(Four, weight);
    Shares shares = {static_cast<int>(units) / 4, static_cast<int>(splits), static_cast<int>(rows),
                     static_cast<int>(4 * H)};
    Four* sums = weight + shares.fours();
    Size groups = gridDim.x / parts, part = blockIdx.x / groups, first = blockIdx.x % groups * units;
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
    int own = threadIdx.x % static_cast<int>(units), slot = threadIdx.x / static_cast<int>(units);
    Size unit = first + own;
    const Step* steps = reinterpret_cast<const Step*>(places);
    Size origin = steps[0].start;  // of the chunk
    Step step = steps[T - 1], later = {}, earlier = step;
    for (Size t = T - 1; t >= -1; --t, later = step, step = earlier) {
        // What reaches the states after step t: the product with da of the later step, which every block wrote a
        // part of, where its rows were alive. Then da of step t; t = -1 has none, but the states before the chunk.
        if (t < T - 1) grid_barrier(counter);
        if (t > 0) earlier = steps[t - 1];  // before it is needed
        int known = rows_of(part, parts, later), alive = t < 0 ? known : rows_of(part, parts, step);
        for (int done = 0; done < alive; done += shares.rows) {
            int left = min(alive - done, shares.rows), multiplied = max(0, min(known - done, shares.rows));
            bool mine = slot < left && unit < H;
            Size row = part + (done + slot) * parts, here = (step.start + row) * H + unit;
            const REAL* a = gates + (step.start + row) * 4 * H + unit;
            Four gate = {};
            REAL dnow = 0, dc = 0, prev_c = 0, squashed = 0;
            if (mine && t >= 0) {  // on their way while the product is computed
                for (int n = 0; n < 4; ++n) gate.x[n] = a[n * H];
                prev_c = c[(step.before + row) * H + unit];
                squashed = tanh_c[here];
                dnow = dh[here - origin * H];
                dc = dcell[row * H + unit];
                if (slot >= multiplied) dnow += dstate[row * H + unit];
            }
            if (multiplied)
                multiply(shares, da + (later.start - origin + part + done * parts) * shares.K, multiplied,
                         parts * shares.K, weight, sums);
            __syncthreads();
            if (mine && slot < multiplied) {
                const REAL* sum = reinterpret_cast<const REAL*>(sums) + slot * units + own;
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

// ---------------------------------------------------------------- scores

BLOCK_KERNEL(softmax_cross_entropy)(const REAL* scores, const Size* targets, const REAL* scales, REAL* dscores,
                                    REAL* losses, Size M, Size V, REAL one_scale, REAL smoothing) {
    SHARED(REAL, room);
    REAL certain = REAL(1) - smoothing, shared = smoothing / REAL(V);
    for (Size row = blockIdx.x; row < M; row += gridDim.x) {
        const REAL* x = scores + row * V;
        REAL* d = dscores + row * V;
        REAL most = REAL(-INFINITY), total = 0, shifted = 0, scale = scales ? scales[row] : one_scale;
        for (Size j = threadIdx.x; j < V; j += blockDim.x) most = largest(x[j], most);
        most = block_max(most, room);
        for (Size j = threadIdx.x; j < V; j += blockDim.x) {
            total += exp(x[j] - most);
            shifted += x[j] - most;
        }
        total = block_sum(total, room);
        REAL expected = certain * (x[targets[row]] - most);
        if (smoothing != REAL(0)) expected += shared * block_sum(shifted, room);
        __syncthreads();  // dscores may be scores
        for (Size j = threadIdx.x; j < V; j += blockDim.x)
            d[j] = exp(x[j] - most) * (scale / total) - scale * shared - (j == targets[row] ? scale * certain : 0);
        if (threadIdx.x == 0) losses[row] = log(total) - expected;
    }
}

BLOCK_KERNEL(log_softmax)(const REAL* scores, REAL* out, Size M, Size V) {
    SHARED(REAL, room);
    for (Size row = blockIdx.x; row < M; row += gridDim.x) {
        const REAL* x = scores + row * V;
        REAL most = REAL(-INFINITY), total = 0;
        for (Size j = threadIdx.x; j < V; j += blockDim.x) most = largest(x[j], most);
        most = block_max(most, room);
        for (Size j = threadIdx.x; j < V; j += blockDim.x) total += exp(x[j] - most);
        total = log(block_sum(total, room));
        for (Size j = threadIdx.x; j < V; j += blockDim.x) out[row * V + j] = x[j] - most - total;
    }
}

// ---------------------------------------------------------------- attention

// A query is a block's. Its scores lie in shared memory, a number for each of L cells; the room of the
// reductions follows. Rows of cells, weights and dscores lie so far apart as the strides say.

__device__ inline REAL additive_score(const REAL* query, const REAL* key, const REAL* v, Size A) {
    REAL total = 0;
    for (Size j = threadIdx.x % WARP; j < A; j += WARP) total += v[j] * tanh(query[j] + key[j]);
    return warp_sum(total);
}

__device__ inline REAL dot(const REAL* x, const REAL* y, Size size) {
    REAL total = 0;
    for (Size j = threadIdx.x % WARP; j < size; j += WARP) total += x[j] * y[j];
    return warp_sum(total);
}

// Softmax over the cells that there are, whose scores are given, and the memory's sum by these weights.
__device__ inline void attend(REAL* scores, const REAL* memory, const Size* cells, REAL* weights, REAL* context,
                              Size L, Size C) {
    REAL* room = scores + L;
    REAL most = REAL(-INFINITY), total = 0;
    for (Size i = threadIdx.x; i < L; i += blockDim.x)
        if (cells[i] >= 0) most = largest(scores[i], most);
    most = block_max(most, room);
    for (Size i = threadIdx.x; i < L; i += blockDim.x) {
        scores[i] = cells[i] >= 0 ? exp(scores[i] - most) : REAL(0);
        total += scores[i];
    }
    total = block_sum(total, room);
    for (Size i = threadIdx.x; i < L; i += blockDim.x)
        weights[i] = scores[i] = cells[i] >= 0 ? scores[i] / total : REAL(0);
    __syncthreads();
    for (Size j = threadIdx.x; j < C; j += blockDim.x) {
        REAL sum = 0;
        for (Size i = 0; i < L; ++i)
            if (cells[i] >= 0) sum += scores[i] * memory[cells[i] * C + j];
        context[j] = sum;
    }
    __syncthreads();  // before the scores are written again
}

BLOCK_KERNEL(additive_attention_forward)(const REAL* query, const REAL* keys, const REAL* v, const REAL* memory,
                                         const Size* cells, REAL* weights, REAL* context, Size n, Size L, Size A,
                                         Size C, Size cells_stride, Size weights_stride) {
    SHARED(REAL, scores);
    for (Size row = blockIdx.x; row < n; row += gridDim.x) {
        const Size* own = cells + row * cells_stride;
        for (Size i = threadIdx.x / WARP; i < L; i += blockDim.x / WARP) {
            if (own[i] < 0) continue;
            REAL score = additive_score(query + row * A, keys + own[i] * A, v, A);
            if (threadIdx.x % WARP == 0) scores[i] = score;
        }
        __syncthreads();
        attend(scores, memory, own, weights + row * weights_stride, context + row * C, L, C);
    }
}

BLOCK_KERNEL(dot_attention_forward)(const REAL* query, const REAL* keys, const REAL* memory, const Size* cells,
                                    REAL* weights, REAL* context, Size n, Size L, Size A, Size C,
                                    Size cells_stride, Size weights_stride) {
    SHARED(REAL, scores);
    for (Size row = blockIdx.x; row < n; row += gridDim.x) {
        const Size* own = cells + row * cells_stride;
        for (Size i = threadIdx.x / WARP; i < L; i += blockDim.x / WARP) {
            if (own[i] < 0) continue;
            REAL score = dot(query + row * A, keys + own[i] * A, A);
            if (threadIdx.x % WARP == 0) scores[i] = score;
        }
        __syncthreads();
        attend(scores, memory, own, weights + row * weights_stride, context + row * C, L, C);
    }
}

// From the gradient of the weights, in dscores, and of the context to that of the scores.
__device__ inline void scores_gradient(REAL* scores, const REAL* dcontext, const REAL* memory, const Size* cells,
                                       const REAL* weights, REAL* dscores, Size L, Size C) {
    REAL* room = scores + L;
    for (Size i = threadIdx.x / WARP; i < L; i += blockDim.x / WARP) {
        if (cells[i] < 0) continue;
        REAL through_context = dot(dcontext, memory + cells[i] * C, C);
        if (threadIdx.x % WARP == 0) scores[i] = weights[i] * (dscores[i] + through_context);
    }
    __syncthreads();
    REAL total = 0;
    for (Size i = threadIdx.x; i < L; i += blockDim.x)
        if (cells[i] >= 0) total += scores[i];
    total = block_sum(total, room);
    for (Size i = threadIdx.x; i < L; i += blockDim.x)
        dscores[i] = scores[i] = cells[i] >= 0 ? scores[i] - weights[i] * total : REAL(0);
    __syncthreads();
}

BLOCK_KERNEL(additive_attention_backward)(const REAL* dcontext, const REAL* query, const REAL* keys, const REAL* v,
                                          const REAL* memory, const Size* cells, const REAL* weights,
                                          REAL* dscores, REAL* dquery, REAL* dkeys, REAL* dv, Size n, Size L,
                                          Size A, Size C, Size cells_stride, Size weights_stride,
                                          Size dscores_stride) {
    SHARED(REAL, scores);
    for (Size row = blockIdx.x; row < n; row += gridDim.x) {
        const Size* own = cells + row * cells_stride;
        scores_gradient(scores, dcontext + row * C, memory, own, weights + row * weights_stride,
                        dscores + row * dscores_stride, L, C);
        for (Size j = threadIdx.x; j < A; j += blockDim.x) {
            REAL q = query[row * A + j], dq = 0, dv_ = 0;
            for (Size i = 0; i < L; ++i) {
                if (own[i] < 0) continue;
                REAL hidden = tanh(q + keys[own[i] * A + j]);
                REAL da = scores[i] * v[j] * (REAL(1) - hidden * hidden);
                dv_ += scores[i] * hidden;
                dq += da;
                dkeys[own[i] * A + j] += da;
            }
            dquery[row * A + j] += dq;
            dv[row * A + j] += dv_;
        }
        __syncthreads();
    }
}

BLOCK_KERNEL(dot_attention_backward)(const REAL* dcontext, const REAL* query, const REAL* keys, const REAL* memory,
                                     const Size* cells, const REAL* weights, REAL* dscores, REAL* dquery,
                                     REAL* dkeys, Size n, Size L, Size A, Size C, Size cells_stride,
                                     Size weights_stride, Size dscores_stride) {
    SHARED(REAL, scores);
    for (Size row = blockIdx.x; row < n; row += gridDim.x) {
        const Size* own = cells + row * cells_stride;
        scores_gradient(scores, dcontext + row * C, memory, own, weights + row * weights_stride,
                        dscores + row * dscores_stride, L, C);
        for (Size j = threadIdx.x; j < A; j += blockDim.x) {
            REAL q = query[row * A + j], dq = 0;
            for (Size i = 0; i < L; ++i) {
                if (own[i] < 0) continue;
                dq += scores[i] * keys[own[i] * A + j];
                dkeys[own[i] * A + j] += scores[i] * q;
            }
            dquery[row * A + j] += dq;
        }
        __syncthreads();
    }
}

KERNEL(attention_memory_gradient)(const REAL* dcontext, const REAL* weights, const Size* cells, REAL* dmemory,
                                  Size n, Size L, Size C, Size weights_stride, Size cells_stride) {
    FOR_EACH(k, n * C) {
        Size row = k / C, j = k % C;
        for (Size i = 0; i < L; ++i) {
            Size cell = cells[row * cells_stride + i];
            if (cell >= 0) dmemory[cell * C + j] += weights[row * weights_stride + i] * dcontext[k];
        }
    }
}

// ---------------------------------------------------------------- search

// Whether x in column i comes before y in column j: the larger first, NaN before all, the first of equals.
__device__ inline bool beats(REAL x, Size i, REAL y, Size j) {
    bool larger = x > y || (x != x && y == y), smaller = y > x || (y != y && x == x);
    return larger || (!smaller && i < j);
}

// The columns and values (n, count) of the best scores of each row, in their order; scores are overwritten.
BLOCK_KERNEL(top)(REAL* scores, Size* columns, REAL* values, Size n, Size V, Size count) {
    SHARED(Size, best_columns);  // (threads,), and as many values; the number of threads is a power of two
    REAL* best_values = reinterpret_cast<REAL*>(best_columns + blockDim.x);
    for (Size row = blockIdx.x; row < n; row += gridDim.x) {
        REAL* x = scores + row * V;
        for (Size rank = 0; rank < count; ++rank) {
            REAL best = REAL(-INFINITY);
            Size column = V;
            for (Size j = threadIdx.x; j < V; j += blockDim.x)
                if (beats(x[j], j, best, column)) best = x[j], column = j;
            best_values[threadIdx.x] = best;
            best_columns[threadIdx.x] = column;
            __syncthreads();
            for (unsigned half = blockDim.x / 2; half; half /= 2) {
                unsigned mine = threadIdx.x, other = mine + half;
                if (mine < half && beats(best_values[other], best_columns[other], best_values[mine], best_columns[mine])) {
                    best_values[mine] = best_values[other];
                    best_columns[mine] = best_columns[other];
                }
                __syncthreads();
            }
            if (threadIdx.x == 0) {
                columns[row * count + rank] = best_columns[0];
                values[row * count + rank] = best_values[0];
                x[best_columns[0]] = REAL(-INFINITY);
            }
            __syncthreads();
        }
    }
}

// ---------------------------------------------------------------- update rules

// What a rule multiplies by is in `numbers`, in double precision, and `scale` multiplies the gradient: both in
// memory, so that a captured launch can be told others. Without a finite scale nothing is updated.
#define NUMBER(k) REAL(numbers[k])

KERNEL(sgd)(REAL* w, const REAL* dw, Size size, const double* numbers, const double* scale) {
    if (!isfinite(*scale)) return;
    REAL rate = numbers[0] * *scale;
    FOR_EACH(i, size) w[i] -= dw[i] * rate;
}

KERNEL(momentum)(REAL* w, const REAL* dw, REAL* velocity, Size size, const double* numbers, const double* scale) {
    if (!isfinite(*scale)) return;
    REAL rate = numbers[0] * *scale, mu = NUMBER(1);
    FOR_EACH(i, size) {
        velocity[i] = mu * velocity[i] - dw[i] * rate;
        w[i] += velocity[i];
    }
}

// `fresh` is what a new square counts for in a mean, (1 - decay) scale^2: in double precision, since 1 - decay
// has few digits left in single precision.

KERNEL(rmsprop)(REAL* w, const REAL* dw, REAL* cache, Size size, const double* numbers, const double* scale) {
    if (!isfinite(*scale)) return;
    REAL rate = numbers[0] * *scale, decay = NUMBER(1), epsilon = NUMBER(2);
    REAL fresh = (1 - numbers[1]) * *scale * *scale;
    FOR_EACH(i, size) {
        cache[i] = decay * cache[i] + fresh * (dw[i] * dw[i]);
        w[i] -= rate * (dw[i] / (sqrt(cache[i]) + epsilon));
    }
}

KERNEL(adagrad)(REAL* w, const REAL* dw, REAL* cache, Size size, const double* numbers, const double* scale) {
    if (!isfinite(*scale)) return;
    REAL rate = numbers[0] * *scale, fresh = *scale * *scale, epsilon = NUMBER(1);
    FOR_EACH(i, size) {
        cache[i] += fresh * (dw[i] * dw[i]);
        w[i] -= rate * (dw[i] / (sqrt(cache[i]) + epsilon));
    }
}

KERNEL(adadelta)(REAL* w, const REAL* dw, REAL* cache, REAL* delta_cache, Size size, const double* numbers,
                 const double* scale) {
    if (!isfinite(*scale)) return;
    REAL rate = NUMBER(0), decay = NUMBER(1), epsilon = NUMBER(2), factor = *scale;
    REAL fresh = (1 - numbers[1]) * *scale * *scale, fresh_delta = 1 - numbers[1];
    FOR_EACH(i, size) {
        cache[i] = decay * cache[i] + fresh * (dw[i] * dw[i]);
        REAL delta = sqrt((delta_cache[i] + epsilon) / (cache[i] + epsilon)) * dw[i] * factor;
        delta_cache[i] = decay * delta_cache[i] + fresh_delta * (delta * delta);
        w[i] -= rate * delta;
    }
}

// The rate and epsilon have Adam's corrections of both averages in them; the last number is 1 - rate x decay.
KERNEL(adamw)(REAL* w, const REAL* dw, REAL* m, REAL* v, Size size, const double* numbers, const double* scale) {
    if (!isfinite(*scale)) return;
    REAL rate = NUMBER(0), beta1 = NUMBER(1), beta2 = NUMBER(2), epsilon = NUMBER(3), keep = NUMBER(4);
    REAL fresh_m = (1 - numbers[1]) * *scale, fresh_v = (1 - numbers[2]) * *scale * *scale;
    FOR_EACH(i, size) {
        m[i] = beta1 * m[i] + fresh_m * dw[i];
        v[i] = beta2 * v[i] + fresh_v * (dw[i] * dw[i]);
        w[i] = keep * w[i] - rate * (m[i] / (sqrt(v[i]) + epsilon));
    }
}

// The sum of squares of each block's share, in double precision; a second launch, of one block, adds those.
BLOCK_KERNEL(sum_of_squares)(const REAL* x, double* partial, Size size) {
    SHARED(double, room);
    double total = 0;
    FOR_EACH(i, size) total += static_cast<double>(x[i]) * x[i];
    total = block_sum_double(total, room);
    if (threadIdx.x == 0) partial[blockIdx.x] = total;
}

BLOCK_KERNEL(sum)(const double* partial, double* total, Size size) {
    SHARED(double, room);
    double mine = 0;
    for (Size i = threadIdx.x; i < size; i += blockDim.x) mine += partial[i];
    mine = block_sum_double(mine, room);
    if (threadIdx.x == 0) *total = mine;
}

KERNEL(clip_values)(REAL* x, Size size, REAL bound) {
    FOR_EACH(i, size) x[i] = x[i] > bound ? bound : x[i] < -bound ? -bound : x[i];
}

// The loss and the norm of a gradient into the next row of `log`, and the factor that brings the norm to at most
// `most`: NaN, so that no rule updates anything, once one of them was not finite. `state` counts the rows since
// they were read and all that were not finite. `squares` is of the gradient as it came, `clipped` as it is.
KERNEL(look_at_gradient)(const double* loss, const double* squares, const double* clipped, double* log, Size* state,
                         double* scale, Size rows, double most) {
    FOR_EACH(i, 1) {
        double norm = sqrt(*squares), left = sqrt(*clipped);
        Size row = state[0]++;
        if (row < rows) {
            log[2 * row] = *loss;
            log[2 * row + 1] = norm;
        }
        if (!isfinite(*loss) || !isfinite(norm)) state[1]++;
        *scale = state[1] ? NAN : left > most ? most / left : 1.0;
    }
}
