/* GE InCell Analyzer: A - 1(fld 1 wv UV - DAPI).tif, with z, time and the
 * index of the wavelength where there are several. */
#include "engine/plate/layouts/table.h"

const struct pf_layout pf_layout_incell = {
    .name = "incell",
    .help = "InCell Analyzer: A - 1(fld 1 wv UV - DAPI z 1).tif",
    .regex = "^(?:(?<plate>.+)_)?(?<cut_well>(?<row>A[A-F]|[A-Z]) - "
             "(?<col>[0-9]{1,2}))\\((?<cut_site>fld (?<site>[0-9]+) ?)?"
             "(?<cut_channel>wv (?<channel>[^()]+?)(?: wix [0-9]+)?)?"
             "(?<cut_z> ?z (?<z>[0-9]+))?(?<cut_timepoint>(?: -|-)? "
             "?time (?<timepoint>[0-9]+)(?: - [0-9]+ ms)?)?\\)" PF_RX_TIF,
};
