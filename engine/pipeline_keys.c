/*
 * Every key of a pipeline file, one row each. A row without a reader is a key
 * that is known and refused. pipelines/pipeline.schema.json says the same.
 */
#include "engine/pipeline_read.h"

#include <stddef.h>

#define N_ROWS(rows) (sizeof(rows) / sizeof((rows)[0]))
#define REQUIRED "required"
#define NAME_TYPE                                                             \
  "a name of at most 64 letters, digits, _, . and -, starting with a "        \
  "letter, a digit or _"

static const char *const page_words[] = {"z", "channel", "timepoint", NULL};
static const char *const plane_words[] = {"slices", "projections", "both",
                                          NULL};
/* In the order of enum pf_result_kind and enum pf_incomplete. */
static const char *const result_words[] = {"image", "labels", "none", NULL};
static const char *const incomplete_words[] = {"skip", "run", "stop", NULL};

#define AT(field) offsetof(struct pf_pipeline, field)
static const struct pf_key root_rows[] = {
    {"plateflow", "the integer 1", REQUIRED, pf_read_version, 0, 1, 1, NULL,
     "The version of the format that the file is written in."},
    {"name", "a string", "the file's name", pf_read_string, AT(name), 0, 0,
     NULL, "What the pipeline is called in summaries."},
    {"plate", "an object", "{}", pf_read_plate, 0, 0, 0, NULL,
     "How the plate's folder is to be read."},
    {"steps", "a list of steps", REQUIRED, pf_read_steps, 0, 1, PF_MAX_STEPS,
     NULL, "What is done to the images, in this order."},
};

static const struct pf_key plate_rows[] = {
    {"layout", "a layout's name, or \"auto\"", "\"auto\"", pf_read_string,
     AT(layout), 0, 0, NULL, "How components stand in file and folder names."},
    {"pattern", "a string", "none", pf_read_string, AT(pattern), 0, 0, NULL,
     "With the layout \"pattern\": names as "
     "\"{well}_s{site}_w{channel}.tif\", "
     "or a regular expression with named groups."},
    {"pages", "\"z\", \"channel\" or \"timepoint\"",
     "as the files say, else z", pf_read_choice_text, AT(pages), 0, 0,
     page_words, "The component that the pages of a file count."},
    {"channels", "an object of strings", "{}", pf_read_channels, 0, 0, 0, NULL,
     "Names for channels: the value in the file names, then the name."},
    {"planes", "\"slices\", \"projections\" or \"both\"", "\"slices\"",
     pf_read_choice_text, AT(planes), 0, 0, plane_words,
     "Which kinds of planes take part."},
    {"metadata", "a file's name", "none", NULL, 0, 0, 0, NULL,
     "A CSV that is joined to the tables by well."},
    {"exclude", "a file's name", "none", NULL, 0, 0, 0, NULL,
     "A CSV of components whose slices drop out."},
};
#undef AT

#define AT(field) offsetof(struct pf_step_spec, field)
static const struct pf_key step_rows[] = {
    {"name", NAME_TYPE, REQUIRED, pf_read_name, AT(name), 0, 0, NULL,
     "What the step is called; unique in the pipeline."},
    {"function",
     "\"native:NAME\", \"package.module:name\" or \"./file.py:name\"",
     REQUIRED, pf_read_function, AT(function), 0, 0, NULL,
     "The function; a file is found beside the pipeline file."},
    {"memory_type", "a memory type", "the function's", pf_read_memory_types, 0,
     0, 0, NULL, "The framework whose arrays it takes and returns."},
    {"input_memory_type", "a memory type", "the function's",
     pf_read_memory_type, AT(input_memory_type), 0, 0, NULL,
     "What it takes, where that is not what it returns."},
    {"output_memory_type", "a memory type", "the function's",
     pf_read_memory_type, AT(output_memory_type), 0, 0, NULL,
     "What it returns, where that is not what it takes."},
    {"stack", "a list of components", "[\"z\"]", pf_read_stack, 0, 0,
     PF_N_COMPONENTS, NULL,
     "The components that vary inside one stack, the first slowest; all "
     "others identify the group."},
    {"where", "an object of component values", "all", pf_read_where, 0, 0, 0,
     NULL, "Only slices whose components match."},
    {"input", "\"previous\", \"plate\" or an earlier step's name",
     "\"previous\"", pf_read_source, 0, 0, 0, NULL,
     "Where the stack comes from."},
    {"with", "an object", "{}", pf_read_with, 0, 0, 0, NULL,
     "Further arrays: the parameter's name, then a step or an object."},
    {"result", "\"image\", \"labels\" or \"none\"", "\"image\"",
     pf_read_choice, AT(result), 0, 0, result_words,
     "What it returns: an image, a label image, or tables only."},
    {"yields", "\"same\", \"one\" or a component", "\"same\"", pf_read_yields,
     0, 0, 0, NULL, "How deep the result is."},
    {"resizes", "true or false", "false", pf_read_bool, AT(resizes), 0, 0,
     NULL, "The step may change Y and X."},
    {"parameters", "an object", "{}", pf_read_parameters, AT(parameters), 0, 0,
     NULL, "Keyword arguments; {component} and {out} are filled in."},
    {"input_dtype", "a pixel type", "as read", pf_read_input_dtype,
     AT(input_dtype), 0, 0, NULL,
     "The pixel type that the stack is cast to for the function."},
    {"slice_by_slice", "true or false", "false", pf_read_bool,
     AT(slice_by_slice), 0, 0, NULL,
     "Call the function on each 2D slice and stack the results."},
    {"dtype", "preserve, rescale, unit, native or a pixel type",
     "\"preserve\"", pf_read_dtype, 0, 0, 0, NULL,
     "How the result's pixel type is chosen."},
    {"device", "\"auto\", \"cpu\" or \"opencl:N\"", "\"auto\"", pf_read_device,
     AT(device), 0, 0, NULL, "Where it runs."},
    {"concurrency", "an integer from 1 to 1024", "the workers", pf_read_int,
     AT(concurrency), 1, PF_MAX_THREADS, NULL, "Calls at one time."},
    {"threads", "an integer from 1 to 1024", "1", pf_read_int, AT(threads), 1,
     PF_MAX_THREADS, NULL, "Inner threads of the step's libraries."},
    {"memory", "bytes, or a factor of the input", "measured", NULL, 0, 0, 0,
     NULL, "Memory that one call needs."},
    {"splittable", "true or false", "only with slice_by_slice", NULL, 0, 0, 0,
     NULL, "Whether its stack may be cut along Z."},
    {"on_oom", "an object", "retry, split, then the CPU", NULL, 0, 0, 0, NULL,
     "What happens when memory runs out."},
    {"incomplete", "\"skip\", \"run\" or \"stop\"", "\"skip\"", pf_read_choice,
     AT(incomplete), 0, 0, incomplete_words,
     "What happens to groups that lack slices which their siblings have."},
    {"sample", "an integer from 1 to 4294967295", "all", pf_read_sample,
     AT(sample), 1, UINT32_MAX, NULL,
     "At most so many slices per stack, spread evenly."},
    {"keep", "a list of objects", "[]", pf_read_keep, 0, 0, PF_MAX_TABLES,
     NULL, "Groups whose row in a table fails are excluded."},
    {"save", "true, false or a name template",
     "false; true for the last image", pf_read_save, 0, 0, 0, NULL,
     "Whether, and under which names, results go to OUT/steps/NAME."},
    {"tables", "a list of names", "[]", pf_read_tables, 0, 0, PF_MAX_TABLES,
     NULL, "The tables that the function returns after its stack."},
    {"isolate", "true, false or an object", "false", NULL, 0, 0, 0, NULL,
     "Run in a child process."},
    {"timeout", "seconds", "none", NULL, 0, 0, 0, NULL,
     "How long one call may take in a child process."},
};
#undef AT

static const struct pf_key with_rows[] = {
    {"from", "\"plate\" or an earlier step's name", REQUIRED, pf_read_source,
     0, 0, 0, NULL, "Where the array comes from."},
    {"stack", "a list of components", "as the step", pf_read_with_stack, 0, 0,
     PF_N_COMPONENTS, NULL, "The components that vary inside the array."},
    {"where", "an object of component values", "all", pf_read_with_where, 0, 0,
     0, NULL, "Only slices whose components match."},
};

#define AT(field) offsetof(struct pf_keep, field)
static const struct pf_key keep_rows[] = {
    {"table", "a table's name", REQUIRED, pf_read_string, AT(table), 0, 0,
     NULL, "A table of this step or of an earlier one."},
    {"column", "a column's name", REQUIRED, pf_read_string, AT(column), 0, 0,
     NULL, "The column that is looked at."},
    {"min", "a number", "none", pf_read_limit, AT(min), 0, 0, NULL,
     "The smallest value that is kept."},
    {"max", "a number", "none", pf_read_limit, AT(max), 0, 0, NULL,
     "The largest value that is kept."},
};
#undef AT

const struct pf_key_table pf_pipeline_keys[] = {
    [PF_KEYS_ROOT] = {"a pipeline", N_ROWS(root_rows), root_rows},
    [PF_KEYS_PLATE] = {"a plate", N_ROWS(plate_rows), plate_rows},
    [PF_KEYS_STEP] = {"a step", N_ROWS(step_rows), step_rows},
    [PF_KEYS_WITH] = {"an array of \"with\"", N_ROWS(with_rows), with_rows},
    [PF_KEYS_KEEP] = {"a row of \"keep\"", N_ROWS(keep_rows), keep_rows},
    {NULL, 0, NULL},
};
