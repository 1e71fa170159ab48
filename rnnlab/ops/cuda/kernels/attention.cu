// A block works on one query. Its L scores lie in shared memory, the workspace of the reductions behind them.
// The strides are those of the rows of slots, weights and dscores.

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

// The softmax of the scores over the existing slots, and the memory's sum by these weights.
__device__ inline void attend(REAL* scores, const REAL* memory, const Size* slots, REAL* weights, REAL* context,
                              Size L, Size C) {
    REAL* workspace = scores + L;
    REAL most = REAL(-INFINITY), total = 0;
    for (Size i = threadIdx.x; i < L; i += blockDim.x)
        if (slots[i] >= 0) most = largest(scores[i], most);
    most = block_max(most, workspace);
    for (Size i = threadIdx.x; i < L; i += blockDim.x) {
        scores[i] = slots[i] >= 0 ? exp(scores[i] - most) : REAL(0);
        total += scores[i];
    }
    total = block_sum(total, workspace);
    for (Size i = threadIdx.x; i < L; i += blockDim.x)
        weights[i] = scores[i] = slots[i] >= 0 ? scores[i] / total : REAL(0);
    __syncthreads();
    for (Size j = threadIdx.x; j < C; j += blockDim.x) {
        REAL sum = 0;
#pragma unroll 8
        for (Size i = 0; i < L; ++i) {
            REAL value = slots[i] >= 0 ? memory[slots[i] * C + j] : REAL(0);  // several are loaded at a time
            sum += scores[i] * value;
        }
        context[j] = sum;
    }
    __syncthreads();  // before the scores are written again
}

BLOCK_KERNEL(additive_attention_forward)(const REAL* query, const REAL* keys, const REAL* v, const REAL* memory,
                                         const Size* slots, REAL* weights, REAL* context, Size n, Size L, Size A,
                                         Size C, Size slots_stride, Size weights_stride) {
    SHARED(REAL, scores);
    for (Size row = blockIdx.x; row < n; row += gridDim.x) {
        const Size* own = slots + row * slots_stride;
        for (Size i = threadIdx.x / WARP; i < L; i += blockDim.x / WARP) {
            if (own[i] < 0) continue;
            REAL score = additive_score(query + row * A, keys + own[i] * A, v, A);
            if (threadIdx.x % WARP == 0) scores[i] = score;
        }
        __syncthreads();
        attend(scores, memory, own, weights + row * weights_stride, context + row * C, L, C);
    }
}

BLOCK_KERNEL(dot_attention_forward)(const REAL* query, const REAL* keys, const REAL* memory, const Size* slots,
                                    REAL* weights, REAL* context, Size n, Size L, Size A, Size C,
                                    Size slots_stride, Size weights_stride) {
    SHARED(REAL, scores);
    for (Size row = blockIdx.x; row < n; row += gridDim.x) {
        const Size* own = slots + row * slots_stride;
        for (Size i = threadIdx.x / WARP; i < L; i += blockDim.x / WARP) {
            if (own[i] < 0) continue;
            REAL score = dot(query + row * A, keys + own[i] * A, A);
            if (threadIdx.x % WARP == 0) scores[i] = score;
        }
        __syncthreads();
        attend(scores, memory, own, weights + row * weights_stride, context + row * C, L, C);
    }
}

// Turns the gradients of the weights, in dscores, and of the context into that of the scores.
__device__ inline void scores_gradient(REAL* scores, const REAL* dcontext, const REAL* memory, const Size* slots,
                                       const REAL* weights, REAL* dscores, Size L, Size C) {
    REAL* workspace = scores + L;
    for (Size i = threadIdx.x / WARP; i < L; i += blockDim.x / WARP) {
        if (slots[i] < 0) continue;
        REAL through_context = dot(dcontext, memory + slots[i] * C, C);
        if (threadIdx.x % WARP == 0) scores[i] = weights[i] * (dscores[i] + through_context);
    }
    __syncthreads();
    REAL total = 0;
    for (Size i = threadIdx.x; i < L; i += blockDim.x)
        if (slots[i] >= 0) total += scores[i];
    total = block_sum(total, workspace);
    for (Size i = threadIdx.x; i < L; i += blockDim.x)
        dscores[i] = scores[i] = slots[i] >= 0 ? scores[i] - weights[i] * total : REAL(0);
    __syncthreads();
}

// A number of several slots' keys and of their gradients, loaded before any is written: a thread waits for memory once
// for all of them. A row has no slot twice.
#define AT_A_TIME 8

struct Loaded {
    Size place[AT_A_TIME];  // negative: no slot
    REAL key[AT_A_TIME], dkey[AT_A_TIME];
    __device__ Loaded(const REAL* keys, const REAL* dkeys, const Size* slots, Size first, Size L, Size A, Size j) {
#pragma unroll
        for (int k = 0; k < AT_A_TIME; ++k) {
            Size slot = first + k < L ? slots[first + k] : -1;
            place[k] = slot < 0 ? -1 : slot * A + j;
            key[k] = slot < 0 ? REAL(0) : keys[place[k]];
            dkey[k] = slot < 0 ? REAL(0) : dkeys[place[k]];
        }
    }
};

BLOCK_KERNEL(additive_attention_backward)(const REAL* dcontext, const REAL* query, const REAL* keys, const REAL* v,
                                          const REAL* memory, const Size* slots, const REAL* weights,
                                          REAL* dscores, REAL* dquery, REAL* dkeys, REAL* dv, Size n, Size L,
                                          Size A, Size C, Size slots_stride, Size weights_stride,
                                          Size dscores_stride) {
    SHARED(REAL, scores);
    for (Size row = blockIdx.x; row < n; row += gridDim.x) {
        const Size* own = slots + row * slots_stride;
        scores_gradient(scores, dcontext + row * C, memory, own, weights + row * weights_stride,
                        dscores + row * dscores_stride, L, C);
        for (Size j = threadIdx.x; j < A; j += blockDim.x) {
            REAL q = query[row * A + j], dq = 0, dv_ = 0;
            for (Size i = 0; i < L; i += AT_A_TIME) {
                Loaded loaded(keys, dkeys, own, i, L, A, j);
#pragma unroll
                for (int k = 0; k < AT_A_TIME; ++k) {
                    if (loaded.place[k] < 0) continue;
                    REAL hidden = tanh(q + loaded.key[k]);
                    REAL da = scores[i + k] * v[j] * (REAL(1) - hidden * hidden);
                    dv_ += scores[i + k] * hidden;
                    dq += da;
                    dkeys[loaded.place[k]] = loaded.dkey[k] + da;
                }
            }
            dquery[row * A + j] += dq;
            dv[row * A + j] += dv_;
        }
        __syncthreads();
    }
}

BLOCK_KERNEL(dot_attention_backward)(const REAL* dcontext, const REAL* query, const REAL* keys, const REAL* memory,
                                     const Size* slots, const REAL* weights, REAL* dscores, REAL* dquery,
                                     REAL* dkeys, Size n, Size L, Size A, Size C, Size slots_stride,
                                     Size weights_stride, Size dscores_stride) {
    SHARED(REAL, scores);
    for (Size row = blockIdx.x; row < n; row += gridDim.x) {
        const Size* own = slots + row * slots_stride;
        scores_gradient(scores, dcontext + row * C, memory, own, weights + row * weights_stride,
                        dscores + row * dscores_stride, L, C);
        for (Size j = threadIdx.x; j < A; j += blockDim.x) {
            REAL q = query[row * A + j], dq = 0;
            for (Size i = 0; i < L; i += AT_A_TIME) {
                Loaded loaded(keys, dkeys, own, i, L, A, j);
#pragma unroll
                for (int k = 0; k < AT_A_TIME; ++k) {
                    if (loaded.place[k] < 0) continue;
                    dq += scores[i + k] * loaded.key[k];
                    dkeys[loaded.place[k]] = loaded.dkey[k] + scores[i + k] * q;
                }
            }
            dquery[row * A + j] += dq;
        }
        __syncthreads();
    }
}

KERNEL(attention_memory_gradient)(const REAL* dcontext, const REAL* weights, const Size* slots, REAL* dmemory,
                                  Size n, Size L, Size C, Size weights_stride, Size slots_stride) {
    FOR_EACH(k, n * C) {
        Size row = k / C, j = k % C;
        for (Size i = 0; i < L; ++i) {
            Size slot = slots[row * slots_stride + i];
            if (slot >= 0) dmemory[slot * C + j] += weights[row * weights_stride + i] * dcontext[k];
        }
    }
}
