// CUDA's device language on a CPU: with this header g++ compiles the kernels, whose threads then run one at a time.
//
// KERNEL: a loop over blocks and threads. BLOCK_KERNEL: the threads of one block are fibers that take turns at
// barriers and shuffles; the blocks follow one another. GRID_KERNEL: the threads of all blocks are fibers at once.
// A launch returns 0, or 1 with a message in shim_error() if its threads can never all pass a barrier.
#pragma once

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cmath>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#ifdef __SSE2__
#include <pmmintrin.h>
#endif

#define __device__
#define __host__
#define __global__
#define __constant__ static
#define __forceinline__ inline
#define __noinline__
#define __restrict__
#define __launch_bounds__(...)
#define __shared__ static

#define KERNEL(name) static void name
#define BLOCK_KERNEL(name) static void name
#define GRID_KERNEL(name) static void name
#define INDEX (blockIdx.x * (long long)blockDim.x + threadIdx.x)
#define STRIDE (gridDim.x * (long long)blockDim.x)
#define SHARED(type, name) type* name = (type*)shim::shared_memory()

struct dim3 {
    unsigned x, y, z;
};
struct alignas(16) int4 {
    int x, y, z, w;
};
static dim3 threadIdx, blockIdx, blockDim, gridDim;
static const int warpSize = 32;

namespace shim {
namespace {

enum Kind { PLAIN, BLOCK, GRID };
enum Wait { READY, AT_BLOCK, AT_WARP, AT_GRID, RETURNED };

const size_t STACK = 64 * 1024, PAGE = 4096, LINE = 64;
const uint32_t POISON = 0xfffa5a5f;  // NaN as a float and, twice, as a double

struct Fiber;

struct Warp {
    Fiber* lanes;
    unsigned existing, waiting;  // a bit for each lane
};

struct Block {
    dim3 index;
    Fiber* threads;
    int arrived, votes;
    uint32_t* shared;
};

struct Fiber {
    Wait wait;
    const char* barrier;  // the function that it waits in
    const unsigned* counter;  // of a part's barrier
    unsigned mask;
    int source;      // the lane whose value it asks for
    uint64_t value;  // its value for the other lanes
    uint64_t received;
    int votes;  // of all threads at the barrier
    bool valid;
    bool started;
    int number, lane;
    dim3 thread;
    Block* block;
    Warp* warp;
    unsigned char* stack;
    jmp_buf place;
};

char error[512];
bool failed;
const char* kernel_name;
Kind kind;
jmp_buf scheduler;
Fiber* running;  // null in a KERNEL
std::unique_ptr<Fiber[]> pool;
size_t pool_size;
int block_size, block_count;
std::vector<Block> blocks;
std::vector<Warp> warps;
void (*body_call)(void*);
void* body;

[[noreturn]] void fail(const char* format, ...) {
    int length = snprintf(error, sizeof error, "%s: ", kernel_name);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error + length, sizeof error - length, format, arguments);
    va_end(arguments);
    failed = true;
    _longjmp(scheduler, 1);
}

void yield() {
    if (_setjmp(running->place) == 0) _longjmp(scheduler, 1);
}

Fiber& fiber_at(const char* barrier) {
    if (!running) fail("%s in a KERNEL: declare it BLOCK_KERNEL or GRID_KERNEL", barrier);
    running->barrier = barrier;
    return *running;
}

int block_barrier(const char* barrier, int vote) {
    Fiber& self = fiber_at(barrier);
    Block& block = *self.block;
    block.votes += vote != 0;
    if (++block.arrived < block_size) {
        self.wait = AT_BLOCK;
        yield();
        return self.votes;
    }
    int votes = block.votes;
    block.arrived = block.votes = 0;
    for (int i = 0; i < block_size; i++) {
        Fiber& other = block.threads[i];
        if (strcmp(other.barrier, barrier) != 0) fail("threads of one block are at %s and at %s", other.barrier, barrier);
        other.wait = READY;
        other.votes = votes;
    }
    return votes;
}

// The barrier of the `group` blocks that share a counter. It counts threads; the one in the kernel counts blocks.
void part_wait(unsigned* counter, int group, int round) {
    Fiber& self = fiber_at("part_barrier");
    if (kind != GRID) fail("part_barrier in a BLOCK_KERNEL: declare it GRID_KERNEL");
    if (!counter) fail("part_barrier without a counter");
    self.counter = counter;
    unsigned all = unsigned(block_size * group);
    if (*counter / all != unsigned(round - 1)) fail("part_barrier out of turn");
    if (++*counter % all) {
        self.wait = AT_GRID;
        yield();
        return;
    }
    for (int i = 0; i < block_size * block_count; i++)
        if (pool[i].wait == AT_GRID && pool[i].counter == counter) pool[i].wait = READY;
}

// All lanes of the mask come here. Each gets the value of its source and the votes of all, with a bit for each lane.
Fiber& warp_barrier(const char* barrier, unsigned mask, uint64_t value, int source) {
    Fiber& self = fiber_at(barrier);
    Warp& warp = *self.warp;
    unsigned lane = 1u << self.lane;
    if (!(mask & lane)) fail("%s: lane %d is not in its own mask %08x", barrier, self.lane, mask);
    mask &= warp.existing;
    self.mask = mask;
    self.value = value;
    self.source = source;
    warp.waiting |= lane;
    if ((warp.waiting & mask) != mask) {
        self.wait = AT_WARP;
        yield();
        return self;
    }
    unsigned votes = 0;
    for (int i = 0; i < 32; i++) {
        if (!(mask >> i & 1)) continue;
        Fiber& other = warp.lanes[i];
        if (strcmp(other.barrier, barrier) != 0 || other.mask != mask)
            fail("lanes of one warp are at %s with mask %08x and at %s with mask %08x", other.barrier, other.mask,
                 barrier, mask);
        votes |= unsigned(other.value != 0) << i;
    }
    for (int i = 0; i < 32; i++) {
        if (!(mask >> i & 1)) continue;
        Fiber& other = warp.lanes[i];
        other.votes = int(votes);
        other.valid = mask >> other.source & 1;
        if (other.valid) other.received = warp.lanes[other.source].value;
        other.wait = READY;
    }
    warp.waiting &= ~mask;
    return self;
}

template <class T>
T shuffle(const char* barrier, unsigned mask, T value, int source) {
    static_assert(std::is_arithmetic<T>::value && sizeof(T) <= 8, "only numbers are shuffled");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    Fiber& self = warp_barrier(barrier, mask, bits, source);
    if (!self.valid) return std::is_floating_point<T>::value ? T(NAN) : T(0x7eadbeef);  // no such lane in the mask
    memcpy(&value, &self.received, sizeof value);
    return value;
}

int lane_at(const char* barrier) { return fiber_at(barrier).lane; }

uint32_t* shared_memory() { return fiber_at("SHARED").block->shared; }

void fiber_main() {
    for (;;) {
        body_call(body);
        running->wait = RETURNED;
        yield();
    }
}

void start(Fiber& fiber) {
    if (!fiber.stack) {
        void* memory = mmap(nullptr, STACK + PAGE, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED || mprotect(memory, PAGE, PROT_NONE) != 0) {
            perror("stack of a simulated thread");
            abort();
        }
        fiber.stack = (unsigned char*)memory + PAGE;
    }
    static ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = fiber.stack;
    context.uc_stack.ss_size = STACK - size_t(fiber.number % 64) * 192;  // the stacks use different cache lines
    context.uc_link = nullptr;
    makecontext(&context, fiber_main, 0);
    fiber.started = true;
    setcontext(&context);
}

void resume(Fiber& fiber) {
    running = &fiber;
    threadIdx = fiber.thread;
    blockIdx = fiber.block->index;
    if (_setjmp(scheduler) != 0) return;
    if (fiber.started) _longjmp(fiber.place, 1);
    start(fiber);
}

// The threads run in a shuffled order, so that a missing barrier is more likely to show.
std::vector<int> shuffled(int size) {
    std::vector<int> order(size);
    uint32_t state = 231;
    for (int i = 0; i < size; i++) {
        state = state * 1664525u + 1013904223u;
        int other = int((state >> 8) % unsigned(i + 1));
        order[i] = order[other];
        order[other] = i;
    }
    return order;
}

void report_deadlock() {
    for (Block& block : blocks) {
        Fiber* first = nullptr;
        int waiting = 0, returned = 0;
        for (int i = 0; i < block_size; i++) {
            Fiber& fiber = block.threads[i];
            if (fiber.wait == RETURNED)
                returned++;
            else if (!first)
                first = &fiber;
            if (first && fiber.wait == first->wait) waiting++;
        }
        if (!first) continue;
        snprintf(error, sizeof error,
                 "%s: deadlock in block (%u, %u, %u): %d threads wait at %s, the first of them (%u, %u, %u), while %d "
                 "wait elsewhere and %d have returned",
                 kernel_name, block.index.x, block.index.y, block.index.z, waiting, first->barrier, first->thread.x,
                 first->thread.y, first->thread.z, block_size - waiting - returned, returned);
        if (first->wait != AT_GRID) return;  // the barrier of a grid waits for a thread that is stuck in another block
    }
}

// Runs a warp until it waits for others; true if any of its threads could run.
bool run_warp(Warp& warp, const std::vector<int>& lanes) {
    bool any = false;
    for (bool progress = true; progress;) {
        progress = false;
        for (int lane : lanes) {
            if (!(warp.existing >> lane & 1) || warp.lanes[lane].wait != READY) continue;
            any = progress = true;
            resume(warp.lanes[lane]);
            if (failed) return true;
        }
    }
    return any;
}

void run_fibers(size_t threads) {
    std::vector<int> order = shuffled(int(warps.size())), lanes = shuffled(32);
    for (bool progress = true; progress;) {
        progress = false;
        for (int i : order) {
            progress |= run_warp(warps[i], lanes);
            if (failed) return;
        }
    }
    for (size_t i = 0; i < threads && !failed; i++)
        if (pool[i].wait != RETURNED) {
            failed = true;
            report_deadlock();
        }
}

void set_up(Block& block, int number, uint32_t* shared, size_t words) {
    block.threads = &pool[size_t(number) * block_size];
    block.arrived = block.votes = 0;
    block.shared = shared;
    for (size_t i = 0; i < words; i++) shared[i] = POISON;
    int warps_each = (block_size + 31) / 32;
    for (int i = 0; i < block_size; i++) {
        Fiber& fiber = block.threads[i];
        unsigned u = unsigned(i);
        fiber.thread = {u % blockDim.x, u / blockDim.x % blockDim.y, u / blockDim.x / blockDim.y};
        fiber.block = &block;
        fiber.number = number * block_size + i;
        fiber.lane = i % 32;
        fiber.warp = &warps[number * warps_each + i / 32];
        fiber.wait = READY;
        fiber.barrier = "its start";
        if (fiber.lane == 0) *fiber.warp = {&fiber, 0, 0};
        fiber.warp->existing |= 1u << fiber.lane;
    }
}

int launch_fibers(size_t shared_bytes) {
    int total = block_count, together = kind == GRID ? total : 1;
    block_count = together;
    size_t threads = size_t(together) * block_size;
    if (pool_size < threads) {
        std::unique_ptr<Fiber[]> larger(new Fiber[threads]());
        for (size_t i = 0; i < pool_size; i++) larger[i].stack = pool[i].stack;
        pool = std::move(larger);
        pool_size = threads;
    }
    // Each block's memory is aligned to a cache line and has a guard of at least one line behind it.
    size_t words = (shared_bytes + 2 * LINE - 1) / LINE * LINE / 4;
    std::vector<uint32_t> storage(words * together + LINE / 4);
    uint32_t* shared = storage.data() + (LINE - (uintptr_t)storage.data() % LINE) % LINE / 4;
    blocks.resize(together);
    warps.resize(size_t(together) * ((block_size + 31) / 32));
    failed = false;
    for (int first = 0; first < total && !failed; first += together) {
        for (int i = 0; i < together; i++) {
            unsigned number = unsigned(first + i);
            blocks[i].index = {number % gridDim.x, number / gridDim.x % gridDim.y, number / gridDim.x / gridDim.y};
            set_up(blocks[i], i, shared + i * words, words);
        }
        run_fibers(threads);
        for (int i = 0; i < together && !failed; i++)
            for (size_t j = (shared_bytes + 3) / 4; j < words && !failed; j++)
                if (blocks[i].shared[j] != POISON) {
                    failed = true;
                    snprintf(error, sizeof error, "%s: wrote behind its %zu bytes of shared memory", kernel_name,
                             shared_bytes);
                }
    }
    for (size_t i = 0; i < threads && failed; i++)
        if (pool[i].wait != RETURNED) pool[i].started = false;  // it starts afresh
    return failed;
}

template <class Body>
int launch_loops(Body& call) {
    running = nullptr;
    if (_setjmp(scheduler) != 0) return 1;
    for (blockIdx.z = 0; blockIdx.z < gridDim.z; blockIdx.z++)
        for (blockIdx.y = 0; blockIdx.y < gridDim.y; blockIdx.y++)
            for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++)
                for (threadIdx.z = 0; threadIdx.z < blockDim.z; threadIdx.z++)
                    for (threadIdx.y = 0; threadIdx.y < blockDim.y; threadIdx.y++)
                        for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++) call();
    return 0;
}

// CuPy compiles with -ftz=true: subnormal numbers are flushed to zero, here if the processor can do it.
class FlushToZero {
#ifdef __SSE2__
    unsigned before = _mm_getcsr();

   public:
    FlushToZero() { _mm_setcsr(before | 0x8040); }  // results and operands
    ~FlushToZero() { _mm_setcsr(before); }
#endif
};

template <class Body>
int launch(Kind of_kind, const char* name, const unsigned* grid, const unsigned* block, size_t shared, Body call) {
    FlushToZero flush;
    kind = of_kind;
    kernel_name = name;
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block[0], block[1], block[2]};
    block_size = int(block[0] * block[1] * block[2]);
    block_count = int(grid[0] * grid[1] * grid[2]);
    if (kind == PLAIN) return launch_loops(call);
    body = &call;
    body_call = [](void* pointer) { (*static_cast<Body*>(pointer))(); };
    return launch_fibers(shared);
}

}  // namespace
}  // namespace shim

extern "C" const char* shim_error() { return shim::error; }

#define __syncthreads() ((void)shim::block_barrier("__syncthreads", 0))
#define __syncthreads_or(vote) (shim::block_barrier("__syncthreads_or", (vote)) != 0)
#define __syncthreads_and(vote) (shim::block_barrier("__syncthreads_and", !(vote)) == 0)
#define __syncthreads_count(vote) (shim::block_barrier("__syncthreads_count", (vote)))
#define part_barrier(counter, blocks, round) shim::part_wait(counter, int(blocks), int(round))

inline void __syncwarp(unsigned mask = ~0u) { shim::warp_barrier("__syncwarp", mask, 0, 0); }

template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
    int self = shim::lane_at("__shfl_sync");
    return shim::shuffle("__shfl_sync", mask, value, (self & ~(width - 1)) | (lane & (width - 1)));
}

template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    int self = shim::lane_at("__shfl_down_sync"), other = self + int(delta);
    return shim::shuffle("__shfl_down_sync", mask, value, other / width == self / width ? other : self);
}

template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    int self = shim::lane_at("__shfl_up_sync"), other = self - int(delta);
    return shim::shuffle("__shfl_up_sync", mask, value, other >= self / width * width ? other : self);
}

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
    int self = shim::lane_at("__shfl_xor_sync"), other = self ^ bits;
    return shim::shuffle("__shfl_xor_sync", mask, value, other / width <= self / width ? other : self);
}

inline unsigned __ballot_sync(unsigned mask, int vote) {
    return unsigned(shim::warp_barrier("__ballot_sync", mask, vote != 0, 0).votes);
}
inline unsigned __float_as_uint(float value) {
    unsigned bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

inline float __uint_as_float(unsigned bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

inline int __any_sync(unsigned mask, int vote) { return __ballot_sync(mask, vote) != 0; }
inline int __all_sync(unsigned mask, int vote) { return __ballot_sync(mask, !vote) == 0; }

inline void __threadfence() {}
inline void __threadfence_block() {}
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }

template <class T>
T __ldg(const T* pointer) {
    return *pointer;
}

template <class T>
T __ldcg(const T* pointer) {
    return *pointer;
}

template <class T, class U>
T atomicAdd(T* pointer, U value) {
    T old = *pointer;
    *pointer = T(old + value);
    return old;
}

template <class T, class U>
T atomicMax(T* pointer, U value) {
    T old = *pointer;
    *pointer = old < T(value) ? T(value) : old;
    return old;
}

template <class T, class U>
T atomicMin(T* pointer, U value) {
    T old = *pointer;
    *pointer = T(value) < old ? T(value) : old;
    return old;
}

template <class T, class U>
T atomicExch(T* pointer, U value) {
    T old = *pointer;
    *pointer = T(value);
    return old;
}

template <class T, class U, class V>
T atomicCAS(T* pointer, U compare, V value) {
    T old = *pointer;
    if (old == T(compare)) *pointer = T(value);
    return old;
}

template <class T, class U>
std::common_type_t<T, U> max(T a, U b) {
    if constexpr (std::is_floating_point<std::common_type_t<T, U>>::value)
        return std::fmax(a, b);
    else
        return a < b ? b : a;
}

template <class T, class U>
std::common_type_t<T, U> min(T a, U b) {
    if constexpr (std::is_floating_point<std::common_type_t<T, U>>::value)
        return std::fmin(a, b);
    else
        return b < a ? b : a;
}

template <class T>
T rsqrt(T x) {
    return 1 / std::sqrt(x);
}
inline float rsqrtf(float x) { return rsqrt(x); }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __fdividef(float a, float b) { return a / b; }
