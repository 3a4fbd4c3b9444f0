// SPDX-License-Identifier: MIT
// The configuration names the profile of an H100. MFU must nevertheless be relative to the peak of the GPU that runs,
// and there must be no MFU if that peak is unknown.
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "gswbench/cli.h"
#include "gswbench/model.h"
#include "gswbench/peak.h"
#include "gswbench/result.h"

static char line[] = "gswbench run --config tiny-llama --ranks 1 --steps 3 --warmup 1 --layers 1 --backend cuda --json "
                     "--set hardware.profile=h100-sxm --set precision.compute=bf16 --deterministic "
                     "--set train.micro_batch=1 --set train.global_batch=1 --out";

// Returns false if the run writes no result.
static bool run(struct result *result, char *folder)
{
    char               path[256];
    char              *words[32];
    int                count  = 0;
    struct text_buffer errors = {.text = NULL};
    for (char *word = strtok(line, " "); word != NULL; word = strtok(NULL, " ")) {
        words[count++] = word;
    }
    words[count++] = folder;
    snprintf(path, sizeof(path), "%s/result.json", folder);
    if (freopen(path, "w", stdout) == NULL) {
        return false;
    }
    status ran = cli_run(count, words, &errors);
    fflush(stdout);
    status read = result_read_json(result, path);
    fprintf(stderr, "%s%s%s\n", errors.text != NULL ? errors.text : "", ran.text, read.text);
    text_free(&errors);
    return !failed(&read);
}

static struct peak peak_here(void)
{
    const struct hardware_config none = {.profile = "none"};
    char                         name[1][DEVICE_NAME_BYTES];
    struct backend               backend;
    status                       opened = backend_open(&backend, "cuda", &device_setup);
    if (failed(&opened)) {
        fprintf(stderr, "%s\n", opened.text);
        exit(1);
    }
    backend.ops->device_name(&backend, name[0], sizeof(name[0]));
    backend_close(&backend);
    return peak_of_devices((const char(*)[DEVICE_NAME_BYTES])name, 1, &none, RATE_BF16);
}

static int expect(bool is_so, const char *what, const struct result *result)
{
    if (!is_so) {
        fprintf(stderr, "not so: %s (peak %g, %s)\n", what, result->peak, result->peak_source);
    }
    return is_so ? 0 : 1;
}

int main(void)
{
    char          folder[] = "/tmp/gswbench-device-XXXXXX", command[64];
    struct result result   = {.verdict = VERDICT_VALID};
    device_require();
    struct peak peak = peak_here();
    if (mkdtemp(folder) == NULL || !run(&result, folder)) {
        return 1;
    }
    double share = result.figures.utilization[FLOPS_CAUSAL];
    int    wrong = expect(result.exit_code == EXIT_VALID, "the run is right", &result);
    if (isnan(peak.flops)) {
        wrong += expect(isnan(result.peak) && isnan(share), "an unknown device has no peak", &result);
        wrong +=
            expect(strncmp(result.peak_source, "no hardware profile for device ", 31) == 0, "it says why", &result);
    } else {
        wrong += expect(result.peak == peak.flops && share > 0 && share < 1, "the peak is the device's", &result);
    }
#ifdef GSWBENCH_EMULATED
    wrong += expect(isnan(result.peak), "an emulated device has no peak", &result);
#endif
    result_free(&result);
    snprintf(command, sizeof(command), "rm -r %s", folder);
    return wrong + (system(command) != 0);
}
