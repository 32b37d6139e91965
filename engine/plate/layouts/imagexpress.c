/*
 * ImageXpress and MetaXpress (Molecular Devices):
 * NAME_WELL[_sSITE][_wWAVE][GUID].tif in [TimePoint_t/][ZStep_z/], and what
 * others write after it: _z and _t in the name, _C<n>.ome.tif.
 *
 * The GUID is glued to the wave's digit; being of fixed length it is found
 * from the right, so that `_w11D01380B-...` is wave 1. A well in small letters
 * needs a site or a wave behind it, and "s1", "t01", "w1" and "z01" are none.
 */
#include <string.h>

#include "engine/plate/layouts/table.h"

static const struct pf_folder_rule folders[] = {
    {.prefix = "ZStep_", .component = PF_Z, .zero_is_projection = true},
    {.prefix = "TimePoint_", .component = PF_TIMEPOINT},
};

static bool digits_at(const char *text, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (text[i] < '0' || text[i] > '9')
      return false;
  return true;
}

/* "2024-04-22/" ends at `end`. */
static bool is_date_before(const char *folder, const char *end) {
  const char *date = end - 11;
  return end - folder >= 11 && (date == folder || date[-1] == '/') &&
         digits_at(date, 4) && date[4] == '-' && digits_at(date + 5, 2) &&
         date[7] == '-' && digits_at(date + 8, 2) && date[10] == '/';
}

/* In a database export, `<date>/<number>` is one acquisition: one plate. */
static const char *acquisition(const char *folder) {
  const char *slash = strrchr(folder, '/');
  const char *name = slash ? slash + 1 : folder;
  size_t n = strlen(name);
  if (n == 0 || !digits_at(name, n))
    return NULL;
  return is_date_before(folder, name) ? name : NULL;
}

const struct pf_layout pf_layout_imagexpress = {
    .name = "imagexpress",
    .help = "ImageXpress, MetaXpress: NAME_A01_s1_w1[GUID].tif, "
            "TimePoint_1/ZStep_1 folders",
    .regex =
        "^(?:" PF_RX_PLATE "(?!(?-i:[stwz])[0-9])" PF_RX_WELL
        "(?:_s(?<site>[0-9]{1,4}))?"
        "_c(?<channel>[0-9]+)(?=\\.ome\\.)|" PF_RX_PLATE
        "(?=(?-i:[A-Z])|(?-i:[^stwz])[A-Z]?[0-9]{1,2}_[sw][0-9])" PF_RX_WELL
        "(?:_s(?<site>[0-9]{1,4}))?(?:_w(?<channel>[0-9]{1,2}))?"
        "(?:_z(?<z>[0-9]{1,4}))?(?:_t(?<timepoint>[0-9]{1,5}))?"
        "" PF_RX_GUID "?)" PF_RX_TIF,
    .folders = folders,
    .n_folders = sizeof(folders) / sizeof(folders[0]),
    .acquisition = acquisition,
    .defaults = {[PF_SITE] = "1", [PF_CHANNEL] = "1"},
};
