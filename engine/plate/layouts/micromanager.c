/*
 * Micro-Manager: img_channel000_position000_time000000000_z000.tif; older
 * versions img_000000000_DAPI_000.tif (time, channel, z) in a folder for each
 * position. All numbers from 0.
 */
#include "engine/plate/layouts/table.h"

static const struct pf_folder_rule folders[] = {
    {.prefix = "Default", .component = PF_N_COMPONENTS},
    {.prefix = "Pos", .component = PF_SITE, .any_text = true},
};

const struct pf_layout pf_layout_micromanager = {
    .name = "micromanager",
    .help = "Micro-Manager: img_channel000_position000_time000000000_z000.tif",
    .regex =
        "^img(?:(?:_channel(?<channel>[0-9]+))?"
        "(?:_position(?<site>[0-9]+))?"
        "(?:_time(?<timepoint>[0-9]+))?(?:_z(?<z>[0-9]+))?"
        "(?<=[0-9])|"
        "_(?<timepoint>[0-9]{9})_(?<channel>.+)_(?<z>[0-9]{3}))" PF_RX_TIF,
    .folders = folders,
    .n_folders = sizeof(folders) / sizeof(folders[0]),
};
