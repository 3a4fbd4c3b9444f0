// SPDX-License-Identifier: MIT
// Fills parts of a result: the description of program, machine and configuration, notes on conditions that disturb the
// run, such as shared cores, and the predicted step time of this machine.
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <xxhash.h>

#include "gswbench/arena.h"
#include "gswbench/predict.h"
#include "gswbench/version.h"
#include "internal.h"

// Adds a name and value to the result's environment. In the name, characters other than letters and digits become
// underscores.
static void add_fact(struct result *result, const char *name, const char *value)
{
    char key[64];
    text_copy(key, sizeof(key), name);
    for (char *character = key; *character != '\0'; character++) {
        *character = isalnum((unsigned char)*character) ? *character : '_';
    }
    result_add_entry(&result->environment, &result->environment_count, key, value);
}

// Adds the name of the Linux distribution, from PRETTY_NAME in /etc/os-release.
static void add_system(struct result *result)
{
    FILE *file = fopen("/etc/os-release", "r");
    char  line[256];
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        char name[sizeof(line)];
        if (sscanf(line, "PRETTY_NAME=\"%255[^\"]\"", name) == 1) {
            add_fact(result, "system", name);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

static void add_environment(struct result *result, const struct comm *comm)
{
    struct utsname kernel;
    char           text[256], build[VERSION_BUILD_BYTES];
    version_build(build);
    add_fact(result, "build", build);
    add_fact(result, "host", comm->topology.host);
    if (uname(&kernel) == 0) {
        snprintf(text, sizeof(text), "%s %s %s", kernel.sysname, kernel.release, kernel.machine);
        add_fact(result, "kernel", text);
    }
    add_system(result);
    if (comm->library[0] != '\0') {
        add_fact(result, "communicator", comm->library);
    }
    snprintf(text, sizeof(text), "%d", comm->topology.nodes);
    add_fact(result, "nodes", text);
    snprintf(text, sizeof(text), "%ld", sysconf(_SC_NPROCESSORS_ONLN));
    add_fact(result, "processors online", text);
}

static void append_choice(struct result *result, const char *choice)
{
    char  *text = result->device;
    size_t used = strlen(text);
    if (choice[0] != '\0') {
        snprintf(text + used, sizeof(result->device) - used, " (%s)", choice);
    }
}

void facts_describe_device(struct result *result, struct rank_environment *environment)
{
    environment->backend.ops->describe(&environment->backend, result->device, sizeof(result->device));
    append_choice(result, environment->backend.choice);
    append_choice(result, environment->comm->choice);
}

// Adds the settings that were compared between ranks to the result's environment. Empty settings are left out.
void facts_add_environment(struct result *result, const struct rank_environment *environment)
{
    struct setting_list  own  = {.rows = NULL};
    struct setting_list *list = environment != NULL ? environment->settings : &own;
    if (environment == NULL) {
        settings_collect_variables(&own);
    }
    for (int i = 0; i < list->count; i++) {
        char name[64];
        settings_print_name(name, sizeof(name), list->rows[i].name);
        if (list->rows[i].value[0] != '\0') {
            add_fact(result, name, list->rows[i].value);
        }
    }
    settings_free(&own);
    if (environment != NULL && environment->deviation_count > 0) {
        size_t bytes            = (size_t)environment->deviation_count * sizeof(*environment->deviations);
        result->deviations      = memory_allocate(bytes);
        result->deviation_count = environment->deviation_count;
        memcpy(result->deviations, environment->deviations, bytes);
    }
}

static void add_config(struct result *result, const struct config *config)
{
    for (const struct config_section *section = config_sections; section->name != NULL; section++) {
        for (const struct option *option = section->options; option->key != NULL; option++) {
            char name[96], value[OPTION_PATH_BYTES];
            snprintf(name, sizeof(name), "%s.%s", section->name, option->key);
            option_print(option, (const char *)config + section->offset, value, sizeof(value));
            result_add_entry(&result->config, &result->config_count, name, value);
        }
    }
}

// Sets the peak FLOP/s and the published step time with which the result is compared. The host backend has no peak. The
// published time applies only to the device of the published run.
static void set_references(struct result *result, const struct config *config, const struct backend *backend,
                           const struct environment_devices *devices)
{
    enum rate   rate = precision_rate(config->precision.compute);
    struct peak peak = {.flops = NAN};
    if (devices->kinds > 0) {
        peak =
            peak_of_devices((const char(*)[DEVICE_NAME_BYTES])devices->names, devices->kinds, &config->hardware, rate);
    } else {
        snprintf(peak.source, sizeof(peak.source), "backend %s has no known peak", backend->ops->name);
    }
    result->peak           = peak.flops;
    result->published_peak = peak_published(&config->published, rate);
    text_copy(result->peak_source, sizeof(result->peak_source), peak.source);

    bool is_its_machine = devices->kinds == 1 && strcmp(devices->names[0], config->hardware.device) == 0;
    result_set_published(result, &config->published, is_its_machine && config->run.layers == 0);
}

void benchmark_print_time(char *text, size_t bytes)
{
    time_t    now = time(NULL);
    struct tm utc;
    strftime(text, bytes, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
}

// Makes a run id from the time, so that ids sort by time. A hash makes ids of the same second different.
static void make_run_id(char *text, size_t bytes)
{
    struct timespec now;
    struct tm       utc;
    char            second[24];
    clock_gettime(CLOCK_REALTIME, &now);
    strftime(second, sizeof(second), "%Y%m%dT%H%M%SZ", gmtime_r(&now.tv_sec, &utc));
    int64_t key[] = {now.tv_nsec, getpid()};
    snprintf(text, bytes, "%s-%04x", second, (unsigned)(XXH3_64bits(key, sizeof(key)) & 0xffff));
}

void benchmark_describe_job(struct result *result, const struct benchmark *benchmark)
{
    const struct config *config = &benchmark->job.config;

    result->method = RESULT_METHOD;
    text_copy(result->version, sizeof(result->version), version_text);
#ifdef __clang__
    text_copy(result->compiler, sizeof(result->compiler), __VERSION__);
#else
    text_copy(result->compiler, sizeof(result->compiler), "GCC " __VERSION__);
#endif
    make_run_id(result->run_id, sizeof(result->run_id));
    benchmark_print_time(result->started, sizeof(result->started));
    text_copy(result->config_name, sizeof(result->config_name), config->name);
    text_copy(result->config_path, sizeof(result->config_path), config->path);
    snprintf(result->config_hash, sizeof(result->config_hash), "%016" PRIx64,
             (uint64_t)XXH3_64bits(benchmark->config_text, benchmark->config_bytes));
    text_copy(result->precision, sizeof(result->precision), precision_compute_names[config->precision.compute]);
    result->planned_steps = run_steps_max(&config->run);
    text_copy(result->verify, sizeof(result->verify), option_find(run_options, "verify")->names[config->run.verify]);
    result->planned_warmup = config->run.warmup;
    result->is_proxy       = config_is_proxy(config);
    result->eager_seconds = result->replay_seconds = NAN;
    add_config(result, config);
}

void benchmark_describe(struct result *result, const struct benchmark *benchmark, const struct comm *comm,
                        const struct backend *backend, const struct environment_devices *devices)
{
    benchmark_describe_job(result, benchmark);
    text_copy(result->communicator, sizeof(result->communicator), comm->ops->name);
    text_copy(result->backend, sizeof(result->backend), backend->ops->name);
    result->computes = backend->ops->computes;
    set_references(result, &benchmark->job.config, backend, devices);
    add_environment(result, comm);
}

void facts_add_connections(struct result *result, struct comm *comm, const struct step *step)
{
    result->connection_bytes          = step_connection_bytes(step);
    result->connections.library_bytes = NAN;
    if (comm->ops->extras != NULL) {
        const struct comm_extras extras = comm->ops->extras(comm);
        result->connections             = (struct result_connections){.allocates     = extras.allocates,
                                                                      .windows       = extras.windows,
                                                                      .registered    = extras.registered,
                                                                      .refused       = extras.refused,
                                                                      .copying       = extras.copying,
                                                                      .putting       = extras.putting,
                                                                      .exchanges     = extras.exchanges,
                                                                      .scalable      = extras.scalable,
                                                                      .library_bytes = extras.bytes};
    }
}

static double threads_per_core(const struct environment_cores *cores)
{
    return (double)(cores->threads * cores->sharers) / (double)cores->cores;
}

// Judges the rank with the most threads per core. If this number is at most [run] threads_per_core, the result stays
// valid and gets at most a note.
static void add_oversubscription(struct result *result, const struct environment_peer *peers,
                                 const struct run_config *run)
{
    enum { NOTED_MAX = 2 };
    struct environment_cores worst = peers_share_cores(peers, &peers[0].topology, run->threads);
    int                      where = 0;
    for (int rank = 1; rank < peers[0].topology.ranks; rank++) {
        struct environment_cores cores = peers_share_cores(peers, &peers[rank].topology, run->threads);
        if (threads_per_core(&cores) > threads_per_core(&worst)) {
            worst = cores;
            where = rank;
        }
    }
    double degree = threads_per_core(&worst);
    result_judge(result, QUALITY_SHARING, degree > (double)run->threads_per_core ? degree : fmin(degree, NOTED_MAX),
                 where, "%" PRId64 " threads of %" PRId64 " rank%s share %" PRId64 " core%s of %s",
                 worst.threads * worst.sharers, worst.sharers, worst.sharers == 1 ? "" : "s", worst.cores,
                 worst.cores == 1 ? "" : "s", peers[where].topology.host);
}

// If ranks share a device, step times do not measure the device. The result then gets a note, and no peak FLOP/s.
static void add_sharing(struct result *result, const struct environment_devices *devices)
{
    if (devices->sharers > 1) {
        result_note(result, NOTE("shared-device"),
                    "%" PRId64 " ranks share a device: step times do not measure the device", devices->sharers);
        result->peak = NAN;
        text_copy(result->peak_source, sizeof(result->peak_source), "ranks share a device");
    }
}

static void add_environment_notes(struct result *result, const struct environment_notes *notes)
{
    for (int i = 0; i < notes->count; i++) {
        struct result_reason reason = {.verdict = VERDICT_VALID, .rank = -1, .step = -1};
        text_copy(reason.id, sizeof(reason.id), notes->list[i].id);
        result_note(result, reason, "%s", notes->list[i].text);
    }
}

void notes_add_disturbances(struct result *result, const struct config *config)
{
    const struct profile_config *profile = &config->profile;
    const struct fault_config   *fault   = &config->fault;
    if (profile_config_is_set(profile)) {
        result_note(result, (struct result_reason){RESULT_PROFILED, VERDICT_DEGRADED, -1, profile->start_step, ""},
                    "profilers collect steps %" PRId64 " to %" PRId64
                    " of ranks %.100s: step times are not those of a normal run",
                    profile->start_step, profile_config_last_step(profile), profile->ranks);
    }
    if (fault->kind != FAULT_NONE) {
        result_note(result, (struct result_reason){RESULT_FAULT, VERDICT_DEGRADED, fault->rank, fault->step, ""},
                    "[fault] kind = %s was injected on rank %" PRId64 " in step %" PRId64
                    ": the result is not a measurement",
                    option_find(fault_options, "kind")->names[fault->kind], fault->rank, fault->step);
    }
}

void notes_add(struct result *result, const struct benchmark *benchmark, const struct rank_environment *environment)
{
    const struct config *config = &benchmark->job.config;
    char                 warning[256];
    if (job_warning(&benchmark->job, warning, sizeof(warning)) != NULL) {
        result_note(result, NOTE("tp-across-nodes"), "%s", warning);
    }
    add_oversubscription(result, environment->peers, &config->run);
    add_sharing(result, &environment->devices);
    if (config->run.check == CHECK_OPS) {
        result_note(
            result, (struct result_reason){RESULT_CHECKED, VERDICT_DEGRADED, -1, -1, ""},
            "run.check = ops waits for each op and checks its outputs: step times are not those of a normal run");
    }
    add_environment_notes(result, &environment->notes);
}

// The machine for which the step time is predicted.
struct expected_machine {
    struct hardware_config hardware;
    struct measured_ops    measured;    // op times of the configured hardware profile
};

const char *expectation_hardware(struct hardware_config *found, const struct config *config, struct backend *backend)
{
    char name[DEVICE_NAME_BYTES] = "";
    *found                       = config->hardware;
    if (!backend->ops->computes) {
        return "the null backend computes nothing";
    }
    if (!backend->ops->is_device) {
        return found->cores > 0
                   ? NULL
                   : "no hardware profile for these cores: write one with gswbench calibrate, and set hardware.profile";
    }
    backend->ops->device_name(backend, name, sizeof(name));
    return strcmp(found->device, name) == 0 || config_find_hardware(found, name)
               ? NULL
               : "no hardware profile for this device: write one with gswbench calibrate, and set hardware.profile";
}

static const char *find_machine(struct expected_machine *found, const struct config *config,
                                struct rank_environment *environment)
{
    const struct environment_devices *devices = &environment->devices;
    *found                                    = (struct expected_machine){.hardware = config->hardware};
    if (environment->backend.ops->is_device && (devices->sharers > 1 || devices->kinds != 1)) {
        return devices->sharers > 1 ? "ranks share a device" : "ranks have different devices";
    }
    return expectation_hardware(&found->hardware, config, &environment->backend);
}

static double positive_or_nan(double value)
{
    return value > 0.0 ? value : NAN;
}

static status predict_on(struct result_expectation *expectation, const struct job *job, const struct machine *machine,
                         const struct result *result)
{
    double                     ideal = result_ideal_seconds(result, (enum flop_convention)result->figures.convention);
    struct predict_explanation explanation = {.ideal_seconds   = isnan(ideal) ? 0.0 : ideal,
                                              .attention_share = job_attention_share(job)};
    struct prediction          prediction;
    struct predict_range       range;
    TRY(predict_explain(&explanation, &prediction, &job->request, machine));
    TRY(predict_range(&range, &job->request, machine));
    expectation->step_seconds   = prediction.step_seconds;
    expectation->percent        = range.percent;
    expectation->measured_share = prediction.measured_percent / 100.0;
    expectation->waterfall      = explanation.waterfall;
    expectation->peak = positive_or_nan(machine->hardware->peak[precision_rate(job->config.precision.compute)].value);
    expectation->memory_bandwidth = positive_or_nan(machine->hardware->memory_bandwidth.value);
    return OK;
}

// Predicts the step time on this machine. Uses measured op times only if this machine is the one of the configured
// profile.
static status predict_here(struct expected_machine *found, struct result *result, const struct job *job,
                           const struct rank_environment *environment)
{
    const struct config   *config        = &job->config;
    bool                   is_configured = strcmp(found->hardware.profile, config->hardware.profile) == 0;
    struct software_config software;
    TRY(is_configured ? measured_read_profile(&found->measured, config) : OK);
    option_set_defaults(software_options, &software);
    const struct machine machine = {.hardware  = &found->hardware,
                                    .software  = &software,
                                    .measured  = &found->measured,
                                    .sm_margin = environment->comm->processors,
                                    .zero_cta  = config->run.zero_cta != 0};
    return predict_on(&result->expectation, job, &machine, result);
}

void expectation_find(struct result *result, const struct job *job, struct rank_environment *environment)
{
    struct expected_machine    found;
    struct result_expectation *expectation = &result->expectation;
    const char                *none        = find_machine(&found, &job->config, environment);
    status expected = none != NULL ? fail("%s", none) : predict_here(&found, result, job, environment);
    if (failed(&expected)) {
        *expectation = (struct result_expectation){
            .step_seconds = NAN, .percent = NAN, .measured_share = NAN, .peak = NAN, .memory_bandwidth = NAN};
        text_copy(expectation->reason, sizeof(expectation->reason), expected.text);
    } else {
        bool is_named = strcmp(found.hardware.profile, "none") != 0;
        text_copy(expectation->profile, sizeof(expectation->profile), is_named ? found.hardware.profile : "[hardware]");
    }
    measured_free(&found.measured);
}
