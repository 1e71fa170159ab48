// cuBLAS for arrays in host memory: the functions that rnnlab.ops.cuda.cublas calls, with NVIDIA's prototypes.
// Matrices are stored by columns. Arguments that cuBLAS refuses are refused here. In addition, a handle needs its
// own workspace, and matrices must lie in memory that was registered by shim_add_memory.
//
// For the stand-in of CUDA graphs: with a callback from shim_on_call, products are queued, and shim_replay runs
// the queued ones.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#ifndef CUBLASAPI  // unless NVIDIA's header comes first, which then checks the prototypes
typedef struct cublasContext* cublasHandle_t;
typedef struct CUstream_st* cudaStream_t;
typedef enum { CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_R_16BF = 14 } cudaDataType;
typedef enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 } cublasOperation_t;
typedef enum { CUBLAS_GEMM_DEFAULT = -1 } cublasGemmAlgo_t;
typedef enum {
    CUBLAS_COMPUTE_32F = 68,
    CUBLAS_COMPUTE_64F = 70,
    CUBLAS_COMPUTE_32F_FAST_TF32 = 77
} cublasComputeType_t;
typedef enum {
    CUBLAS_STATUS_SUCCESS = 0,
    CUBLAS_STATUS_NOT_INITIALIZED = 1,
    CUBLAS_STATUS_ALLOC_FAILED = 3,
    CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_EXECUTION_FAILED = 13,
    CUBLAS_STATUS_NOT_SUPPORTED = 15
} cublasStatus_t;
#endif

namespace {

struct Handle {
    cudaStream_t stream = nullptr;
    bool workspace = false;
};

struct Matrix {
    const char* data;
    cudaDataType type;
    int ld;
    long long stride;  // from one matrix of a batch to the next
};

struct Product {
    bool transposed_a, transposed_b;
    int m, n, k, batch;
    double alpha, beta;
    Matrix A, B, C;
    cublasComputeType_t compute;
};

std::mutex lock;
std::set<cublasHandle_t> handles;
std::map<uintptr_t, size_t> memory;  // bytes from each start
std::vector<Product> queue;
int (*on_call)(long long) = nullptr;
long long workspaces_set = 0;

Handle* state(cublasHandle_t handle) {
    return handles.count(handle) ? reinterpret_cast<Handle*>(handle) : nullptr;
}

size_t size_of(cudaDataType type) { return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2; }

double round_to_tf32(double value) {
    float x = static_cast<float>(value);
    if (!std::isfinite(x)) return x;
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    bits = (bits + 0x1000u) & 0xffffe000u;
    std::memcpy(&x, &bits, 4);
    return x;
}

double load(const Matrix& matrix, size_t place) {
    if (matrix.type == CUDA_R_64F) return reinterpret_cast<const double*>(matrix.data)[place];
    if (matrix.type == CUDA_R_32F) return reinterpret_cast<const float*>(matrix.data)[place];
    uint32_t bits = static_cast<uint32_t>(reinterpret_cast<const uint16_t*>(matrix.data)[place]) << 16;
    float x;
    std::memcpy(&x, &bits, 4);
    return x;
}

void store(const Matrix& matrix, size_t place, double value) {
    char* data = const_cast<char*>(matrix.data);
    if (matrix.type == CUDA_R_64F) reinterpret_cast<double*>(data)[place] = value;
    else reinterpret_cast<float*>(data)[place] = static_cast<float>(value);
}

bool within_memory(const Matrix& matrix, int rows, int columns, int batch) {
    if (!rows || !columns || !batch) return true;
    long long span = (batch - 1LL) * matrix.stride;
    uintptr_t first = reinterpret_cast<uintptr_t>(matrix.data), itemsize = size_of(matrix.type);
    uintptr_t start = first + (span < 0 ? span : 0) * static_cast<long long>(itemsize);
    uintptr_t last = (columns - 1ULL) * matrix.ld + rows + (span > 0 ? span : 0);
    auto found = memory.upper_bound(start);
    if (found == memory.begin()) return false;
    --found;
    return first + last * itemsize <= found->first + found->second && first % itemsize == 0;
}

// C = alpha A B + beta C, where the sums are numbers of type Sum, each addition rounded to nearest.
template <class Sum>
void compute(const Product& p) {
    bool tf32 = p.compute == CUBLAS_COMPUTE_32F_FAST_TF32 && p.A.type == CUDA_R_32F;
    std::vector<double> a(static_cast<size_t>(p.m) * p.k);
    std::vector<Sum> total(p.m);
    for (int index = 0; index < p.batch; ++index) {
        for (int j = 0; j < p.k; ++j)
            for (int i = 0; i < p.m; ++i) {
                size_t place = p.transposed_a ? j + static_cast<size_t>(i) * p.A.ld : i + static_cast<size_t>(j) * p.A.ld;
                double value = load(p.A, index * p.A.stride + place);
                a[static_cast<size_t>(j) * p.m + i] = tf32 ? round_to_tf32(value) : value;
            }
        for (int column = 0; column < p.n; ++column) {
            total.assign(p.m, Sum(0));
            for (int j = 0; j < p.k; ++j) {
                size_t place = p.transposed_b ? column + static_cast<size_t>(j) * p.B.ld
                                              : j + static_cast<size_t>(column) * p.B.ld;
                double factor = load(p.B, index * p.B.stride + place);
                if (tf32) factor = round_to_tf32(factor);
                const double* from = &a[static_cast<size_t>(j) * p.m];
                for (int i = 0; i < p.m; ++i) total[i] = static_cast<Sum>(total[i] + from[i] * factor);
            }
            for (int i = 0; i < p.m; ++i) {
                size_t place = index * p.C.stride + i + static_cast<size_t>(column) * p.C.ld;
                double value = p.alpha * total[i];
                store(p.C, place, p.beta == 0 ? value : value + p.beta * load(p.C, place));
            }
        }
    }
}

cublasStatus_t execute(const Product& p) {
    int rows_a = p.transposed_a ? p.k : p.m, columns_a = p.transposed_a ? p.m : p.k;
    int rows_b = p.transposed_b ? p.n : p.k, columns_b = p.transposed_b ? p.k : p.n;
    if (!within_memory(p.A, rows_a, columns_a, p.batch) || !within_memory(p.B, rows_b, columns_b, p.batch) ||
        !within_memory(p.C, p.m, p.n, p.batch))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    if (p.compute == CUBLAS_COMPUTE_64F) compute<double>(p);
    else compute<float>(p);
    return CUBLAS_STATUS_SUCCESS;
}

bool supported(cudaDataType A, cudaDataType B, cudaDataType C, cublasComputeType_t compute) {
    if (A != B) return false;
    if (compute == CUBLAS_COMPUTE_64F) return A == CUDA_R_64F && C == CUDA_R_64F;
    if (compute == CUBLAS_COMPUTE_32F_FAST_TF32) return A == CUDA_R_32F && C == CUDA_R_32F;
    return compute == CUBLAS_COMPUTE_32F && (A == CUDA_R_32F || A == CUDA_R_16BF) && C == CUDA_R_32F;
}

bool known(cublasOperation_t op) { return op == CUBLAS_OP_N || op == CUBLAS_OP_T || op == CUBLAS_OP_C; }

int least(int rows) { return rows > 1 ? rows : 1; }

cublasStatus_t multiply(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                        const void* alpha, const void* beta, Product p, cublasGemmAlgo_t algo) {
    int (*callback)(long long) = nullptr;
    long long place = 0;
    {
        std::lock_guard<std::mutex> guard(lock);
        Handle* own = state(handle);
        if (!own) return CUBLAS_STATUS_NOT_INITIALIZED;
        if (!known(transa) || !known(transb) || p.m < 0 || p.n < 0 || p.k < 0 || p.batch < 0)
            return CUBLAS_STATUS_INVALID_VALUE;
        p.transposed_a = transa != CUBLAS_OP_N;
        p.transposed_b = transb != CUBLAS_OP_N;
        if (p.A.ld < least(p.transposed_a ? p.k : p.m) || p.B.ld < least(p.transposed_b ? p.n : p.k) ||
            p.C.ld < least(p.m))
            return CUBLAS_STATUS_INVALID_VALUE;
        if (!supported(p.A.type, p.B.type, p.C.type, p.compute) || algo != CUBLAS_GEMM_DEFAULT)
            return CUBLAS_STATUS_NOT_SUPPORTED;
        if (!p.m || !p.n || !p.batch) return CUBLAS_STATUS_SUCCESS;
        if (!alpha || !beta || !p.C.data || (p.k && (!p.A.data || !p.B.data))) return CUBLAS_STATUS_INVALID_VALUE;
        if (!own->workspace) return CUBLAS_STATUS_ALLOC_FAILED;
        bool wide = p.compute == CUBLAS_COMPUTE_64F;
        p.alpha = wide ? *static_cast<const double*>(alpha) : *static_cast<const float*>(alpha);
        p.beta = wide ? *static_cast<const double*>(beta) : *static_cast<const float*>(beta);
        if (!on_call) return execute(p);
        callback = on_call;
        place = static_cast<long long>(queue.size());
        queue.push_back(p);
    }
    return static_cast<cublasStatus_t>(callback(place));
}

}  // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
    if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
    std::lock_guard<std::mutex> guard(lock);
    *handle = reinterpret_cast<cublasHandle_t>(new Handle);
    handles.insert(*handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
    std::lock_guard<std::mutex> guard(lock);
    Handle* own = state(handle);
    if (!own) return CUBLAS_STATUS_NOT_INITIALIZED;
    handles.erase(handle);
    delete own;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t streamId) {
    std::lock_guard<std::mutex> guard(lock);
    Handle* own = state(handle);
    if (!own) return CUBLAS_STATUS_NOT_INITIALIZED;
    own->stream = streamId;
    own->workspace = false;  // back to cuBLAS's own
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t workspaceSizeInBytes) {
    std::lock_guard<std::mutex> guard(lock);
    Handle* own = state(handle);
    if (!own) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!workspace || !workspaceSizeInBytes || reinterpret_cast<uintptr_t>(workspace) % 256)
        return CUBLAS_STATUS_INVALID_VALUE;
    own->workspace = true;
    ++workspaces_set;
    return CUBLAS_STATUS_SUCCESS;
}

const char* cublasGetStatusName(cublasStatus_t status) {
    switch (status) {
        case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
        case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
        case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
        case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
        case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
        case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
        default: return "CUBLAS_STATUS_UNKNOWN";
    }
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                            int k, const void* alpha, const void* A, cudaDataType Atype, int lda, const void* B,
                            cudaDataType Btype, int ldb, const void* beta, void* C, cudaDataType Ctype, int ldc,
                            cublasComputeType_t computeType, cublasGemmAlgo_t algo) {
    Product p{false, false, m, n, k, 1, 0, 0, {static_cast<const char*>(A), Atype, lda, 0},
              {static_cast<const char*>(B), Btype, ldb, 0}, {static_cast<const char*>(C), Ctype, ldc, 0}, computeType};
    return multiply(handle, transa, transb, alpha, beta, p, algo);
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                          int m, int n, int k, const void* alpha, const void* A, cudaDataType Atype,
                                          int lda, long long int strideA, const void* B, cudaDataType Btype, int ldb,
                                          long long int strideB, const void* beta, void* C, cudaDataType Ctype,
                                          int ldc, long long int strideC, int batchCount,
                                          cublasComputeType_t computeType, cublasGemmAlgo_t algo) {
    Product p{false, false, m, n, k, batchCount, 0, 0, {static_cast<const char*>(A), Atype, lda, strideA},
              {static_cast<const char*>(B), Btype, ldb, strideB}, {static_cast<const char*>(C), Ctype, ldc, strideC},
              computeType};
    return multiply(handle, transa, transb, alpha, beta, p, algo);
}

// ---------------------------------------------------------------- for the tests, not in cuBLAS

// From now on, products are queued with their arguments. The callback gets the index in the queue and returns the
// status of the call. With null, products run at once again.
void shim_on_call(int (*callback)(long long index)) {
    std::lock_guard<std::mutex> guard(lock);
    on_call = callback;
}

// Run a queued product; returns its status.
int shim_replay(long long index) {
    std::lock_guard<std::mutex> guard(lock);
    if (index < 0 || index >= static_cast<long long>(queue.size())) return CUBLAS_STATUS_INVALID_VALUE;
    return execute(queue[static_cast<size_t>(index)]);
}

void shim_add_memory(const void* start, size_t bytes) {
    std::lock_guard<std::mutex> guard(lock);
    memory[reinterpret_cast<uintptr_t>(start)] = bytes;
}

void shim_remove_memory(const void* start) {
    std::lock_guard<std::mutex> guard(lock);
    memory.erase(reinterpret_cast<uintptr_t>(start));
}

long long shim_handles() {
    std::lock_guard<std::mutex> guard(lock);
    return static_cast<long long>(handles.size());
}

long long shim_workspaces_set() {
    std::lock_guard<std::mutex> guard(lock);
    return workspaces_set;
}
}
