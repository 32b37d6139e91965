/*
 * Olympus ScanR: A1--W00001--P00001--Z00000--T00000--DAPI.tif, the well's name
 * also in brackets. Without one, the well's number stands for it: how many
 * columns the plate has is not in the names.
 */
#include "engine/plate/layouts/table.h"

static const struct pf_folder_rule folders[] = {
    {.prefix = "data", .component = PF_N_COMPONENTS},
};

const struct pf_layout pf_layout_scanr = {
    .name = "scanr",
    .help = "ScanR: A1--W00001--P00001--Z00000--T00000--DAPI.tif",
    .regex = "^(?:(?<cut_well>\\[?" PF_RX_WELL "\\]?--W[0-9]{5,})|"
             "(?<plate>[^-]+)?(?<cut_well>--W(?<well>[0-9]{5,})))"
             "(?:--P(?<site>[0-9]{5,}))?(?:--Z(?<z>[0-9]{5,}))?"
             "(?:--T(?<timepoint>[0-9]{5,}))?(?:--(?<channel>.+?))?" PF_RX_TIF,
    .folders = folders,
    .n_folders = sizeof(folders) / sizeof(folders[0]),
};
