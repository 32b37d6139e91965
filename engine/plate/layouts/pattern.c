/* Names as the user's "pattern" says: see engine/plate/pattern.c. */
#include "engine/plate/layouts/table.h"

const struct pf_layout pf_layout_pattern = {
    .name = "pattern",
    .help = "names as \"pattern\" says, such as "
            "\"{well}_s{site}_w{channel}_z{z}.tif\"",
    .regex = NULL,
};
