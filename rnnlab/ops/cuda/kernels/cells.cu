// The gates of the recurrent cells, with and without noise, which is drawn where it is needed.

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

KERNEL(dropout_mask)(REAL* out, Size size, REAL scale, unsigned limit, Key start, Key key, const Key* place) {
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

KERNEL(rnn_regularised_forward)(const REAL* a, const REAL* prev_h, REAL* made, REAL* h, Size n, Size H, Key start,
                          unsigned limit, REAL share, Key key, const Key* place) {
    Zoneout zoneout = {limit, share, told(key, place)};
    FOR_EACH(i, n * H) {
        made[i] = tanh(a[i]);
        h[i] = zoneout.forward(start + i, prev_h[i], made[i]);
    }
}

KERNEL(rnn_regularised_backward)(REAL* dh, const REAL* made, REAL* da, Size n, Size H, Key start, unsigned limit,
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

// Of dh + further, where there is such a part.
KERNEL(lstm_backward)(const REAL* dh, const REAL* further, REAL* dc, const REAL* gates, const REAL* prev_c,
                      const REAL* tanh_c, REAL* da, Size n, Size H) {
    FOR_EACH(i, n * H) {
        Size first = (i / H) * 4 * H + i % H;
        REAL dnow = further ? dh[i] + further[i] : dh[i];
        dc[i] = lstm_cell_backward(dnow, dc[i], gates + first, REAL(1), prev_c[i], tanh_c[i], da + first, H);
    }
}

KERNEL(lstm_regularised_forward)(REAL* gates, const REAL* prev_h, const REAL* prev_c, REAL* c, REAL* tanh_c, REAL* h,
                           Size n, Size H, Key start, unsigned h_limit, REAL h_share, Key h_key,
                           const Key* h_place, unsigned c_limit, REAL c_share, Key c_key, const Key* c_place,
                           unsigned drop_limit, REAL drop_scale, Key drop_key, const Key* drop_place) {
    StepNoise noise = {start, {h_limit, h_share, told(h_key, h_place)}, {c_limit, c_share, told(c_key, c_place)},
                       {drop_limit, drop_scale, told(drop_key, drop_place)}};
    lstm_cell(gates, prev_h, prev_c, c, tanh_c, h, n, H, noise);
}

KERNEL(lstm_regularised_backward)(REAL* dh, REAL* dc, const REAL* gates, const REAL* prev_c, const REAL* tanh_c, REAL* da,
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

// The candidate g is activated and mixed with prev_h by z. A cell has `width` gates, z first and g last.
// With `activate_z`, z comes in as a pre-activation too.
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

KERNEL(gru_candidate_regularised_forward)(REAL* gates, const REAL* prev_h, REAL* h, Size n, Size H, Key start, unsigned h_limit,
                                    REAL h_share, Key h_key, const Key* h_place, unsigned drop_limit,
                                    REAL drop_scale, Key drop_key, const Key* drop_place) {
    StepNoise noise = {start, {h_limit, h_share, told(h_key, h_place)}, {0, 0, 0},
                       {drop_limit, drop_scale, told(drop_key, drop_place)}};
    interpolate(gates, prev_h, h, n, H, 3, false, noise);
}

KERNEL(gru_candidate_regularised_backward)(REAL* dh, const REAL* gates, const REAL* prev_h, REAL* da, Size n, Size H, Key start,
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

KERNEL(simplified_gru_regularised_forward)(REAL* gates, const REAL* prev_h, REAL* h, Size n, Size H, Key start, unsigned h_limit,
                                     REAL h_share, Key h_key, const Key* h_place, unsigned drop_limit,
                                     REAL drop_scale, Key drop_key, const Key* drop_place) {
    StepNoise noise = {start, {h_limit, h_share, told(h_key, h_place)}, {0, 0, 0},
                       {drop_limit, drop_scale, told(drop_key, drop_place)}};
    interpolate(gates, prev_h, h, n, H, 2, true, noise);
}

KERNEL(simplified_gru_regularised_backward)(REAL* dh, const REAL* gates, const REAL* prev_h, REAL* da, Size n, Size H, Key start,
                                      unsigned h_limit, REAL h_share, Key h_key, const Key* h_place,
                                      unsigned drop_limit, REAL drop_scale, Key drop_key, const Key* drop_place) {
    StepNoise noise = {start, {h_limit, h_share, told(h_key, h_place)}, {0, 0, 0},
                       {drop_limit, drop_scale, told(drop_key, drop_place)}};
    interpolate_backward(dh, gates, prev_h, da, n, H, 2, noise);
}
