/* Opera Phenix, Operetta (Harmony): r03c03f01p01-ch1sk1fk1fl1.tiff in
 * MEASUREMENT/Images. */
#include "engine/plate/layouts/table.h"

static const struct pf_folder_rule folders[] = {
    {.prefix = "Images", .component = PF_N_COMPONENTS},
};

const struct pf_layout pf_layout_opera_phenix = {
    .name = "opera_phenix",
    .help = "Opera Phenix, Operetta: r01c01f01p01-ch1sk1fk1fl1.tiff",
    .regex = "^r(?<row>[0-9]{2,})c(?<col>[0-9]{2,})f(?<site>[0-9]{2,})"
             "(?:p(?<z>[0-9]{2,}))?(?:-ch(?<channel>[0-9]+))?"
             "(?:sk(?<timepoint>[0-9]+))?(?:fk[0-9]+)?(?:fl[0-9]+)?" PF_RX_TIF,
    .folders = folders,
    .n_folders = sizeof(folders) / sizeof(folders[0]),
};
