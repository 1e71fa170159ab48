// Update rules, and sums and checks of a gradient.

// A rule's hyperparameters are in `numbers`, in double precision, and `scale` multiplies the gradient. Both are in
// memory, so that each launch of a graph can have its own. Unless the scale is finite, nothing is updated.
#define NUMBER(k) REAL(numbers[k])

// CuPy compiles kernels so that subnormal numbers are zero. A scale that would be one in single precision multiplies in
// double precision.
__device__ inline REAL scaled(REAL gradient, double scale) {
    return scale < 1e-30 ? static_cast<REAL>(gradient * scale) : gradient * static_cast<REAL>(scale);
}

KERNEL(sgd)(REAL* w, const REAL* dw, Size size, const double* numbers, const double* scale) {
    if (!isfinite(*scale)) return;
    double rate = numbers[0] * *scale;
    FOR_EACH(i, size) w[i] -= scaled(dw[i], rate);
}

KERNEL(momentum)(REAL* w, const REAL* dw, REAL* velocity, Size size, const double* numbers, const double* scale) {
    if (!isfinite(*scale)) return;
    double rate = numbers[0] * *scale;
    REAL mu = NUMBER(1);
    FOR_EACH(i, size) {
        velocity[i] = mu * velocity[i] - scaled(dw[i], rate);
        w[i] += velocity[i];
    }
}

// `fresh` is the factor of a new square in a running mean. It is computed in double precision, since 1 - decay loses
// most digits in single precision. A gradient is scaled before it is squared: where it has exploded, its own square is
// infinite and that of the scale is zero.

KERNEL(rmsprop)(REAL* w, const REAL* dw, REAL* cache, Size size, const double* numbers, const double* scale) {
    if (!isfinite(*scale)) return;
    REAL rate = NUMBER(0), decay = NUMBER(1), epsilon = NUMBER(2);
    REAL fresh = 1 - numbers[1];
    double factor = *scale;
    FOR_EACH(i, size) {
        REAL g = scaled(dw[i], factor);
        cache[i] = decay * cache[i] + fresh * (g * g);
        w[i] -= rate * (g / (sqrt(cache[i]) + epsilon));
    }
}

KERNEL(adagrad)(REAL* w, const REAL* dw, REAL* cache, Size size, const double* numbers, const double* scale) {
    if (!isfinite(*scale)) return;
    REAL rate = NUMBER(0), epsilon = NUMBER(1);
    double factor = *scale;
    FOR_EACH(i, size) {
        REAL g = scaled(dw[i], factor);
        cache[i] += g * g;
        w[i] -= rate * (g / (sqrt(cache[i]) + epsilon));
    }
}

KERNEL(adadelta)(REAL* w, const REAL* dw, REAL* cache, REAL* delta_cache, Size size, const double* numbers,
                 const double* scale) {
    if (!isfinite(*scale)) return;
    REAL rate = NUMBER(0), decay = NUMBER(1), epsilon = NUMBER(2);
    REAL fresh = 1 - numbers[1];
    double factor = *scale;
    FOR_EACH(i, size) {
        REAL g = scaled(dw[i], factor);
        cache[i] = decay * cache[i] + fresh * (g * g);
        REAL delta = sqrt(delta_cache[i] + epsilon) / sqrt(cache[i] + epsilon) * g;
        delta_cache[i] = decay * delta_cache[i] + fresh * (delta * delta);
        w[i] -= rate * delta;
    }
}

// The rate and epsilon include Adam's bias corrections; the last number is 1 - rate x decay.
KERNEL(adamw)(REAL* w, const REAL* dw, REAL* m, REAL* v, Size size, const double* numbers, const double* scale) {
    if (!isfinite(*scale)) return;
    REAL rate = NUMBER(0), beta1 = NUMBER(1), beta2 = NUMBER(2), epsilon = NUMBER(3), keep = NUMBER(4);
    REAL fresh_m = 1 - numbers[1], fresh_v = 1 - numbers[2];
    double factor = *scale;
    FOR_EACH(i, size) {
        REAL g = scaled(dw[i], factor);
        m[i] = beta1 * m[i] + fresh_m * g;
        v[i] = beta2 * v[i] + fresh_v * (g * g);
        w[i] = keep * w[i] - rate * (m[i] / (sqrt(v[i]) + epsilon));
    }
}

KERNEL(decay_weights)(REAL* w, Size size, const double* numbers, const double* scale) {
    if (!isfinite(*scale)) return;
    REAL keep = NUMBER(0);
    FOR_EACH(i, size) w[i] *= keep;
}

KERNEL(move_towards)(REAL* x, const REAL* target, Size size, REAL rate) {
    FOR_EACH(i, size) x[i] += rate * (target[i] - x[i]);
}

// The sum of squares of each block's share, in double precision; a second launch, of one block, adds them.
BLOCK_KERNEL(sum_of_squares)(const REAL* x, double* partial, Size size) {
    SHARED(double, workspace);
    double total = 0;
    FOR_EACH(i, size) total += static_cast<double>(x[i]) * x[i];
    total = block_sum_double(total, workspace);
    if (threadIdx.x == 0) partial[blockIdx.x] = total;
}

BLOCK_KERNEL(sum)(const double* partial, double* total, Size size) {
    SHARED(double, workspace);
    double mine = 0;
    for (Size i = threadIdx.x; i < size; i += blockDim.x) mine += partial[i];
    mine = block_sum_double(mine, workspace);
    if (threadIdx.x == 0) *total = mine;
}

KERNEL(clip_values)(REAL* x, Size size, REAL bound) {
    FOR_EACH(i, size) x[i] = x[i] > bound ? bound : x[i] < -bound ? -bound : x[i];
}

// Writes the loss, the norm of a gradient and `columns` terms of the loss to the next row of `log`, and to `scale` the
// factor that brings the norm to at most `most`. A term whose bit in `given` is 0 is written as NaN. Once a loss or a
// norm was not finite, the factor is NaN, so that no rule updates anything. `state` counts the rows since the log was
// read, and those that were not finite. `squares` is the sum of squares of the gradient before its elements were
// clipped, `clipped` after.
KERNEL(record_gradient)(const double* loss, const double* squares, const double* clipped, const double* terms,
                         double* log, Size* state, double* scale, Size rows, Size columns, Size given, double most) {
    FOR_EACH(i, 1) {
        double norm = sqrt(*squares), left = sqrt(*clipped);
        Size row = state[0]++;
        if (row < rows) {
            double* own = log + row * (2 + columns);
            own[0] = *loss;
            own[1] = norm;
            for (Size k = 0; k < columns; k++) own[2 + k] = given >> k & 1 ? terms[k] : NAN;
        }
        if (!isfinite(*loss) || !isfinite(norm)) state[1]++;
        *scale = state[1] ? NAN : left > most ? most / left : 1.0;
    }
}
