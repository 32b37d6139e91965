/* The report on a plate as JSON: see engine/plate/inspect.h. */
#include "engine/plate/inspect.h"

#include <stdlib.h>

static void add_value(struct pf_buf *out, const struct pf_plate *plate, int c,
                      uint32_t rank) {
  if (rank == PF_NO_VALUE)
    pf_buf_str(out, "null");
  else
    pf_buf_json(out, pf_plate_value(plate, (enum pf_component)c, rank));
}

/* `"well":"A01"` for the components up to `last`. */
static void add_components(struct pf_buf *out, const struct pf_plate *plate,
                           const struct pf_slice *slice,
                           enum pf_component last) {
  for (int c = 0; c <= (int)last; c++) {
    pf_buf_printf(out, "%s\"%s\":", c ? "," : "",
                  pf_component_name((enum pf_component)c));
    add_value(out, plate, c, slice->value[c]);
  }
}

static void add_component_values(struct pf_buf *out,
                                 const struct pf_plate *plate) {
  const char *comma = "";
  pf_buf_str(out, ",\n\"components\":{");
  for (int c = 0; c < PF_N_COMPONENTS; c++) {
    enum pf_component component = (enum pf_component)c;
    uint32_t n = pf_plate_n_values(plate, component);
    if (!n)
      continue;
    pf_buf_printf(out, "%s\n\"%s\":{\"count\":%u,\"values\":[", comma,
                  pf_component_name(component), n);
    for (uint32_t r = 0; r < n; r++) {
      if (r)
        pf_buf_char(out, ',');
      pf_buf_json(out, pf_plate_value(plate, component, r));
    }
    pf_buf_str(out, "]}");
    comma = ",";
  }
  pf_buf_str(out, "}");
}

static void add_formats(struct pf_buf *out, const struct pf_plate *plate,
                        const struct pf_inspect *report) {
  const char *comma = "";
  pf_buf_str(out, ",\n\"formats\":[");
  for (size_t i = 0; i < pf_plate_n_formats(plate); i++) {
    const struct pf_format *f = pf_plate_format(plate, (uint16_t)i);
    if (!report->n_by_format[i])
      continue;
    pf_buf_printf(out,
                  "%s\n{\"width\":%u,\"height\":%u,\"dtype\":\"%s\","
                  "\"slices\":%zu}",
                  comma, f->width, f->height, pf_dtype_name(f->dtype),
                  report->n_by_format[i]);
    comma = ",";
  }
  pf_buf_str(out, "]");
}

static void add_gaps(struct pf_buf *out, const struct pf_plate *plate,
                     const struct pf_inspect *report) {
  pf_buf_printf(out,
                ",\n\"fields\":%zu,\n\"incomplete\":{\"count\":%zu,"
                "\"fields\":[",
                report->n_fields, report->n_incomplete);
  for (size_t i = 0; i < report->n_listed; i++) {
    const struct pf_incomplete_field *field = &report->fields[i];
    pf_buf_str(out, i ? ",\n{" : "\n{");
    add_components(out, plate, &field->first, PF_TIMEPOINT);
    pf_buf_printf(out, ",\"lacks_count\":%zu,\"lacks\":[", field->n_missing);
    for (size_t m = 0;
         m < field->n_missing && field->missing + m < report->n_missing; m++) {
      const struct pf_missing *it = &report->missing[field->missing + m];
      pf_buf_str(out, m ? ",{\"channel\":" : "{\"channel\":");
      add_value(out, plate, PF_CHANNEL, it->channel);
      pf_buf_str(out, ",\"z\":");
      add_value(out, plate, PF_Z, it->z);
      pf_buf_char(out, '}');
    }
    pf_buf_str(out, "]}");
  }
  pf_buf_str(out, "]}");
}

static void add_left_out(struct pf_buf *out, const struct pf_plate *plate) {
  pf_buf_str(out, ",\n\"left_out\":[");
  for (size_t i = 0; i < pf_plate_n_left_out(plate); i++) {
    const struct pf_left_out *it = pf_plate_left_out(plate, i);
    pf_buf_str(out, i ? ",\n{\"path\":" : "\n{\"path\":");
    pf_buf_json(out, it->path);
    pf_buf_str(out, ",\"reason\":");
    pf_buf_json(out, it->reason);
    pf_buf_char(out, '}');
  }
  pf_buf_str(out, "]");
}

static bool add_slices(struct pf_buf *out, const struct pf_plate *plate) {
  static const char *const kinds[] = {"slice", "projection", "copy"};
  pf_buf_str(out, ",\n\"slices\":[");
  for (size_t i = 0; i < pf_plate_n_slices(plate); i++) {
    const struct pf_slice *slice = &pf_plate_slices(plate)[i];
    const struct pf_format *f = pf_plate_format(plate, slice->format);
    char *path = pf_plate_relative_path(plate, slice);
    if (!path)
      return false;
    pf_buf_str(out, i ? ",\n{\"path\":" : "\n{\"path\":");
    pf_buf_json(out, path);
    free(path);
    pf_buf_printf(out, ",\"page\":%u,\"kind\":\"%s\",", slice->page,
                  kinds[slice->kind]);
    add_components(out, plate, slice, PF_Z);
    pf_buf_printf(out, ",\"width\":%u,\"height\":%u,\"dtype\":\"%s\"}",
                  f->width, f->height, pf_dtype_name(f->dtype));
  }
  pf_buf_str(out, "]");
  return true;
}

int pf_inspect_json(const struct pf_plate *plate, struct pf_buf *out) {
  struct pf_inspect report;
  bool ok;
  if (pf_plate_inspect(plate, &report) != PF_OK)
    return PF_ENOMEM;
  pf_buf_str(out, "{\"root\":");
  pf_buf_json(out, pf_plate_root(plate));
  pf_buf_str(out, ",\n\"layout\":");
  pf_buf_json(out, pf_plate_layout(plate));
  pf_buf_str(out, ",\n\"evidence\":");
  pf_buf_json(out, pf_plate_evidence(plate));
  pf_buf_printf(out,
                ",\n\"files\":%zu,\n\"kinds\":{\"slice\":%zu,"
                "\"projection\":%zu,\"copy\":%zu}",
                report.n_files, report.n_kinds[PF_KIND_SLICE],
                report.n_kinds[PF_KIND_PROJECTION],
                report.n_kinds[PF_KIND_COPY]);
  add_component_values(out, plate);
  add_formats(out, plate, &report);
  add_gaps(out, plate, &report);
  add_left_out(out, plate);
  ok = add_slices(out, plate);
  pf_buf_str(out, "}\n");
  pf_inspect_finish(&report);
  return ok && pf_buf_ok(out) ? PF_OK : PF_ENOMEM;
}
