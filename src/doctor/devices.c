// SPDX-License-Identifier: MIT
// Checks the driver and its GPUs through the driver's own libraries (libcuda, NVML), and the CUDA libraries that the
// program opens at run time. Creates no CUDA context, so it takes no device memory.
#include <stdio.h>
#include <string.h>

#include "gswbench/library.h"
#include "internal.h"

#ifdef GSWBENCH_CUDA_MAJOR
#define CUDA_LIBRARY(name) name TEXT_OF_VALUE(GSWBENCH_CUDA_MAJOR)
#endif

// The two forms of a library's version function: it returns the version, or stores it.
union version_call {
    size_t (*returned)(void);
    int (*stored)(int *version);
};

struct library {
    const char *name, *file, *function;
    bool        is_returned, is_required;
    size_t      step;      // version = major * step^2 + minor * step + patch; step 0: a single number
    size_t      oldest;    // oldest usable version, encoded like `version` above; 0: any
    const char *remedy;
};

static const struct library libraries[] = {
#ifdef GSWBENCH_CUDA_MAJOR
    {"cublaslt", CUDA_LIBRARY("libcublasLt.so."), "cublasLtGetVersion", true, true, 100, 0,
     "install libcublas of the toolkit, or add its folder to LD_LIBRARY_PATH"},
    {"nccl", "libnccl.so.2", "ncclGetVersion", false, true, 100, 21700, "apt-get install libnccl2"},
    {"cudnn", "libcudnn.so.9", "cudnnGetVersion", true, false, 100, 90000,
     "attention then uses gswbench's own, slower kernels: apt-get install libcudnn9-cuda-" TEXT_OF_VALUE(
         GSWBENCH_CUDA_MAJOR)},
    {"cupti", CUDA_LIBRARY("libcupti.so."), "cuptiGetVersion", false, false, 0, 0,
     "times of ops in CUDA graphs are then missing: install cuda-cupti"},
#else
    {NULL, NULL, NULL, false, false, 0, 0, NULL},
#endif
};

enum { VERSION_BYTES = 72 };

static size_t ask_version(const struct library *library, union version_call call)
{
    int version = 0;
    if (library->is_returned) {
        return call.returned();
    }
    return call.stored(&version) == 0 && version > 0 ? (size_t)version : 0;
}

static void describe_version(char text[VERSION_BYTES], size_t version, size_t step)
{
    if (step == 0) {
        snprintf(text, VERSION_BYTES, "API %zu", version);
    } else {
        snprintf(text, VERSION_BYTES, "%zu.%zu.%zu", version / (step * step), version / step % step, version % step);
    }
}

// Adds a line for a library that cannot be opened.
static struct doctor_line *add_unusable(struct doctor *doctor, const struct library *library, enum doctor_state state,
                                        const char *reason)
{
    bool is_installed = strstr(reason, "No such file") == NULL;
    return is_installed ? doctor_add(doctor, library->name, state, "%s", reason)
                        : doctor_add(doctor, library->name, state, "%s is not installed", library->file);
}

static void check(struct doctor *doctor, const struct library *library)
{
    union version_call          call;
    const struct library_symbol symbols[] = {{library->function, &call.returned, false}};
    char                        text[VERSION_BYTES], oldest[VERSION_BYTES];
    status                      opened = library_open(library->file, symbols, 1);
    enum doctor_state   lost = doctor->gpus == 0 ? DOCTOR_ABSENT : library->is_required ? DOCTOR_WRONG : DOCTOR_WARNING;
    struct doctor_line *line;
    if (failed(&opened)) {
        doctor_cut_remedy(&opened);
        line = add_unusable(doctor, library, lost, opened.text);
        doctor_advise(line, "%s", library->remedy);
        return;
    }
    size_t version = ask_version(library, call);
    describe_version(text, version, library->step);
    describe_version(oldest, library->oldest, library->step);
    if (version < library->oldest || version == 0) {
        line = doctor_add(doctor, library->name, lost, "%s has version %s, %s or newer is needed", library->file, text,
                          oldest);
        doctor_advise(line, "%s", library->remedy);
    } else {
        doctor_add(doctor, library->name, DOCTOR_OK, "%s", text);
    }
}

void doctor_check_libraries(struct doctor *doctor)
{
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]) && libraries[i].name != NULL; i++) {
        check(doctor, &libraries[i]);
    }
}

// Functions of the CUDA driver API. Their ABI is stable: a changed function gets a new name, such as
// cuDeviceTotalMem_v2.
struct driver {
    int (*cuInit)(unsigned flags);
    int (*cuDriverGetVersion)(int *version);
    int (*cuDeviceGetCount)(int *count);
    int (*cuDeviceGetName)(char *name, int bytes, int device);
    int (*cuDeviceTotalMem_v2)(size_t *bytes, int device);
    int (*cuDeviceGetAttribute)(int *value, int attribute, int device);
    int (*cuDeviceCanAccessPeer)(int *can, int device, int peer);
};
enum { ATTRIBUTE_COMPUTE_MODE = 20, ATTRIBUTE_MAJOR = 75, ATTRIBUTE_MINOR = 76 };
enum { MODE_PROHIBITED = 2, DEVICES_MAX = 64 };

// Errors of cuInit for which there is a remedy.
static const struct {
    int         code;
    const char *meaning, *remedy;
} errors[] = {
    {100, "the driver shows no GPU",
     "ask the scheduler for GPUs (Slurm: --gres=gpu:8), and check CUDA_VISIBLE_DEVICES"},
    {101, "CUDA_VISIBLE_DEVICES names a GPU that does not exist", "unset it, or name GPUs of nvidia-smi -L"},
    {802, "the NVSwitch fabric is not ready", "systemctl start nvidia-fabricmanager, of the driver's version"},
    {803, "the kernel module and libcuda.so.1 have different versions", "reboot, or reload the module after an update"},
    {804, "forward compatibility is not supported on this GPU", "remove cuda-compat from LD_LIBRARY_PATH"},
    {999, "the driver does not start", "dmesg | grep -i nvrm; then reboot"},
};

static void explain_error(struct doctor *doctor, int code)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        if (errors[i].code == code) {
            doctor_advise(doctor_add(doctor, "gpus", DOCTOR_WRONG, "%s (CUDA error %d)", errors[i].meaning, code), "%s",
                          errors[i].remedy);
            return;
        }
    }
    doctor_advise(doctor_add(doctor, "gpus", DOCTOR_WRONG, "cuInit fails with CUDA error %d", code), "run nvidia-smi");
}

static void check_peers(struct doctor *doctor, const struct driver *driver, int count)
{
    int  pairs = count * (count - 1), reached = 0;
    char first[64] = "";
    for (int device = 0; device < count; device++) {
        for (int peer = 0; peer < count; peer++) {
            int can = 0;
            if (peer != device) {
                reached += driver->cuDeviceCanAccessPeer(&can, device, peer) == 0 && can != 0;
                if (can == 0 && first[0] == '\0') {
                    snprintf(first, sizeof(first), ", not %d and %d", device, peer);
                }
            }
        }
    }
    if (pairs > 0) {
        doctor_judge(doctor, "peers", reached == pairs, DOCTOR_WARNING,
                     "nvidia-smi topo -p2p r names the reason; NCCL then copies through the host",
                     "%d of %d pairs of GPUs reach each other's memory%s", reached / 2, pairs / 2, first);
    }
}

// Lists the GPUs and their problems. Equal GPUs that follow each other share a line.
static void list_devices(struct doctor *doctor, const struct driver *driver, int count)
{
    char before[160] = "";
    int  same        = 0;
    for (int device = 0; device <= count; device++) {
        char   name[64] = "", now[160] = "";
        size_t bytes = 0;
        int    major = 0, minor = 0, mode = 0;
        if (device < count) {
            driver->cuDeviceGetName(name, sizeof(name), device);
            driver->cuDeviceTotalMem_v2(&bytes, device);
            driver->cuDeviceGetAttribute(&major, ATTRIBUTE_MAJOR, device);
            driver->cuDeviceGetAttribute(&minor, ATTRIBUTE_MINOR, device);
            driver->cuDeviceGetAttribute(&mode, ATTRIBUTE_COMPUTE_MODE, device);
            snprintf(now, sizeof(now), "%s, %.1f GiB, compute capability %d.%d", name, (double)bytes / (1 << 30), major,
                     minor);
        }
        if (device > 0 && strcmp(now, before) != 0) {
            doctor_add(doctor, "gpus", DOCTOR_OK, "%d x %s", same, before);
            same = 0;
        }
        if (mode == MODE_PROHIBITED) {
            doctor_advise(doctor_add(doctor, "gpus", DOCTOR_WRONG, "GPU %d is in the compute mode PROHIBITED", device),
                          "nvidia-smi -i %d -c DEFAULT", device);
        }
        if (device < count && major < 8) {
            doctor_advise(
                doctor_add(doctor, "gpus", DOCTOR_WRONG, "GPU %d has compute capability %d.%d", device, major, minor),
                "gswbench needs 8.0 (A100) or newer; hide it with CUDA_VISIBLE_DEVICES");
        }
        same++;
        snprintf(before, sizeof(before), "%s", now);
    }
}

static void check_nvml(struct doctor *doctor)
{
    unsigned (*start)(void);
    unsigned (*version)(char *, unsigned);
    const char *(*describe)(unsigned);
    const struct library_symbol symbols[] = {{"nvmlInit_v2", &start, false},
                                             {"nvmlSystemGetDriverVersion", &version, false},
                                             {"nvmlErrorString", &describe, false}};
    char                        text[80]  = "";
    status                      opened    = library_open("libnvidia-ml.so.1", symbols, 3);
    unsigned                    code      = failed(&opened) ? 0 : start();
    if (failed(&opened)) {
        doctor_advise(doctor_add(doctor, "nvml", DOCTOR_WARNING, "libnvidia-ml.so.1 cannot be loaded"),
                      "runs cannot record clocks and power; in containers, set NVIDIA_DRIVER_CAPABILITIES=all");
    } else if (code != 0) {
        doctor_advise(doctor_add(doctor, "nvml", DOCTOR_WRONG, "libnvidia-ml.so.1: %s", describe(code)),
                      "after an update of the driver, reboot");
    } else {
        version(text, sizeof(text));
        doctor_add(doctor, "nvml", DOCTOR_OK, "NVML of driver %s", text);
    }
}

void doctor_check_devices(struct doctor *doctor)
{
    struct driver               driver;
    const struct library_symbol symbols[] = {
        {"cuInit", &driver.cuInit, false},
        {"cuDriverGetVersion", &driver.cuDriverGetVersion, false},
        {"cuDeviceGetCount", &driver.cuDeviceGetCount, false},
        {"cuDeviceGetName", &driver.cuDeviceGetName, false},
        {"cuDeviceTotalMem_v2", &driver.cuDeviceTotalMem_v2, false},
        {"cuDeviceGetAttribute", &driver.cuDeviceGetAttribute, false},
        {"cuDeviceCanAccessPeer", &driver.cuDeviceCanAccessPeer, false},
    };
    char   module[96];
    int    version = 0, count = 0;
    status opened = library_open("libcuda.so.1", symbols, sizeof(symbols) / sizeof(symbols[0]));
    doctor_read(doctor, "/proc/driver/nvidia/version", "", module, sizeof(module));
    bool has_module = module[0] != '\0';
    if (failed(&opened)) {
        struct doctor_line *line =
            doctor_add(doctor, "driver", has_module ? DOCTOR_WRONG : DOCTOR_ABSENT,
                       has_module ? "the kernel has the NVIDIA module, but libcuda.so.1 cannot be loaded"
                                  : "no NVIDIA driver (libcuda.so.1): runs use the processor");
        if (has_module) {
            doctor_advise(line, "start the container with --gpus all, or install the driver's libraries");
        }
        return;
    }
    driver.cuDriverGetVersion(&version);
    struct doctor_line *line =
        doctor_add(doctor, "driver", DOCTOR_OK, "supports CUDA %d.%d", version / 1000, version % 1000 / 10);
#ifdef GSWBENCH_CUDA_MAJOR
    if (version / 1000 < GSWBENCH_CUDA_MAJOR) {
        line->state = DOCTOR_WRONG;
        doctor_advise(line, "this gswbench was built with CUDA %d: update the driver, or build with CUDA %d",
                      GSWBENCH_CUDA_MAJOR, version / 1000);
    }
#else
    line->state = DOCTOR_WRONG;
    doctor_advise(line, "this gswbench was built without CUDA: install the toolkit, and build again");
#endif
    int code = driver.cuInit(0);
    code     = code == 0 ? driver.cuDeviceGetCount(&count) : code;
    if (code != 0 || count == 0) {
        explain_error(doctor, code != 0 ? code : 100);
        return;
    }
    count        = count < DEVICES_MAX ? count : DEVICES_MAX;
    doctor->gpus = count;
    list_devices(doctor, &driver, count);
    check_peers(doctor, &driver, count);
    check_nvml(doctor);
}
