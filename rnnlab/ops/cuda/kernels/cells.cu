// One step of each recurrent cell, with and without dropout and zoneout. Masks are drawn where they are needed.

// ---------------------------------------------------------------- masks

// Whether element i of an array is drawn, bit for bit as in numpy/masks.py.
__device__ inline bool drawn(Seed limit, Seed seed, Seed i) {
    Seed z = (i + 1) * 0x9E3779B97F4A7C15ull + seed;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return ((z ^ (z >> 31)) >> 32) < limit;
}

__device__ inline bool drawn_of_step(unsigned limit, Seed seed, Seed i) {
    unsigned z = static_cast<unsigned>(i + 1) * 0x9E3779B9u + static_cast<unsigned>(seed);
    z = (z ^ (z >> 17)) * 0xED5AD4BBu + static_cast<unsigned>(seed >> 32);
    z = (z ^ (z >> 11)) * 0xAC4C1B51u;
    z = (z ^ (z >> 15)) * 0x31848BABu;
    return (z ^ (z >> 14)) < limit;
}

// A seed comes as a number or, where each launch of a captured kernel uses another one, in memory.
__device__ inline Seed seed_of(Seed seed, const Seed* address) { return address ? *address : seed; }

KERNEL(dropout)(const REAL* x, REAL* out, Size size, REAL scale, Seed limit, Seed seed, const Seed* address) {
    seed = seed_of(seed, address);
    FOR_EACH(i, size) out[i] = x[i] * (drawn(limit, seed, i) ? REAL(0) : scale);
}

KERNEL(dropout_mask)(REAL* out, Size size, REAL scale, unsigned limit, Seed start, Seed seed, const Seed* address) {
    seed = seed_of(seed, address);
    FOR_EACH(i, size) out[i] = drawn_of_step(limit, seed, start + i) ? REAL(0) : scale;
}

// ---------------------------------------------------------------- cells

// Zoneout of an element of the state: drawn, or in inference its expectation, `share` of the previous value.
struct Zoneout {
    unsigned limit;
    REAL share;
    Seed seed;

    __device__ REAL forward(Seed i, REAL before, REAL computed) const {
        if (share != REAL(0)) return computed + share * (before - computed);
        return limit && drawn_of_step(limit, seed, i) ? before : computed;
    }

    // The part of d that goes through the cell; d is left as the part that skips it.
    __device__ REAL split(Seed i, REAL& d) const {
        REAL whole = d;
        if (share != REAL(0)) {
            d *= share;
            return whole - d;
        }
        bool stays = limit && drawn_of_step(limit, seed, i);
        d = stays ? whole : REAL(0);
        return stays ? REAL(0) : whole;
    }
};

// Dropout of an element of the candidate: the factor of the mask.
struct Dropout {
    unsigned limit;
    REAL scale;
    Seed seed;

    __device__ REAL factor(Seed i) const { return limit && drawn_of_step(limit, seed, i) ? REAL(0) : scale; }
};

// The masks of a step, whose element i is element start + i of all steps. A limit of zero draws nothing.
struct StepMasks {
    Seed start;
    Zoneout h, c;
    Dropout candidate;
};

__device__ inline StepMasks no_masks() { return {0, {0, 0, 0}, {0, 0, 0}, {0, 1, 0}}; }

KERNEL(rnn_forward)(REAL* gates, REAL* h, Size size) {
    FOR_EACH(i, size) {
        REAL now = tanh(gates[i]);
        gates[i] = now;
        h[i] = now;
    }
}

KERNEL(rnn_backward)(const REAL* dh, const REAL* gates, REAL* da, Size size) {
    FOR_EACH(i, size) da[i] = dh[i] * (REAL(1) - gates[i] * gates[i]);
}

KERNEL(rnn_regularised_forward)(
        REAL* gates, const REAL* prev_h, REAL* h, Size n, Size H, Seed start, unsigned limit, REAL share,
        Seed seed, const Seed* address) {
    Zoneout zoneout = {limit, share, seed_of(seed, address)};
    FOR_EACH(i, n * H) {
        REAL now = tanh(gates[i]);
        gates[i] = now;
        h[i] = zoneout.forward(start + i, prev_h[i], now);
    }
}

KERNEL(rnn_regularised_backward)(
        REAL* dh, const REAL* gates, REAL* da, Size n, Size H, Seed start, unsigned limit, REAL share,
        Seed seed, const Seed* address) {
    Zoneout zoneout = {limit, share, seed_of(seed, address)};
    FOR_EACH(i, n * H) da[i] = zoneout.split(start + i, dh[i]) * (REAL(1) - gates[i] * gates[i]);
}

__device__ inline void lstm_cell(REAL* gates, const REAL* prev_h, const REAL* prev_c, REAL* c, REAL* tanh_c, REAL* h,
                                 Size n, Size H, const StepMasks& masks) {
    FOR_EACH(i, n * H) {
        REAL* a = gates + (i / H) * 4 * H + i % H;
        REAL in = sigmoid_of(a[0]), f = sigmoid_of(a[H]), o = sigmoid_of(a[2 * H]), g = tanh(a[3 * H]);
        REAL now = f * prev_c[i] + in * (masks.candidate.factor(masks.start + i) * g), squashed = tanh(now);
        a[0] = in;
        a[H] = f;
        a[2 * H] = o;
        a[3 * H] = g;
        c[i] = masks.c.forward(masks.start + i, prev_c[i], now);
        tanh_c[i] = squashed;
        h[i] = prev_h ? masks.h.forward(masks.start + i, prev_h[i], o * squashed) : o * squashed;
    }
}

// The gradient of c_{t-1} through the cell; da is written. `dh` and `dc` are the parts that go through it.
__device__ inline REAL lstm_cell_backward(REAL dh, REAL dc, const REAL* a, REAL mask, REAL prev_c, REAL tanh_c,
                                          REAL* d, Size H) {
    REAL in = a[0], f = a[H], o = a[2 * H], g = a[3 * H];
    dc += dh * o * (REAL(1) - tanh_c * tanh_c);
    d[0] = dc * mask * g * in * (REAL(1) - in);
    d[H] = dc * prev_c * f * (REAL(1) - f);
    d[2 * H] = dh * tanh_c * o * (REAL(1) - o);
    d[3 * H] = dc * mask * in * (REAL(1) - g * g);
    return dc * f;
}

KERNEL(lstm_forward)(REAL* gates, const REAL* prev_c, REAL* c, REAL* tanh_c, REAL* h, Size n, Size H) {
    lstm_cell(gates, nullptr, prev_c, c, tanh_c, h, n, H, no_masks());
}

// Of dh + further, if that is not null.
KERNEL(lstm_backward)(const REAL* dh, const REAL* further, REAL* dc, const REAL* gates, const REAL* prev_c,
                      const REAL* tanh_c, REAL* da, Size n, Size H) {
    FOR_EACH(i, n * H) {
        Size first = (i / H) * 4 * H + i % H;
        REAL dnow = further ? dh[i] + further[i] : dh[i];
        dc[i] = lstm_cell_backward(dnow, dc[i], gates + first, REAL(1), prev_c[i], tanh_c[i], da + first, H);
    }
}

KERNEL(lstm_regularised_forward)(
        REAL* gates, const REAL* prev_h, const REAL* prev_c, REAL* c, REAL* tanh_c, REAL* h, Size n, Size H,
        Seed start, unsigned h_limit, REAL h_share, Seed h_seed, const Seed* h_address, unsigned c_limit,
        REAL c_share, Seed c_seed, const Seed* c_address, unsigned drop_limit, REAL drop_scale,
        Seed drop_seed, const Seed* drop_address) {
    StepMasks masks = {start,
                       {h_limit, h_share, seed_of(h_seed, h_address)},
                       {c_limit, c_share, seed_of(c_seed, c_address)},
                       {drop_limit, drop_scale, seed_of(drop_seed, drop_address)}};
    lstm_cell(gates, prev_h, prev_c, c, tanh_c, h, n, H, masks);
}

KERNEL(lstm_regularised_backward)(
        REAL* dh, REAL* dc, const REAL* gates, const REAL* prev_c, const REAL* tanh_c, REAL* da, Size n,
        Size H, Seed start, unsigned h_limit, REAL h_share, Seed h_seed, const Seed* h_address,
        unsigned c_limit, REAL c_share, Seed c_seed, const Seed* c_address, unsigned drop_limit,
        REAL drop_scale, Seed drop_seed, const Seed* drop_address) {
    StepMasks masks = {start,
                       {h_limit, h_share, seed_of(h_seed, h_address)},
                       {c_limit, c_share, seed_of(c_seed, c_address)},
                       {drop_limit, drop_scale, seed_of(drop_seed, drop_address)}};
    FOR_EACH(i, n * H) {
        Size first = (i / H) * 4 * H + i % H;
        REAL past = dc[i], mask = masks.candidate.factor(start + i);
        REAL through_h = masks.h.split(start + i, dh[i]), through_c = masks.c.split(start + i, past);
        dc[i] = past + lstm_cell_backward(through_h, through_c, gates + first, mask, prev_c[i], tanh_c[i],
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
                                   bool activate_z, const StepMasks& masks) {
    FOR_EACH(i, n * H) {
        REAL* a = gates + (i / H) * width * H + i % H;
        REAL z = activate_z ? sigmoid_of(a[0]) : a[0], g = tanh(a[(width - 1) * H]);
        REAL mixed = masks.candidate.factor(masks.start + i) * g;
        if (activate_z) a[0] = z;
        a[(width - 1) * H] = g;
        h[i] = masks.h.forward(masks.start + i, prev_h[i], mixed + z * (prev_h[i] - mixed));
    }
}

__device__ inline void interpolate_backward(REAL* dh, const REAL* gates, const REAL* prev_h, REAL* da, Size n, Size H,
                                            int width, const StepMasks& masks) {
    FOR_EACH(i, n * H) {
        const REAL* a = gates + (i / H) * width * H + i % H;
        REAL* d = da + (i / H) * width * H + i % H;
        REAL z = a[0], g = a[(width - 1) * H], mask = masks.candidate.factor(masks.start + i);
        REAL past = dh[i], through = masks.h.split(masks.start + i, past);
        d[0] = (prev_h[i] - mask * g) * z * (REAL(1) - z) * through;
        d[(width - 1) * H] = (REAL(1) - z) * through * (REAL(1) - g * g) * mask;
        dh[i] = past + through * z;
    }
}

KERNEL(gru_candidate_forward)(REAL* gates, const REAL* prev_h, REAL* h, Size n, Size H) {
    interpolate(gates, prev_h, h, n, H, 3, false, no_masks());
}

KERNEL(gru_candidate_backward)(REAL* dh, const REAL* gates, const REAL* prev_h, REAL* da, Size n, Size H) {
    interpolate_backward(dh, gates, prev_h, da, n, H, 3, no_masks());
}

KERNEL(gru_candidate_regularised_forward)(
        REAL* gates, const REAL* prev_h, REAL* h, Size n, Size H, Seed start, unsigned h_limit, REAL h_share,
        Seed h_seed, const Seed* h_address, unsigned drop_limit, REAL drop_scale, Seed drop_seed,
        const Seed* drop_address) {
    StepMasks masks = {start,
                       {h_limit, h_share, seed_of(h_seed, h_address)},
                       {0, 0, 0},
                       {drop_limit, drop_scale, seed_of(drop_seed, drop_address)}};
    interpolate(gates, prev_h, h, n, H, 3, false, masks);
}

KERNEL(gru_candidate_regularised_backward)(
        REAL* dh, const REAL* gates, const REAL* prev_h, REAL* da, Size n, Size H, Seed start,
        unsigned h_limit, REAL h_share, Seed h_seed, const Seed* h_address, unsigned drop_limit,
        REAL drop_scale, Seed drop_seed, const Seed* drop_address) {
    StepMasks masks = {start,
                       {h_limit, h_share, seed_of(h_seed, h_address)},
                       {0, 0, 0},
                       {drop_limit, drop_scale, seed_of(drop_seed, drop_address)}};
    interpolate_backward(dh, gates, prev_h, da, n, H, 3, masks);
}

KERNEL(simplified_gru_forward)(REAL* gates, const REAL* prev_h, REAL* h, Size n, Size H) {
    interpolate(gates, prev_h, h, n, H, 2, true, no_masks());
}

KERNEL(simplified_gru_backward)(REAL* dh, const REAL* gates, const REAL* prev_h, REAL* da, Size n, Size H) {
    interpolate_backward(dh, gates, prev_h, da, n, H, 2, no_masks());
}

KERNEL(simplified_gru_regularised_forward)(
        REAL* gates, const REAL* prev_h, REAL* h, Size n, Size H, Seed start, unsigned h_limit, REAL h_share,
        Seed h_seed, const Seed* h_address, unsigned drop_limit, REAL drop_scale, Seed drop_seed,
        const Seed* drop_address) {
    StepMasks masks = {start,
                       {h_limit, h_share, seed_of(h_seed, h_address)},
                       {0, 0, 0},
                       {drop_limit, drop_scale, seed_of(drop_seed, drop_address)}};
    interpolate(gates, prev_h, h, n, H, 2, true, masks);
}

KERNEL(simplified_gru_regularised_backward)(
        REAL* dh, const REAL* gates, const REAL* prev_h, REAL* da, Size n, Size H, Seed start,
        unsigned h_limit, REAL h_share, Seed h_seed, const Seed* h_address, unsigned drop_limit,
        REAL drop_scale, Seed drop_seed, const Seed* drop_address) {
    StepMasks masks = {start,
                       {h_limit, h_share, seed_of(h_seed, h_address)},
                       {0, 0, 0},
                       {drop_limit, drop_scale, seed_of(drop_seed, drop_address)}};
    interpolate_backward(dh, gates, prev_h, da, n, H, 2, masks);
}
