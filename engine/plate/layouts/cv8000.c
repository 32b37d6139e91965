/*
 * Yokogawa CV7000 and CV8000: NAME_A01_T0001F001L01A01Z01C01.tif. NAME is the
 * type of the plate rather than its identity, so the folder is the plate.
 */
#include "engine/plate/layouts/table.h"

const struct pf_layout pf_layout_cv8000 = {
    .name = "cv8000",
    .help = "Yokogawa CV7000, CV8000: NAME_A01_T0001F001L01A01Z01C01.tif",
    .regex = "^(?<plate>.+)_" PF_RX_WELL_2 "_(?:T(?<timepoint>[0-9]{4,}))?"
             "F(?<site>[0-9]{3,})L[0-9]{2,}A[0-9]{2,}"
             "(?:Z(?<z>[0-9]{2,}))?(?:C(?<channel>[0-9]{2,}))?" PF_RX_TIF,
    .folder_is_plate = true,
};
