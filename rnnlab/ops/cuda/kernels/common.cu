// The primitives that CuPy does not provide, as plain CUDA C. Each kernel implements the primitive of the same
// name in rnnlab/ops/api.py; arrays are C-contiguous unless a kernel is given the distance between their rows.
// Compiled for one dtype at a time: REAL is float or double.
//
//     KERNEL         every thread works independently; a grid of any size does all the work
//     BLOCK_KERNEL   the threads of a block work on a row together
//     GRID_KERNEL    all blocks run at once, and some wait for each other
//
// No atomics on floating-point numbers: two runs give the same bits. Without a GPU the same source is compiled
// for the host with HOST_SHIM defined, which provides what CUDA has built in.
//
// This file begins the source; the others follow in the order of cuda_source.FILES.

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

// The blocks that share `counter` wait for each other and see what the others wrote before. `counter` is zero at the
// launch and only grows, so that a block may still wait at one barrier while others have reached the next. `round`
// counts the barriers from 1.
__device__ inline void part_barrier(unsigned* counter, unsigned blocks, unsigned round) {
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned all = blocks * round, arrived;
#if __CUDA_ARCH__ >= 700
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
        do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(arrived) : "l"(counter) : "memory");
        while (arrived < all);
#else
        __threadfence();
        atomicAdd(counter, 1u);
        do arrived = *static_cast<volatile unsigned*>(counter);
        while (arrived < all);
        __threadfence();
#endif
    }
    __syncthreads();
}
#endif

typedef long long Size;           // of arrays, and the type of indices in them
typedef unsigned long long Seed;  // of masks

// The elements that a thread works on, for any size of the grid.
#define FOR_EACH(i, size)                                                                                    \
    for (Size i = static_cast<Size>(blockIdx.x) * blockDim.x + threadIdx.x; i < (size);                      \
         i += static_cast<Size>(gridDim.x) * blockDim.x)

#define WARP 32

struct alignas(16) Four {
    REAL x[4];
};

// ---------------------------------------------------------------- arithmetic

__device__ inline REAL sigmoid_of(REAL x) { return REAL(1) / (REAL(1) + exp(-x)); }

__device__ inline REAL largest(REAL x, REAL y) { return x > y || x != x ? x : y; }  // NaN if x is

__device__ inline REAL sum(REAL x, REAL y) { return x + y; }

// Combines the values of a block's threads; every thread gets the result. `workspace` has an element per warp.
#define REDUCTION(name, combine, neutral, type)                                                              \
    __device__ inline type name(type value, type* workspace) {                                               \
        int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = (blockDim.x + WARP - 1) / WARP;    \
        for (int distance = WARP / 2; distance; distance /= 2)                                               \
            value = combine(value, __shfl_xor_sync(0xffffffffu, value, distance));                           \
        if (warps == 1) return value;                                                                        \
        __syncthreads(); /* the workspace may still be read by the previous call */                              \
        if (lane == 0) workspace[warp] = value;                                                              \
        __syncthreads();                                                                                     \
        value = neutral;                                                                                     \
        for (int k = 0; k < warps; ++k) value = combine(value, workspace[k]);                                \
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
