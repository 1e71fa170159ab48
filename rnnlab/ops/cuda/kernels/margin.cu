// Maximum over the vectors of a set, and the multi-label margin loss.

KERNEL(max_pool)(const REAL* x, REAL* values, Size* slots, Size n, Size L, Size V) {
    FOR_EACH(i, n * V) {
        const REAL* column = x + i / V * L * V + i % V;
        REAL most = column[0];
        Size place = 0;
        for (Size slot = 1; slot < L; ++slot) {
            REAL value = column[slot * V];
            if (value > most || (value != value && most == most)) most = value, place = slot;
        }
        values[i] = most;
        slots[i] = place;
    }
}

KERNEL(max_pool_gradient)(const REAL* dvalues, const Size* slots, REAL* dx, Size n, Size L, Size V) {
    FOR_EACH(i, n * L * V) {
        Size element = i / (L * V) * V + i % V;
        dx[i] = slots[element] == i / V % L ? dvalues[element] : REAL(0);
    }
}

// A block for each row. d[word] is -1, then -2 minus the number of the word's terms above zero; for any other column j,
// d[j] is the number of its terms above zero.
BLOCK_KERNEL(multilabel_margin)(const REAL* scores, const Size* words, REAL* dscores, REAL* losses, Size M, Size V,
                                Size K, REAL scale) {
    SHARED(REAL, workspace);
    for (Size row = blockIdx.x; row < M; row += gridDim.x) {
        const REAL* s = scores + row * V;
        const Size* present = words + row * K;
        REAL* d = dscores + row * V;
        REAL loss = 0;
        for (Size j = threadIdx.x; j < V; j += blockDim.x) d[j] = 0;
        __syncthreads();
        for (Size k = threadIdx.x; k < K; k += blockDim.x)
            if (present[k] >= 0) d[present[k]] = -1;  // threads with equal words write the same value
        __syncthreads();
        for (Size k = 0; k < K; ++k) {
            Size word = present[k];
            if (word < 0 || d[word] != REAL(-1)) continue;  // a repeated word is counted once
            REAL shift = 1 - s[word], count = 0;
            for (Size j = threadIdx.x; j < V; j += blockDim.x) {
                REAL gap = s[j] + shift;
                if (!(gap <= 0) && d[j] >= 0) {  // NaN is counted, so that it reaches the loss
                    loss += gap;
                    d[j] += 1;
                    count += 1;
                }
            }
            count = block_sum(count, workspace);
            __syncthreads();
            if (threadIdx.x == 0) d[word] = -2 - count;
            __syncthreads();
        }
        __syncthreads();  // all threads have compared d[word] with -1
        for (Size j = threadIdx.x; j < V; j += blockDim.x) d[j] = scale * (d[j] < 0 ? d[j] + 2 : d[j]);
        loss = block_sum(loss, workspace);
        if (threadIdx.x == 0) losses[row] = loss;
    }
}
