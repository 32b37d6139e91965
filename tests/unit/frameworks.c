/* bridge/frameworks*.c: entries good and bad, the order, the environment, and
 * which exceptions say that memory ran out. */
#include "bridge/frameworks.h"
#include "tests/unit/check.h"

#include <stdlib.h>
#include <unistd.h>

#include "bridge/frameworks_private.h"
#include "plateflow/device.h"

/* ---------------------------------------------------------------- entries */

#define HEAD "{\"plateflow_frameworks\": 1, \"frameworks\": [\n"
#define TAIL "\n]}"
/* What an entry needs; what follows stands on line 3 from column 1. */
#define NEEDED(name)                                                          \
  HEAD "{\"name\": \"" name "\", \"import\": \"a.b\", \"arrays\": "           \
       "{\"modules\": [\"a\"]}, \"devices\": [\"host\"],"
#define TAKE(keys)                                                            \
  "\"take\": {\"function\": \"a.f\", \"args\": [\"{array}\"], \"kind\": "     \
  "\"object\", \"dtypes\": [\"uint8\"]" keys "}"
#define WITH(keys) NEEDED("x") TAKE("") ",\n" keys "}" TAIL
#define TAKES(keys) NEEDED("x") "\n" keys "}" TAIL
#define F "{\"function\": \"a.f\", "

static const struct {
  const char *text;
  int line, column;
  const char *message;
} bad[] = {
    {"", 1, 1, "the text is empty"},
    {"[]", 1, 1, "expected an object, got a list"},
    {"{", 1, 2, "the text ends"},
    {"{\"plateflow_frameworks\": 1}", 1, 1, "\"frameworks\" is missing"},
    {"{\"frameworks\": []}", 1, 1, "\"plateflow_frameworks\" is missing"},
    {"{\"plateflow_frameworks\": 2, \"frameworks\": []}", 1, 26,
     "reads version 1"},
    {"{\"plateflow_frameworks\": \"1\", \"frameworks\": []}", 1, 26,
     "expected an integer, got a string"},
    {"{\"plateflow_frameworks\": 1,\n \"framework\": []}", 2, 2,
     "unknown key \"framework\"; did you mean \"frameworks\"?"},
    {HEAD "1" TAIL, 2, 1, "frameworks[0]: expected an object, got an integer"},
    {HEAD "{}" TAIL, 2, 1, "frameworks[0]: \"name\" is missing"},
    {HEAD "{\"name\": \"\"}" TAIL, 2, 10, "expected a name"},
    {HEAD "{\"name\": \"Paddle\"}" TAIL, 2, 10, "expected a name"},
    {HEAD "{\"name\": \"0x\"}" TAIL, 2, 10, "expected a name"},
    {HEAD "{\"name\": \"a%sb\"}" TAIL, 2, 10, "expected a name"},
    {HEAD "{\"name\": \"none\"}" TAIL, 2, 10, "expected a name"},
    {HEAD "{\"name\": \"abcdefghijklmnopqrstuvwxyz012345\"}" TAIL, 2, 10,
     "31 at the most"},
    {HEAD "{\"name\": \"opencl\"}" TAIL, 2, 10, "a memory type of C steps"},
    {HEAD "{\"name\": \"x\"}" TAIL, 2, 1, "\"import\" is missing"},
    {HEAD "{\"name\": \"x\", \"import\": \"a..b\"}" TAIL, 2, 25,
     "expected a dotted name"},
    {HEAD "{\"name\": \"x\", \"import\": \"os.system()\"}" TAIL, 2, 25,
     "expected a dotted name"},
    {HEAD "{\"name\": \"x\", \"import\": 1}" TAIL, 2, 25,
     "framework \"x\", frameworks[0].import: expected a dotted name"},
    {NEEDED("x") "\n\"order\": 1}" TAIL, 2, 1, "\"take\" is missing"},
    {WITH("\"ordre\": 1"), 3, 1,
     "unknown key \"ordre\"; did you mean \"order\"?"},
    {WITH("\"zzzzzz\": 1"), 3, 1, "unknown key \"zzzzzz\""},
    {WITH("\"order\": -1"), 3, 10, "expected an integer from 0"},
    {WITH("\"order\": 1.5"), 3, 10, "expected an integer, got a"},
    {WITH("\"install\": \"\""), 3, 12, "a string that is not empty"},
    {WITH("\"environment\": [1]"), 3, 16, "expected an object, got a list"},
    {WITH("\"environment\": {\"A B\": \"1\"}"), 3, 17, "\"A B\" is no name"},
    {WITH("\"environment\": {\"A=\": \"1\"}"), 3, 17, "\"A=\" is no name"},
    {WITH("\"environment\": {\"A\": 1}"), 3, 22,
     "expected a string, got an integer"},
    {WITH("\"before_import\": {}"), 3, 18, "expected a list, got an object"},
    {WITH("\"before_import\": [\"a.f\"]"), 3, 19, "expected a call"},
    {WITH("\"wait\": {}"), 3, 9, "\"function\" is missing"},
    {WITH("\"wait\": {\"function\": \"a f\"}"), 3, 22,
     "expected a dotted name"},
    {WITH("\"wait\": {\"function\": \"a(1).f\"}"), 3, 22,
     "expected a dotted name"},
    {WITH("\"wait\": {\"function\": \"{arry}.f\"}"), 3, 22,
     "expected a dotted name"},
    {WITH("\"wait\": {\"functoin\": \"a.f\"}"), 3, 10,
     "unknown key of a call \"functoin\"; did you mean \"function\"?"},
    {WITH("\"wait\": " F "\"args\": {}}"), 3, 37, "expected a list"},
    {WITH("\"wait\": " F "\"kwargs\": []}"), 3, 39, "expected an object"},
    {WITH("\"wait\": " F "\"kwargs\": {\"a b\": 1}}"), 3, 40,
     "\"a b\" is no name of a parameter"},
    {WITH("\"wait\": " F "\"args\": [\"{devise}\"]}"), 3, 38,
     "unknown placeholder \"devise\"; did you mean \"device\"?"},
    {WITH("\"wait\": " F "\"args\": [\"{device\"]}"), 3, 38,
     "without its placeholder"},
    {WITH("\"wait\": " F "\"args\": [[{\"value\": \"a b\"}]]}"), 3, 49,
     "expected a dotted name"},
    {WITH("\"wait\": " F "\"args\": [{\"value\": \"a\", \"b\": 1}]}"), 3, 38,
     "\"value\" stands alone"},
    {WITH("\"wait\": " F "\"args\": [{\"a\": 1}]}"), 3, 39, "unknown key"},
    {WITH("\"give\": {\"versoned\": true}"), 3, 10,
     "did you mean \"versioned\"?"},
    {WITH("\"give\": {\"versioned\": 1}"), 3, 23,
     "expected true or false, got an integer"},
    {WITH("\"give\": {\"refuses\": \"string\"}"), 3, 21, "expected a list"},
    {WITH("\"give\": {\"refuses\": [1]}"), 3, 22,
     "expected a string that is not empty, got an integer"},
    {WITH("\"out_of_memory\": [{\"patterns\": []}]"), 3, 19,
     "\"exception\" is missing"},
    {WITH("\"out_of_memory\": [{\"exception\": \"a-b\"}]"), 3, 33,
     "expected a dotted name"},
    {WITH("\"conflicts\": [{\"with\": \"a\"}]"), 3, 15, "\"text\" is missing"},
    {WITH("\"cpu_modules\": {\"a\": null}"), 3, 22, "expected a string"},
    {NEEDED("x") TAKE("") ",\n\"import\": \"b\"}" TAIL, 3, 1, "second time"},
    {HEAD "{\"name\": \"x\", \"import\": \"a\", \"arrays\": {\"modules\": "
          "[]}, \"devices\": [\"host\"],\n" TAKE("") "}" TAIL,
     2, 52, "no array could be recognised"},
    {HEAD "{\"name\": \"x\", \"import\": \"a\", \"arrays\": {}}" TAIL, 2, 40,
     "\"modules\" is missing"},
    {HEAD "{\"name\": \"x\", \"import\": \"a\", \"devices\": []}" TAIL, 2, 41,
     "the list is empty"},
    {HEAD "{\"name\": \"x\", \"import\": \"a\", \"devices\": [\"gpu\"]}" TAIL,
     2, 42, "unknown device \"gpu\""},
    {HEAD "{\"name\": \"x\", \"import\": \"a\", \"devices\": "
          "[\"opncl\"]}" TAIL,
     2, 42, "did you mean \"opencl\"?"},
    {TAKES("\"take\": {}"), 3, 9, "\"function\" is missing"},
    {TAKES("\"take\": []"), 3, 9, "expected an object"},
    {TAKES(TAKE(", \"kin\": 1")), 3, 89, "did you mean \"kind\"?"},
    {TAKES(TAKE(", \"strides\": \"positve\"")), 3, 100,
     "unknown word \"positve\"; did you mean \"positive\"?"},
    {TAKES(TAKE(", \"alignment\": 48")), 3, 102, "a power of two"},
    {TAKES(TAKE(", \"alignment\": 0")), 3, 102, "a power of two"},
    {TAKES(TAKE(", \"alignment\": 9223372036854775807")), 3, 102,
     "a power of two"},
    {TAKES(TAKE(", \"alignment\": 4611686018427387904")), 3, 102,
     "a power of two"},
    {TAKES(TAKE(", \"max_ndim\": 65")), 3, 101, "from 0 to 64"},
    {TAKES(TAKE(", \"more_dtypes\": {\"dtypes\": []}")), 3, 104,
     "\"when\" is missing"},
    {TAKES(
         "\"take\": {\"function\": \"a.f\", \"args\": [\"array\"], \"kind\": "
         "\"object\", \"dtypes\": []}"),
     3, 37, "no argument is \"{array}\""},
    {TAKES("\"take\": {\"function\": \"a.f\", \"args\": [], \"kind\": "
           "\"object\", \"dtypes\": [\"flaot32\"]}"),
     3, 70, "unknown element type \"flaot32\"; did you mean \"float32\"?"},
    {NEEDED("x") TAKE("") "},\n{\"name\": \"x\", \"import\": \"b\", "
                          "\"arrays\": {\"modules\": [\"b\"]}, \"devices\": "
                          "[\"host\"], " TAKE("") "}" TAIL,
     3, 10, "the name is here a second time"},
};

static void test_bad(void) {
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    struct pf_framework_file *file = NULL;
    struct pf_error err = PF_ERROR_INIT;
    int before = check_failures;
    CHECK_INT(pf_framework_file_parse(&file, bad[i].text, strlen(bad[i].text),
                                      "my.json", &err),
              PF_EINVAL);
    CHECK(!file);
    CHECK_INT(err.line, bad[i].line);
    CHECK_INT(err.column, bad[i].column);
    CHECK_STR(err.file, "my.json");
    CHECK(err.message && strstr(err.message, bad[i].message));
    if (check_failures > before)
      (void)printf("  row %zu: %s\n  %s\n", i, bad[i].text,
                   err.message ? err.message : "");
    pf_error_clear(&err);
    pf_framework_file_free(&file);
  }
}

static const char whole[] = NEEDED("y_1") TAKE(
    ", \"strides\": \"any\", \"alignment\": 64, \"read_only\": true, "
    "\"writes_through\": true, \"waits\": true, \"max_ndim\": 3, "
    "\"kwargs\": {\"copy\": null}, \"more_dtypes\": {\"when\": \"a.wide\", "
    "\"dtypes\": [\"float64\"]}") ", \"order\": 7, \"install\": \"pip\", "
                                  "\"environment\": {\"PF_TEST_A\": \"1\"}, "
                                  "\"before_import\": [" F
                                  "\"args\": [1, true, null, {\"value\": "
                                  "\"a.b().c\"}, {\"function\": \"c\"}]}], "
                                  "\"before_first_use\": [], \"give\": "
                                  "{\"prepare\": \"detach\", \"refuses\": "
                                  "[\"string\"]}, \"wait\": {\"function\": "
                                  "\"{array}.wait\"}, \"adapter\": \"m.n\", "
                                  "\"cpu_fallback\": \"itself\", "
                                  "\"cpu_modules\": {\"p\": \"q\"}, "
                                  "\"not_out_of_memory\": [\"no\"]}" TAIL;

static void test_good(void) {
  struct pf_framework_file *file = NULL;
  struct pf_error err = PF_ERROR_INIT;
  const struct pf_framework *f;
  CHECK_INT(
      pf_framework_file_parse(&file, whole, strlen(whole), "my.json", &err),
      PF_OK);
  CHECK_STR(err.message ? err.message : "", "");
  if (!file)
    return;
  f = file->entries;
  CHECK_INT(file->n, 1);
  CHECK_STR(f->name, "y_1");
  CHECK_INT(f->order, 7);
  CHECK_INT(f->take_alignment, 64);
  CHECK_INT(f->take_strides, PF_STRIDES_ANY);
  CHECK_INT(f->take_kind, PF_TAKE_OBJECT);
  CHECK(f->takes_read_only && f->writes_through && f->take_waits);
  CHECK_INT(f->take_max_ndim, 3);
  CHECK(f->dtypes[PF_U8] && !f->dtypes[PF_F64] && f->more_dtypes[PF_F64]);
  CHECK_STR(f->more_when, "a.wide");
  CHECK_INT(f->n_env, 1);
  CHECK_STR(f->env_names[0], "PF_TEST_A");
  CHECK_STR(f->env_values[0], "1");
  CHECK_INT(f->n_before, 1);
  CHECK_INT(pf_json_n(f->before_import[0].args), 5);
  CHECK_STR(f->wait.function, "{array}.wait");
  CHECK(!f->cached_bytes.function && !f->device_context.function);
  CHECK_STR(f->give_refuses[0], "string");
  CHECK_STR(f->cpu_module_names[0], "p");
  CHECK_STR(f->cpu_module_values[0], "q");
  pf_framework_file_free(&file);
}

/* A text cut anywhere, or with a byte changed, is refused or read: never more
 * than that. */
static void test_mangled(void) {
  struct pf_framework_file *file = NULL;
  size_t n = strlen(whole);
  char *text = malloc(n + 1);
  for (size_t i = 0; text && i < n; i++) {
    CHECK_INT(pf_framework_file_parse(&file, whole, i, "x", NULL), PF_EINVAL);
    memcpy(text, whole, n + 1);
    text[i] = (char)(text[i] ^ 0x13);
    (void)!pf_framework_file_parse(&file, text, n, "x", NULL);
    pf_framework_file_free(&file);
  }
  free(text);
}

/* ------------------------------------------------------------------ table */

/* `numpy` is replaced, `a_first` comes before it. */
static const char user[] = NEEDED("numpy") TAKE(
    "") ", \"order\": 11},\n" /* one line */
        "{\"name\": \"a_first\", \"import\": \"z\", \"arrays\": {\"modules\": "
        "[\"z\"]}, \"devices\": [\"host\", \"cuda\"], \"order\": 1, " TAKE(
            "") "},\n{\"name\": \"unordered\", \"import\": \"z\", \"arrays\": "
                "{\"modules\": [\"z\"]}, \"devices\": [\"host\"], " TAKE(
                    "") "}],\n\"not_out_of_memory\": [\"never this\"]}";

static void test_table(void) {
  struct pf_framework_table table;
  struct pf_error err = PF_ERROR_INIT;
  size_t builtin_n;
  const char *json = (const char *)pf_frameworks_json;
  CHECK_INT(pf_framework_table_make(&table, json, pf_frameworks_json_size,
                                    NULL, 0, NULL, &err),
            PF_OK);
  CHECK_STR(err.message ? err.message : "", "");
  builtin_n = table.n;
  CHECK(builtin_n >= 6);
  for (size_t i = 0; i < table.n; i++) {
    CHECK(table.entries[i]->type < PF_N_MEMORY_TYPES);
    CHECK_STR(pf_memory_type_name(table.entries[i]->type),
              table.entries[i]->name);
    CHECK(i == 0 || table.entries[i - 1]->order <= table.entries[i]->order);
  }
  pf_framework_table_clear(&table);
  CHECK_INT(pf_framework_table_make(&table, json, pf_frameworks_json_size,
                                    user, strlen(user), "u.json", &err),
            PF_OK);
  CHECK_INT(table.n, builtin_n + 2);
  CHECK_STR(table.entries[0]->name, "a_first");
  CHECK_STR(table.entries[1]->name, "numpy");
  CHECK_STR(table.entries[1]->import, "a.b");
  CHECK_STR(table.entries[table.n - 1]->name, "unordered");
  CHECK_STR(table.not_oom[table.n_not_oom - 1], "never this");
  CHECK(table.entries[0]->type >= PF_MEM_FIRST_REGISTERED);
  CHECK_INT(pf_memory_type_find("a_first"), table.entries[0]->type);
  CHECK(pf_memory_type_is_python(table.entries[0]->type));
  pf_framework_table_clear(&table);
}

static void test_memory_types(void) {
  char name[16];
  int type = pf_memory_type_register("one_more", true);
  CHECK(type > PF_MEM_NONE && type < PF_MEM_END);
  CHECK_INT(pf_memory_type_register("one_more", true), type);
  CHECK_INT(pf_memory_type_register("one_more", false), -1);
  CHECK_STR(pf_memory_type_name((enum pf_memory_type)type), "one_more");
  CHECK(pf_memory_type_exists((enum pf_memory_type)type));
  CHECK(!pf_memory_type_exists(PF_MEM_NONE));
  CHECK(!pf_memory_type_exists(PF_MEM_END));
  CHECK_STR(pf_memory_type_name(PF_MEM_NONE), "none");
  CHECK_INT(pf_memory_type_register("numpy", true), PF_MEM_NUMPY);
  CHECK_INT(pf_memory_type_register("native", true), -1);
  CHECK_INT(pf_memory_type_register("No", true), -1);
  CHECK_INT(pf_memory_type_register("", true), -1);
  CHECK_INT(pf_memory_type_register(NULL, true), -1);
  CHECK_INT(pf_memory_type_register("none", true), -1);
  for (int i = 0; i < 16; i++) { /* some are taken by now */
    (void)snprintf(name, sizeof(name), "more_%d", i);
    type = pf_memory_type_register(name, true);
    CHECK(type == -1 || (type > PF_MEM_NONE && type < PF_MEM_END));
  }
  CHECK_INT(type, -1);
  CHECK_INT(pf_memory_type_find("more_15"), PF_MEM_NONE);
}

static void test_load(void) {
  static const char *const names[] = {"tensorflow", "jax", "numpy", "nobody"};
  struct pf_error err = PF_ERROR_INIT;
  char *set = NULL;
  CHECK_INT(pf_frameworks_get()->n, 0);
  CHECK_INT(pf_frameworks_load("/nowhere/at/all.json", &err), PF_EINVAL);
  CHECK(err.message && strstr(err.message, "all.json"));
  pf_error_clear(&err);
  CHECK_INT(pf_frameworks_get()->n, 0);
  (void)unsetenv("PLATEFLOW_FRAMEWORKS");
  CHECK_INT(pf_frameworks_load(NULL, &err), PF_OK);
  CHECK(pf_frameworks_get()->n >= 6);
  CHECK_INT(pf_frameworks_load("/nowhere/at/all.json", &err), PF_OK);
  CHECK_STR(pf_framework_find("jax")->name, "jax");
  CHECK(!pf_framework_find("native"));
  CHECK_STR(pf_framework_of_type(PF_MEM_TORCH)->name, "torch");
  CHECK(!pf_framework_of_type(PF_MEM_NONE));
  CHECK(pf_framework_doc(pf_framework_find("jax")) != NULL);
  /* Not the same object: */
  CHECK(pf_framework_find("jax")->json != pf_framework_find("torch")->json);
  (void)setenv("TF_ENABLE_ONEDNN_OPTS", "mine", 1);
  (void)setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "", 1);
  (void)unsetenv("XLA_PYTHON_CLIENT_ALLOCATOR");
  CHECK_INT(pf_frameworks_set_env(names, 4, &set, &err), PF_OK);
  CHECK_STR(getenv("TF_ENABLE_ONEDNN_OPTS"), "mine");
  CHECK_STR(getenv("XLA_PYTHON_CLIENT_PREALLOCATE"), "");
  CHECK_STR(getenv("XLA_PYTHON_CLIENT_ALLOCATOR"), "cuda_async");
  CHECK(set && strstr(set, "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async\n"));
  CHECK(set && !strstr(set, "ONEDNN") && !strstr(set, "PREALLOCATE"));
  free(set);
  CHECK_INT(pf_frameworks_set_env(names, 4, &set, &err), PF_OK);
  CHECK_STR(set, "");
  free(set);
}

/* -------------------------------------------------------- running out */

#define TF_ERRORS "tensorflow.python.framework.errors_impl."
#define CUPY_ERROR "cupy_backends.cuda.api.runtime.CUDARuntimeError"

/* As the frameworks raised them: NULL in `framework`, whoever is asked. */
static const struct {
  const char *framework, *names[3], *text;
  bool is_oom;
} exceptions[] = {
    {"numpy",
     {"numpy._core._exceptions.MemoryError", "builtins.MemoryError"},
     "Unable to allocate 8.00 TiB for an array with shape (1048576, 1048576) "
     "and data type float64",
     true},
    {NULL, {"builtins.MemoryError", "builtins.Exception"}, "", true},
    {NULL, {"MemoryError"}, NULL, true},
    {NULL, {"builtins.OSError"}, "[Errno 12] Cannot allocate memory", true},
    {NULL, {"builtins.OSError"}, "[Errno 28] No space left on device", false},
    {"cupy",
     {"cupy.cuda.memory.OutOfMemoryError", "builtins.MemoryError"},
     "Out of memory allocating 512 bytes (allocated so far: 1,024 bytes).",
     true},
    {"cupy",
     {CUPY_ERROR, "builtins.RuntimeError"},
     "cudaErrorMemoryAllocation: out of memory",
     true},
    {"cupy",
     {CUPY_ERROR, "builtins.RuntimeError"},
     "cudaErrorLaunchOutOfResources: too many resources requested for launch",
     false},
    {"cupy",
     {CUPY_ERROR, "builtins.RuntimeError"},
     "cudaErrorIllegalAddress: an illegal memory access was encountered",
     false},
    {"cupy",
     {CUPY_ERROR, "builtins.RuntimeError"},
     "cudaErrorInsufficientDriver: CUDA driver version is insufficient for "
     "CUDA runtime version",
     false},
    {"cupy",
     {"cupy_backends.cuda.libs.cublas.CUBLASError", "builtins.RuntimeError"},
     "CUBLAS_STATUS_ALLOC_FAILED",
     true},
    {"torch",
     {"builtins.RuntimeError", "builtins.Exception"},
     "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: "
     "can't allocate memory: you tried to allocate 4398046511104 bytes. Error "
     "code 12 (Cannot allocate memory)",
     true},
    {"torch",
     {"torch.OutOfMemoryError", "builtins.RuntimeError"},
     "CUDA out of memory. Tried to allocate 2.00 GiB.",
     true},
    {"torch",
     {"torch.OutOfMemoryError", "builtins.RuntimeError"},
     "Allocation on device 0 would exceed allowed memory. (out of memory)",
     true},
    {"torch",
     {"torch.AcceleratorError", "builtins.RuntimeError"},
     "CUDA error: out of memory\nCompile with `TORCH_USE_CUDA_DSA`",
     true},
    {"torch",
     {"torch.AcceleratorError", "builtins.RuntimeError"},
     "CUDA error: too many resources requested for launch",
     false},
    {"torch",
     {"torch.AcceleratorError", "builtins.RuntimeError"},
     "CUDA error: an illegal memory access was encountered",
     false},
    {"torch",
     {"torch.AcceleratorError", "builtins.RuntimeError"},
     "CUDA error: device-side assert triggered",
     false},
    {"torch",
     {"builtins.RuntimeError"},
     "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling "
     "`cublasCreate(handle)`",
     true},
    {"torch",
     {"builtins.RuntimeError"},
     "The size of tensor a (3) must match the size of tensor b (4)",
     false},
    {"torch", {"builtins.ValueError"}, "CUDA out of memory", false},
    {"tensorflow",
     {TF_ERRORS "ResourceExhaustedError", TF_ERRORS "OpError"},
     "{{function_node __wrapped__Fill_device_/job:localhost/replica:0}} OOM "
     "when allocating tensor with shape[1048576,1048576] and type float",
     true},
    {"tensorflow",
     {TF_ERRORS "InternalError", TF_ERRORS "OpError"},
     "Failed copying input tensor from CPU:0 to GPU:0 in order to run Add: "
     "Dst tensor is not initialized.",
     true},
    {"tensorflow",
     {TF_ERRORS "InternalError", TF_ERRORS "OpError"},
     "Failed launching kernel: launch out of resources",
     false},
    {"tensorflow",
     {TF_ERRORS "InvalidArgumentError", TF_ERRORS "OpError"},
     "Invalid strides array from DLPack",
     false},
    {"jax",
     {"jax.errors.JaxRuntimeError", "builtins.RuntimeError"},
     "RESOURCE_EXHAUSTED: Out of memory allocating 1125899906842624 bytes.",
     true},
    {"jax",
     {"jax.errors.JaxRuntimeError", "builtins.RuntimeError"},
     "RESOURCE_EXHAUSTED: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: too many "
     "resources requested for launch",
     false},
    {"jax",
     {"jax.errors.JaxRuntimeError", "builtins.RuntimeError"},
     "UNIMPLEMENTED: WaitUntilBufferReadyOnStream is only implemented for "
     "GPU.",
     false},
    {"pyclesperanto",
     {"builtins.RuntimeError"},
     "Error: Failed to allocate buffer memory. OpenCL error: "
     "CL_INVALID_BUFFER_SIZE (-61)",
     true},
    {"pyclesperanto",
     {"builtins.RuntimeError"},
     "Error: Failed to write. OpenCL error: CL_MEM_OBJECT_ALLOCATION_FAILURE "
     "(-4)",
     true},
    {"pyclesperanto",
     {"builtins.RuntimeError"},
     "Error: Failed to execute kernel. OpenCL error: CL_OUT_OF_RESOURCES (-5)",
     false},
    {"pyclesperanto",
     {"builtins.RuntimeError"},
     "Error: Failed to build OpenCL program",
     false},
    /* A step of one framework that another one failed in. */
    {NULL,
     {"jax.errors.JaxRuntimeError", "builtins.RuntimeError"},
     "RESOURCE_EXHAUSTED: Out of memory allocating 16 bytes.",
     true},
    {"numpy",
     {"jax.errors.JaxRuntimeError", "builtins.RuntimeError"},
     "RESOURCE_EXHAUSTED: Out of memory allocating 16 bytes.",
     false},
    {NULL, {"builtins.ValueError"}, "the cell ran out of memory", false},
    {NULL, {"builtins.KeyboardInterrupt"}, "", false},
    {NULL, {NULL}, "out of memory", false},
};

static void test_oom(void) {
  for (size_t i = 0; i < sizeof(exceptions) / sizeof(exceptions[0]); i++) {
    const char *framework = exceptions[i].framework;
    size_t n = 0;
    bool is_oom;
    while (n < 3 && exceptions[i].names[n])
      n++;
    is_oom =
        pf_framework_is_oom(framework ? pf_framework_find(framework) : NULL,
                            exceptions[i].names, n, exceptions[i].text);
    CHECK_INT(is_oom, exceptions[i].is_oom);
    if (is_oom != exceptions[i].is_oom)
      (void)printf("  row %zu: %s\n", i, exceptions[i].text);
  }
}

int main(void) {
  test_bad();
  test_good();
  test_mangled();
  test_load();
  test_oom();
  test_table();
  test_memory_types();
  return check_done();
}
