/* Cellomics ArrayScan: NAME_A01f00d0.TIF, field and channel from 0. */
#include "engine/plate/layouts/table.h"

const struct pf_layout pf_layout_cellomics = {
    .name = "cellomics",
    .help = "Cellomics ArrayScan: NAME_A01f00d0.TIF",
    .regex = "^(?<plate>.+)_" PF_RX_WELL_2
             "(?:f(?<site>[0-9]{2,})(?:d(?<channel>[0-9]+))?|"
             "d(?<channel>[0-9]+))" PF_RX_TIF,
};
