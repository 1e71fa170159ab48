// Scores of classes: softmax, the largest scores, and draws.

// ---------------------------------------------------------------- scores

BLOCK_KERNEL(softmax_cross_entropy)(const REAL* scores, const Size* targets, const REAL* scales, REAL* dscores,
                                    REAL* losses, Size M, Size V, REAL one_scale, REAL smoothing) {
    SHARED(REAL, workspace);
    REAL certain = REAL(1) - smoothing, shared = smoothing / REAL(V);
    for (Size row = blockIdx.x; row < M; row += gridDim.x) {
        const REAL* x = scores + row * V;
        REAL* d = dscores + row * V;
        REAL most = REAL(-INFINITY), total = 0, shifted = 0, scale = scales ? scales[row] : one_scale;
        for (Size j = threadIdx.x; j < V; j += blockDim.x) most = largest(x[j], most);
        most = block_max(most, workspace);
        for (Size j = threadIdx.x; j < V; j += blockDim.x) {
            total += exp(x[j] - most);
            shifted += x[j] - most;
        }
        total = block_sum(total, workspace);
        REAL expected = certain * (x[targets[row]] - most);
        if (smoothing != REAL(0)) expected += shared * block_sum(shifted, workspace);
        __syncthreads();  // dscores may be scores
        for (Size j = threadIdx.x; j < V; j += blockDim.x)
            d[j] = exp(x[j] - most) * (scale / total) - scale * shared - (j == targets[row] ? scale * certain : 0);
        if (threadIdx.x == 0) losses[row] = log(total) - expected;
    }
}

BLOCK_KERNEL(log_softmax)(const REAL* scores, REAL* out, Size M, Size V) {
    SHARED(REAL, workspace);
    for (Size row = blockIdx.x; row < M; row += gridDim.x) {
        const REAL* x = scores + row * V;
        REAL most = REAL(-INFINITY), total = 0;
        for (Size j = threadIdx.x; j < V; j += blockDim.x) most = largest(x[j], most);
        most = block_max(most, workspace);
        for (Size j = threadIdx.x; j < V; j += blockDim.x) total += exp(x[j] - most);
        total = log(block_sum(total, workspace));
        for (Size j = threadIdx.x; j < V; j += blockDim.x) out[row * V + j] = x[j] - most - total;
    }
}

// ---------------------------------------------------------------- search

// Whether x in column i comes before y in column j: the larger first, NaN first of all, then the lower column.
__device__ inline bool beats(REAL x, Size i, REAL y, Size j) {
    bool larger = x > y || (x != x && y == y), smaller = y > x || (y != y && x == x);
    return larger || (!smaller && i < j);
}

// The columns and values (n, count) of the largest scores of each row, largest first. Each pass over a row finds the
// largest score that comes after the one before.
BLOCK_KERNEL(top)(const REAL* scores, Size* columns, REAL* values, Size n, Size V, Size count) {
    SHARED(Size, best_columns);  // (threads,), and as many values; the number of threads is a power of two
    REAL* best_values = reinterpret_cast<REAL*>(best_columns + blockDim.x);
    for (Size row = blockIdx.x; row < n; row += gridDim.x) {
        const REAL* x = scores + row * V;
        REAL last = REAL(NAN);
        Size last_column = -1;  // before all others
        for (Size rank = 0; rank < count; ++rank) {
            REAL best = REAL(-INFINITY);
            Size column = V;
            for (Size j = threadIdx.x; j < V; j += blockDim.x)
                if (beats(x[j], j, best, column) && beats(last, last_column, x[j], j)) best = x[j], column = j;
            best_values[threadIdx.x] = best;
            best_columns[threadIdx.x] = column;
            __syncthreads();
            for (unsigned half = blockDim.x / 2; half; half /= 2) {
                unsigned mine = threadIdx.x, other = mine + half;
                if (mine < half &&
                    beats(best_values[other], best_columns[other], best_values[mine], best_columns[mine])) {
                    best_values[mine] = best_values[other];
                    best_columns[mine] = best_columns[other];
                }
                __syncthreads();
            }
            last = best_values[0];
            last_column = best_columns[0];
            if (threadIdx.x == 0) {
                columns[row * count + rank] = last > REAL(-INFINITY) || last != last ? last_column : 0;
                values[row * count + rank] = last;
            }
            __syncthreads();
        }
    }
}

// The first column of each row at which the sum of exp(inverse * score) exceeds its uniform share of the total.
BLOCK_KERNEL(draw)(const REAL* scores, const double* uniform, Size* columns, Size n, Size V, REAL inverse) {
    SHARED(double, sums);  // (threads,), of each thread's columns, then the workspace of the maximum
    REAL* workspace = reinterpret_cast<REAL*>(sums + blockDim.x);
    Size length = (V + blockDim.x - 1) / blockDim.x, first = threadIdx.x * length;
    for (Size row = blockIdx.x; row < n; row += gridDim.x) {
        const REAL* x = scores + row * V;
        REAL most = REAL(-INFINITY);
        for (Size j = threadIdx.x; j < V; j += blockDim.x) most = largest(x[j], most);
        most = block_max(most, workspace);
        double own = 0;
        for (Size j = first; j < V && j < first + length; ++j) own += exp((x[j] - most) * inverse);
        sums[threadIdx.x] = own;
        __syncthreads();
        if (threadIdx.x == 0) {
            Size column = V ? V - 1 : 0;
            if (most != most) {
                for (column = 0; x[column] == x[column];) ++column;
            } else if (most > REAL(-INFINITY)) {
                double total = 0, before = 0, passed = 0;
                for (unsigned k = 0; k < blockDim.x; ++k) total += sums[k];
                double point = uniform[row] * total;
                Size found = 0;
                for (unsigned k = 0; k < blockDim.x && passed <= point; ++k)
                    if (sums[k] > 0) {
                        before = passed;
                        found = k;
                        passed += sums[k];
                    }
                for (Size j = found * length; j < V && j < (found + 1) * length && before <= point; ++j) {
                    double probability = exp((x[j] - most) * inverse);
                    if (probability > 0) {
                        column = j;
                        before += probability;
                    }
                }
            }
            columns[row] = column;
        }
        __syncthreads();  // the sums are read until here
    }
}
