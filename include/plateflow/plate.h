/*
 * A plate: the index of the slices in a folder. A layout finds them by name;
 * headers are sampled per channel. The folder is never written to.
 *
 * Ownership: pf_plate_open() gives one reference. Everything that an accessor
 * returns belongs to the plate and lives as long as it.
 * Threads: an opened plate is constant; any thread may read it.
 */
#ifndef PLATEFLOW_PLATE_H
#define PLATEFLOW_PLATE_H

#include <stdint.h>

#include "plateflow/memory_type.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The axes of a plate's naming, in the order in which slices are sorted. */
#define PF_COMPONENT_MAP(XX)                                                  \
  XX(PLATE, "plate")                                                          \
  XX(WELL, "well")                                                            \
  XX(SITE, "site")                                                            \
  XX(TIMEPOINT, "timepoint")                                                  \
  XX(CHANNEL, "channel")                                                      \
  XX(Z, "z")

enum pf_component {
#define XX(name, word) PF_##name,
  PF_COMPONENT_MAP(XX)
#undef XX
      PF_N_COMPONENTS
};

PF_API const char *pf_component_name(enum pf_component component);
/* PF_N_COMPONENTS where there is no such word. */
PF_API enum pf_component pf_component_find(const char *word);

enum pf_kind {
  PF_KIND_SLICE,
  PF_KIND_PROJECTION, /* has no z */
  PF_KIND_COPY        /* left out, with the reason */
};

#define PF_NO_VALUE UINT32_MAX /* the slice does not have this component */

/*
 * One 2D image. `value[c]` is the rank of the component's value among all of
 * the plate's (numbers in numeric order, wells by row and column), so ranks
 * compare as the values do. Slices are sorted by value[PF_PLATE], [WELL],
 * [SITE], [TIMEPOINT], [CHANNEL], [Z], then kind; absent sorts first.
 */
struct pf_slice {
  uint32_t file;                   /* for pf_plate_path() */
  uint32_t page;                   /* 0-based, in the file */
  uint32_t value[PF_N_COMPONENTS]; /* rank, or PF_NO_VALUE */
  uint16_t format;                 /* for pf_plate_format() */
  uint8_t kind;                    /* enum pf_kind */
};

/* What the sampled header of this slice's channel said. */
struct pf_format {
  uint32_t width, height; /* pixels */
  enum pf_dtype dtype;
};

/* Why a file or a slice is not used; `reason` is one clause for people. */
struct pf_left_out {
  const char *path; /* relative to the plate's folder, as it is on disk */
  const char *reason;
};

struct pf_plate;

struct pf_plate_options {
  const char *layout;  /* a layout's name; NULL or "auto": by evidence */
  const char *pattern; /* for layout "pattern", else NULL */
  const char *pages;  /* "z", "channel", "timepoint"; NULL: as the file says */
  const char *planes; /* "slices" (also NULL), "projections", "both" */
  size_t n_channels;  /* aliases: value in the names -> name for people */
  const char *const *channel_values;
  const char *const *channel_names;
  bool deep; /* open every header, not one per channel */
};

/*
 * Errors: PF_EINVAL with both files named where two files are one slice, where
 * nothing is readable, or where the layout or pattern is wrong.
 */
PF_API int pf_plate_open(struct pf_plate **out, const char *path,
                         const struct pf_plate_options *options,
                         struct pf_error *err) PF_MUST_CHECK;
PF_API void pf_plate_unref(struct pf_plate **plate);

PF_API const char *pf_plate_root(const struct pf_plate *plate);
PF_API const char *pf_plate_layout(const struct pf_plate *plate);
/* One sentence: why this layout was taken ("36 of 36 names fit"). */
PF_API const char *pf_plate_evidence(const struct pf_plate *plate);

/* The chosen slices (`planes` applied, copies left out), sorted. */
PF_API size_t pf_plate_n_slices(const struct pf_plate *plate);
PF_API const struct pf_slice *pf_plate_slices(const struct pf_plate *plate);
PF_API size_t pf_plate_n_formats(const struct pf_plate *plate);
PF_API const struct pf_format *pf_plate_format(const struct pf_plate *plate,
                                               uint16_t format);

/* Components. A component that no slice has is not `present`. */
PF_API bool pf_plate_has(const struct pf_plate *plate,
                         enum pf_component component);
PF_API uint32_t pf_plate_n_values(const struct pf_plate *plate,
                                  enum pf_component component);
/* The value for people and tables: "A01", "3" (no leading zeros), "DNA" (the
 * alias where the options give one, else the channel as in the names). */
PF_API const char *pf_plate_value(const struct pf_plate *plate,
                                  enum pf_component component, uint32_t rank);
/* Rank of a value as a person writes it ("1" is "01", "a1" is "A01", aliases
 * and names of channels both work), or PF_NO_VALUE. */
PF_API uint32_t pf_plate_find(const struct pf_plate *plate,
                              enum pf_component component, const char *text);

/* Absolute path, and the path below the plate's folder; malloc'd. */
PF_API char *pf_plate_path(const struct pf_plate *plate,
                           const struct pf_slice *slice);
PF_API char *pf_plate_relative_path(const struct pf_plate *plate,
                                    const struct pf_slice *slice);
/* How many chosen slices the slice's file holds. */
PF_API uint32_t pf_plate_n_slices_in_file(const struct pf_plate *plate,
                                          uint32_t file);

/*
 * The output's name below OUT/images for a slice made from `slice` after the
 * components in `lost` (bit 1u << enum pf_component) were lost: the slice's
 * relative path, in which a lost component's token goes with the letters and
 * the separator before it, and a lost component's folder goes too. Slices that
 * share a file get what tells them apart appended (`_w1`). The extension is
 * `extension` (".tif"). malloc'd; NULL if memory ran out.
 */
PF_API char *pf_plate_output_name(const struct pf_plate *plate,
                                  const struct pf_slice *slice, unsigned lost,
                                  const char *extension);

PF_API size_t pf_plate_n_left_out(const struct pf_plate *plate);
PF_API const struct pf_left_out *
pf_plate_left_out(const struct pf_plate *plate, size_t i);

#ifdef __cplusplus
}
#endif
#endif
