/* The report on a plate for people: see engine/plate/inspect.h. */
#include "engine/plate/inspect.h"

#include <string.h>

/* What is shown without `verbose`. */
enum { MAX_VALUES = 12, MAX_FIELDS = 10, MAX_LEFT_OUT = 20 };

static void add_values(const struct pf_plate *plate, bool verbose,
                       struct pf_buf *out) {
  for (int c = 0; c < PF_N_COMPONENTS; c++) {
    enum pf_component component = (enum pf_component)c;
    uint32_t n = pf_plate_n_values(plate, component);
    if (!n)
      continue;
    pf_buf_printf(out, "  %-10s %6u  ", pf_component_name(component), n);
    for (uint32_t r = 0; r < n; r++) {
      if (!verbose && n > MAX_VALUES && r == MAX_VALUES - 2) {
        pf_buf_str(out, ", ...");
        r = n - 1;
      }
      if (r)
        pf_buf_str(out, ", ");
      pf_buf_name(out, pf_plate_value(plate, component, r));
    }
    pf_buf_char(out, '\n');
  }
}

static void add_formats(const struct pf_plate *plate,
                        const struct pf_inspect *report, struct pf_buf *out) {
  for (size_t i = 0; i < pf_plate_n_formats(plate); i++) {
    const struct pf_format *f = pf_plate_format(plate, (uint16_t)i);
    if (report->n_by_format[i])
      pf_buf_printf(out, "  %u x %u %s: %zu slices\n", f->width, f->height,
                    pf_dtype_name(f->dtype), report->n_by_format[i]);
  }
}

/* How many listed gaps from `at` on are neighbours in z of one channel. */
static size_t n_neighbours(const struct pf_missing *at, size_t n) {
  size_t run = 1;
  while (run < n && at[run].channel == at->channel && at->z != PF_NO_VALUE &&
         at[run].z == at->z + run)
    run++;
  return run;
}

/* "channel 1 z 3, 5 to 9; channel 2" */
static void add_missing(const struct pf_plate *plate,
                        const struct pf_inspect *report,
                        const struct pf_incomplete_field *field,
                        struct pf_buf *out) {
  const struct pf_missing *first = report->missing + field->missing;
  size_t known = report->n_missing - field->missing;
  size_t n = field->n_missing < known ? field->n_missing : known, run;
  for (size_t m = 0; m < n; m += run) {
    const struct pf_missing *it = first + m;
    bool goes_on = m > 0 && it->channel == it[-1].channel;
    run = n_neighbours(it, n - m);
    if (m)
      pf_buf_str(out, goes_on ? ", " : "; ");
    if (!goes_on && it->channel != PF_NO_VALUE) {
      pf_buf_str(out, "channel ");
      pf_buf_name(out, pf_plate_value(plate, PF_CHANNEL, it->channel));
    }
    if (it->z == PF_NO_VALUE)
      continue;
    pf_buf_str(out, goes_on ? "" : " z ");
    pf_buf_name(out, pf_plate_value(plate, PF_Z, it->z));
    if (run > 1) {
      pf_buf_str(out, run > 2 ? " to " : ", ");
      pf_buf_name(out, pf_plate_value(plate, PF_Z, it[run - 1].z));
    }
  }
  if (n < field->n_missing)
    pf_buf_printf(out, " and %zu more", field->n_missing - n);
}

static void add_gaps(const struct pf_plate *plate, bool verbose,
                     const struct pf_inspect *report, struct pf_buf *out) {
  size_t n = report->n_listed;
  if (!report->n_incomplete)
    return;
  if (!verbose && n > MAX_FIELDS)
    n = MAX_FIELDS;
  pf_buf_printf(out, "%zu of %zu fields lack what others have:\n",
                report->n_incomplete, report->n_fields);
  for (size_t i = 0; i < n; i++) {
    const struct pf_incomplete_field *field = &report->fields[i];
    pf_buf_str(out, " ");
    for (int c = 0; c <= PF_TIMEPOINT; c++) {
      if (field->first.value[c] == PF_NO_VALUE)
        continue;
      pf_buf_printf(out, " %s ", pf_component_name((enum pf_component)c));
      pf_buf_name(out, pf_plate_value(plate, (enum pf_component)c,
                                      field->first.value[c]));
    }
    pf_buf_str(out, ": ");
    add_missing(plate, report, field, out);
    pf_buf_char(out, '\n');
  }
  if (n < report->n_incomplete)
    pf_buf_printf(out, "  and %zu more\n", report->n_incomplete - n);
}

static void add_left_out(const struct pf_plate *plate, bool verbose,
                         struct pf_buf *out) {
  size_t n = pf_plate_n_left_out(plate), shown = n;
  if (!n)
    return;
  if (!verbose && shown > MAX_LEFT_OUT)
    shown = MAX_LEFT_OUT;
  pf_buf_printf(out, "%zu left out:\n", n);
  for (size_t i = 0; i < shown; i++) {
    pf_buf_str(out, "  ");
    pf_buf_name(out, pf_plate_left_out(plate, i)->path);
    pf_buf_printf(out, ": %s\n", pf_plate_left_out(plate, i)->reason);
  }
  if (shown < n)
    pf_buf_printf(out, "  and %zu more\n", n - shown);
}

int pf_inspect_text(const struct pf_plate *plate, bool verbose,
                    struct pf_buf *out) {
  struct pf_inspect report;
  if (pf_plate_inspect(plate, &report) != PF_OK)
    return PF_ENOMEM;
  pf_buf_name(out, pf_plate_root(plate));
  pf_buf_printf(out, "\nlayout %s: %s\n", pf_plate_layout(plate),
                pf_plate_evidence(plate));
  pf_buf_printf(out, "%zu slices in %zu files", pf_plate_n_slices(plate),
                report.n_files);
  if (report.n_kinds[PF_KIND_PROJECTION])
    pf_buf_printf(out, " (found: %zu slices, %zu projections)",
                  report.n_kinds[PF_KIND_SLICE],
                  report.n_kinds[PF_KIND_PROJECTION]);
  pf_buf_char(out, '\n');
  add_values(plate, verbose, out);
  add_formats(plate, &report, out);
  add_gaps(plate, verbose, &report, out);
  add_left_out(plate, verbose, out);
  pf_inspect_finish(&report);
  return pf_buf_ok(out) ? PF_OK : PF_ENOMEM;
}
