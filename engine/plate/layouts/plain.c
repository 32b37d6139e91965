/* Any TIFF: each file is a site of its own, named by the file; nothing is
 * known of wells. Taken where no other layout knows the names. */
#include "engine/plate/layouts/table.h"

const struct pf_layout pf_layout_plain = {
    .name = "plain",
    .help = "any TIFF names: each file is a site of its own",
    .regex = "^(?<site>.+?)" PF_RX_TIF,
    .verbatim_site = true,
    .open_each = true,
};
