// Kernels of each kind, and some with deliberate errors.
#ifndef HOST_SHIM
#define KERNEL(name) extern "C" __global__ void name
#define BLOCK_KERNEL(name) extern "C" __global__ void name
#define GRID_KERNEL(name) extern "C" __global__ void name
#define INDEX (blockIdx.x * (long long)blockDim.x + threadIdx.x)
#define STRIDE (gridDim.x * (long long)blockDim.x)
#define INFINITY __int_as_float(0x7f800000)
#define SHARED(type, name)                       \
    extern __shared__ unsigned char name##_raw[]; \
    type* name = (type*)name##_raw
// counter is zero at the start of the launch; the barriers of its blocks are counted from 1.
__device__ void part_barrier(unsigned* counter, unsigned blocks, unsigned round) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(counter, 1u);
        while (*(volatile unsigned*)counter < blocks * round) {}
        __threadfence();
    }
    __syncthreads();
}
#endif
#define ALL 0xffffffffu

KERNEL(scale)(const REAL* x, REAL* y, long long size, REAL factor, int power, const unsigned char* keep) {
    for (long long i = INDEX; i < size; i += STRIDE) {
        REAL value = x[i];
        for (int p = 1; p < power; p++) value *= x[i];
        y[i] = keep == nullptr || keep[i] ? factor * value : REAL(0);
    }
}

KERNEL(gather)(const REAL* x, const long long* index, const int* offset, REAL* y, unsigned long long size) {
    for (unsigned long long i = INDEX; i < size; i += STRIDE) y[i] = x[index[i] + offset[i]];
}

template <class Join>
__device__ __forceinline__ REAL reduce(REAL value, REAL* partial, Join join) {
    for (int n = 16; n > 0; n /= 2) value = join(value, __shfl_xor_sync(ALL, value, n));
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
    __syncthreads();
    value = partial[0];
    for (unsigned w = 1; w < blockDim.x / 32; w++) value = join(value, partial[w]);
    __syncthreads();
    return value;
}

// y = softmax(x), (rows, columns), a block for each row; the block is whole warps.
BLOCK_KERNEL(softmax)(const REAL* __restrict__ x, REAL* __restrict__ y, int columns) {
    __shared__ REAL partial[32];
    SHARED(REAL, row);
    REAL most = -INFINITY, sum = 0;
    for (int j = threadIdx.x; j < columns; j += blockDim.x) most = max(most, x[(long long)blockIdx.x * columns + j]);
    most = reduce(most, partial, [](REAL a, REAL b) { return max(a, b); });
    for (int j = threadIdx.x; j < columns; j += blockDim.x)
        sum += row[j] = exp(x[(long long)blockIdx.x * columns + j] - most);
    sum = reduce(sum, partial, [](REAL a, REAL b) { return a + b; });
    for (int j = threadIdx.x; j < columns; j += blockDim.x) y[(long long)blockIdx.x * columns + j] = row[j] / sum;
}

BLOCK_KERNEL(lanes)(int* ballots, int* down, int* from_three, int* any, int* halves) {
    int i = threadIdx.x, lane = i % 32;
    ballots[i] = (int)__ballot_sync(ALL, lane % 3 == 0);
    down[i] = __shfl_down_sync(ALL, i, 4);
    from_three[i] = __shfl_sync(ALL, i, 3);
    any[i] = __syncthreads_or(i == 5);
    if (lane < 16)  // only these lanes reach the shuffle
        halves[i] = __shfl_xor_sync(0x0000ffffu, i, 1);
    else
        halves[i] = -1;
}

// w <- sum of w over its ring neighbours, steps times; each step reads the results of all blocks from the step before.
GRID_KERNEL(ring)(REAL* w, REAL* next, int size, int steps, unsigned* counter) {
    SHARED(REAL, own);
    for (int t = 0; t < steps; t++) {
        REAL* from = t % 2 ? next : w;
        REAL* to = t % 2 ? w : next;
        for (int i = INDEX; i < size; i += STRIDE) {
            own[threadIdx.x] = from[(i + 1) % size];
            to[i] = from[(i + size - 1) % size] + own[threadIdx.x];
        }
        part_barrier(counter, gridDim.x, t + 1);
    }
}

KERNEL(writes_behind)(REAL* x, int size) {
    if (INDEX == 0) x[size] = 1;
}

KERNEL(writes_before)(REAL* x) {
    if (INDEX == 0) x[-1] = 1;
}

KERNEL(waits)(REAL* x) {
    __syncthreads();
    x[0] = 1;
}

BLOCK_KERNEL(leaves_early)(int count) {
    if ((int)threadIdx.x >= count) return;
    __syncthreads();
}

BLOCK_KERNEL(shuffles_without_all)(int* x, int count) {
    if ((int)threadIdx.x < count) x[threadIdx.x] = __shfl_xor_sync(ALL, x[threadIdx.x], 1);
}

BLOCK_KERNEL(writes_shared)(int size) {
    SHARED(int, s);
    s[size] = 1;
}

// A barrier is missing between the write and the read.
BLOCK_KERNEL(races)(REAL* x) {
    SHARED(REAL, s);
    if (threadIdx.x == 0) s[0] = 1;
    x[threadIdx.x] = s[0];
}

GRID_KERNEL(block_stays_away)(unsigned* counter) {
    if (blockIdx.x == 1) return;
    part_barrier(counter, gridDim.x, 1);
}
