/* Signal by name: Channel1-01-A-01.tif, that is channel, the well's number,
 * row and column. One site per well. */
#include "engine/plate/layouts/table.h"

const struct pf_layout pf_layout_sbs = {
    .name = "sbs",
    .help = "Channel1-01-A-01.tif: channel, number of the well, row, column",
    .regex = "^(?:Channel(?<channel>[0-9]+)(?=-))?(?<cut_well>-?[0-9]{2,4}-"
             "(?<row>A[A-F]|[A-Z])-(?<col>[0-9]{2}))" PF_RX_TIF,
};
