// SPDX-License-Identifier: MIT
// Loads cuDNN, and creates its backend descriptors: tensors, operations, graphs, heuristics and plans.
#include "cudnn_graph.h"

#include <stdio.h>
#include <string.h>

// Name of the cuDNN library with the major version of the headers.
#define TEXT_OF(number) #number
#define NAME_OF(major)  "libcudnn.so." TEXT_OF(major)

status cudnn_open(struct cudnn *library)
{
    const struct library_symbol symbols[] = {CUDNN_FUNCTIONS(LIBRARY_SYMBOL)};
    return library_open(NAME_OF(CUDNN_MAJOR), symbols, sizeof(symbols) / sizeof(symbols[0]));
}

void cudnn_version(const struct cudnn *cudnn, char *text, size_t bytes)
{
    size_t version = cudnn->cudnnGetVersion();
    snprintf(text, bytes, "cuDNN %zu.%zu.%zu", version / 10000, version / 100 % 100, version % 100);
}

status cudnn_failure(const struct cudnn *cudnn, const char *what, cudnnStatus_t code)
{
    char version[32], detail[512] = "";
    cudnn_version(cudnn, version, sizeof(version));
    cudnn->cudnnGetLastErrorString(detail, sizeof(detail));
    return fail("%s: %s: %s%s%s", version, what, cudnn->cudnnGetErrorString(code), detail[0] == '\0' ? "" : ": ",
                detail);
}

static void check(struct cudnn_graph *graph, const char *what, cudnnStatus_t code)
{
    if (code != CUDNN_STATUS_SUCCESS && !failed(&graph->result)) {
        graph->result = cudnn_failure(graph->cudnn, what, code);
    }
}

static cudnnBackendDescriptor_t create(struct cudnn_graph *graph, cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t made = NULL;
    if (graph->descriptor_count == CUDNN_GRAPH_DESCRIPTORS) {
        graph->result = fail("a cuDNN graph has more than %d descriptors", CUDNN_GRAPH_DESCRIPTORS);
    }
    if (!failed(&graph->result)) {
        check(graph, "descriptor", graph->cudnn->cudnnBackendCreateDescriptor(type, &made));
        graph->descriptor[graph->descriptor_count++] = made;
    }
    return made;
}

struct values {
    cudnnBackendAttributeType_t type;
    int64_t                     count;
    const void                 *data;
};

static void set_all(struct cudnn_graph *graph, cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                    struct values values)
{
    if (!failed(&graph->result)) {
        check(graph, "attribute",
              graph->cudnn->cudnnBackendSetAttribute(of, name, values.type, values.count, values.data));
    }
}

static void set(struct cudnn_graph *graph, cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, const void *value)
{
    set_all(graph, of, name, (struct values){type, 1, value});
}

static void set_descriptor(struct cudnn_graph *graph, cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                           cudnnBackendDescriptor_t value)
{
    set(graph, of, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, &value);
}

static void finalize(struct cudnn_graph *graph, const char *what, cudnnBackendDescriptor_t made)
{
    if (!failed(&graph->result)) {
        check(graph, what, graph->cudnn->cudnnBackendFinalize(made));
    }
}

static cudnn_tensor make_tensor(struct cudnn_graph *graph, cudnnDataType_t type, const struct cudnn_layout *layout,
                                int64_t id, bool is_scalar)
{
    enum { ALIGNMENT = 16, FIRST_VIRTUAL = 1000 };
    int64_t      alignment = ALIGNMENT;
    bool         yes = true, is_virtual = id == 0;
    cudnn_tensor made = create(graph, CUDNN_BACKEND_TENSOR_DESCRIPTOR);

    id = is_virtual ? FIRST_VIRTUAL + graph->virtuals++ : id;
    set(graph, made, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, &type);
    set_all(graph, made, CUDNN_ATTR_TENSOR_DIMENSIONS, (struct values){CUDNN_TYPE_INT64, 4, layout->dim});
    set_all(graph, made, CUDNN_ATTR_TENSOR_STRIDES, (struct values){CUDNN_TYPE_INT64, 4, layout->stride});
    set(graph, made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, &id);
    set(graph, made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, &alignment);
    if (is_virtual) {
        set(graph, made, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, &yes);
    }
    if (is_scalar) {
        set(graph, made, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, &yes);
    }
    finalize(graph, "tensor", made);
    return made;
}

cudnn_tensor cudnn_graph_tensor(struct cudnn_graph *graph, cudnnDataType_t type, const struct cudnn_layout *layout,
                                int64_t id)
{
    return make_tensor(graph, type, layout, id, false);
}

cudnn_tensor cudnn_graph_scalar(struct cudnn_graph *graph, cudnnDataType_t type, int64_t id)
{
    const struct cudnn_layout one = {{1, 1, 1, 1}, {1, 1, 1, 1}};
    return make_tensor(graph, type, &one, id, true);
}

static void add_operation(struct cudnn_graph *graph, const char *what, cudnnBackendDescriptor_t made)
{
    finalize(graph, what, made);
    if (graph->operation_count == CUDNN_GRAPH_OPERATIONS) {
        graph->result = fail("a cuDNN graph has more than %d operations", CUDNN_GRAPH_OPERATIONS);
    } else {
        graph->operation[graph->operation_count++] = made;
    }
}

cudnn_tensor cudnn_graph_pointwise(struct cudnn_graph *graph, const struct cudnn_pointwise *pointwise)
{
    cudnnBackendDescriptor_t how = create(graph, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set(graph, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, &pointwise->mode);
    set(graph, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, &pointwise->precision);
    if (pointwise->mode == CUDNN_POINTWISE_GEN_INDEX) {
        set(graph, how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, &pointwise->axis);
    }
    finalize(graph, "pointwise", how);

    cudnnBackendDescriptor_t made = create(graph, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set_descriptor(graph, made, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    set_descriptor(graph, made, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, pointwise->x);
    if (pointwise->b != NULL) {
        set_descriptor(graph, made, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, pointwise->b);
    }
    if (pointwise->selector != NULL) {
        set_descriptor(graph, made, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, pointwise->selector);
    }
    set_descriptor(graph, made, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, pointwise->out);
    add_operation(graph, "pointwise operation", made);
    return pointwise->out;
}

cudnn_tensor cudnn_graph_gemm(struct cudnn_graph *graph, cudnn_tensor a, cudnn_tensor b, cudnn_tensor out)
{
    cudnnDataType_t          sums = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t how  = create(graph, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    set(graph, how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, &sums);
    finalize(graph, "GEMM", how);

    cudnnBackendDescriptor_t made = create(graph, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    set_descriptor(graph, made, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    set_descriptor(graph, made, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    set_descriptor(graph, made, CUDNN_ATTR_OPERATION_MATMUL_CDESC, out);
    set_descriptor(graph, made, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
    add_operation(graph, "GEMM operation", made);
    return out;
}

cudnn_tensor cudnn_graph_reduce(struct cudnn_graph *graph, cudnnReduceTensorOp_t reduction, cudnn_tensor x,
                                cudnn_tensor out)
{
    cudnnDataType_t          sums = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t how  = create(graph, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    set(graph, how, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, &reduction);
    set(graph, how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, &sums);
    finalize(graph, "reduction", how);

    cudnnBackendDescriptor_t made = create(graph, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    set_descriptor(graph, made, CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
    set_descriptor(graph, made, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    set_descriptor(graph, made, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, out);
    add_operation(graph, "reduction operation", made);
    return out;
}

cudnn_tensor cudnn_graph_reshape(struct cudnn_graph *graph, cudnn_tensor x, cudnn_tensor out)
{
    cudnnBackendDescriptor_t made = create(graph, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    set_descriptor(graph, made, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    set_descriptor(graph, made, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, out);
    add_operation(graph, "reshape operation", made);
    return out;
}

static cudnnBackendDescriptor_t make_device(struct cudnn_graph *graph, const char *json)
{
    cudnnBackendDescriptor_t device = create(graph, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    set_all(graph, device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
            (struct values){CUDNN_TYPE_CHAR, (int64_t)strlen(json) + 1, json});
    finalize(graph, "device", device);
    return device;
}

// Finalizes the graph and asks cuDNN's heuristic for engines. They are for the device of the handle, or for the device
// descriptor `device` if handle is NULL.
static cudnnBackendDescriptor_t propose(struct cudnn_graph *graph, cudnnHandle_t handle,
                                        cudnnBackendDescriptor_t device)
{
    cudnnBackendHeurMode_t   mode  = CUDNN_HEUR_MODE_A;
    cudnnBackendDescriptor_t whole = create(graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    if (handle != NULL) {
        set(graph, whole, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, &handle);
    }
    set_all(graph, whole, CUDNN_ATTR_OPERATIONGRAPH_OPS,
            (struct values){CUDNN_TYPE_BACKEND_DESCRIPTOR, graph->operation_count, graph->operation});
    finalize(graph, "graph", whole);

    cudnnBackendDescriptor_t heuristic = create(graph, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    set_descriptor(graph, heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, whole);
    set(graph, heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, &mode);
    if (device != NULL) {
        set_descriptor(graph, heuristic, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
    }
    finalize(graph, "heuristic", heuristic);
    return heuristic;
}

status cudnn_graph_engines(struct cudnn_graph *graph, const char *device_json, int64_t *engines)
{
    cudnnBackendDescriptor_t proposed = propose(graph, NULL, make_device(graph, device_json));
    *engines                          = 0;
    if (!failed(&graph->result)) {
        check(graph, "engines",
              graph->cudnn->cudnnBackendGetAttribute(proposed, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, engines, NULL));
    }
    return graph->result;
}

static void get(struct cudnn_graph *graph, cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, void *value)
{
    int64_t count;
    if (!failed(&graph->result)) {
        check(graph, "answer", graph->cudnn->cudnnBackendGetAttribute(of, name, type, 1, &count, value));
    }
}

// Makes a plan from one candidate. After a failure the graph stays usable, so the next candidate can be tried.
static status try_plan(struct cudnn_graph *graph, cudnnHandle_t handle, cudnnBackendDescriptor_t candidate,
                       struct cudnn_plan *plan)
{
    cudnnBackendDescriptor_t engine = create(graph, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    get(graph, candidate, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, &engine);
    get(graph, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, &plan->engine);
    plan->descriptor = create(graph, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    set_descriptor(graph, plan->descriptor, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, candidate);
    set(graph, plan->descriptor, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, &handle);
    finalize(graph, "plan", plan->descriptor);
    get(graph, plan->descriptor, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, &plan->workspace_bytes);
    status result = graph->result;
    graph->result = OK;
    return result;
}

status cudnn_graph_plan(struct cudnn_graph *graph, cudnnHandle_t handle, struct cudnn_plan plans[CUDNN_PLANS],
                        int *count)
{
    cudnnBackendDescriptor_t proposed = propose(graph, handle, NULL);
    cudnnBackendDescriptor_t candidates[CUDNN_PLANS];
    int64_t                  found = 0;
    *count                         = 0;
    for (int i = 0; i < CUDNN_PLANS; i++) {
        candidates[i] = create(graph, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    }
    TRY(graph->result);
    check(graph, "engines",
          graph->cudnn->cudnnBackendGetAttribute(proposed, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                                 CUDNN_PLANS, &found, candidates));
    TRY(graph->result);
    char version[32];
    cudnn_version(graph->cudnn, version, sizeof(version));
    status result = fail("%s proposes no engine", version);
    for (int64_t i = 0; i < found && i < CUDNN_PLANS; i++) {    // cuDNN may find more than CUDNN_PLANS
        status planned = try_plan(graph, handle, candidates[i], &plans[*count]);
        *count += !failed(&planned);
        result = *count > 0 ? OK : planned;
    }
    return result;
}

void cudnn_graph_free(struct cudnn_graph *graph)
{
    while (graph->descriptor_count > 0) {
        graph->cudnn->cudnnBackendDestroyDescriptor(graph->descriptor[--graph->descriptor_count]);
    }
}
