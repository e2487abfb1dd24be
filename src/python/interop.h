// Declarations for shared memory, in cffi's form: the part of CUDA's driver API that vkgemm/cuda.py
// calls, and DLPack's structures, which vkgemm/dlpack.py fills in.

typedef int CUresult;  // 0 is success
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUextMemory_st *CUexternalMemory;
typedef struct CUextSemaphore_st *CUexternalSemaphore;
typedef unsigned long long CUdeviceptr;
typedef struct { unsigned char bytes[16]; } CUuuid;

typedef struct {
  int type;  // 1: an opaque file descriptor
  union { int fd; void *pointers[2]; } handle;
  unsigned long long size;
  unsigned int flags;  // 1: dedicated memory
  unsigned int reserved[16];
} CUDA_EXTERNAL_MEMORY_HANDLE_DESC;

typedef struct {
  unsigned long long offset;
  unsigned long long size;
  unsigned int flags;
  unsigned int reserved[16];
} CUDA_EXTERNAL_MEMORY_BUFFER_DESC;

typedef struct {
  int type;  // 9: the opaque file descriptor of a timeline semaphore
  union { int fd; void *pointers[2]; } handle;
  unsigned int flags;
  unsigned int reserved[16];
} CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC;

// Signals and waits take the same bytes: what follows the value has other names, and is zero.
typedef struct {
  unsigned long long value;
  unsigned long long other[8];
  unsigned int flags;
  unsigned int reserved[16];
} VkgemmSemaphoreParams;

CUresult cuInit(unsigned int flags);
CUresult cuGetErrorName(CUresult error, const char **name);
CUresult cuDeviceGetCount(int *count);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDeviceGetName(char *name, int size, CUdevice device);
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult cuCtxPushCurrent_v2(CUcontext context);
CUresult cuCtxPopCurrent_v2(CUcontext *context);
CUresult cuCtxSynchronize(void);
CUresult cuImportExternalMemory(CUexternalMemory *memory,
                                const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *description);
CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *address, CUexternalMemory memory,
                                         const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *description);
CUresult cuMemFree_v2(CUdeviceptr address);
CUresult cuDestroyExternalMemory(CUexternalMemory memory);
CUresult cuImportExternalSemaphore(CUexternalSemaphore *semaphore,
                                   const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *description);
CUresult cuSignalExternalSemaphoresAsync(const CUexternalSemaphore *semaphores,
                                         const VkgemmSemaphoreParams *params, unsigned int count,
                                         CUstream stream);
CUresult cuWaitExternalSemaphoresAsync(const CUexternalSemaphore *semaphores,
                                       const VkgemmSemaphoreParams *params, unsigned int count,
                                       CUstream stream);
CUresult cuDestroyExternalSemaphore(CUexternalSemaphore semaphore);

typedef struct { int32_t device_type; int32_t device_id; } DLDevice;
typedef struct { uint8_t code; uint8_t bits; uint16_t lanes; } DLDataType;
typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides;  // null: row-major and dense
  uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensor *);  // may be null
} DLManagedTensor;
