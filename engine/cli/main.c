/* The program. */
#include "plateflow/main.h"

#include <stddef.h>

int main(int argc, char **argv) {
  return pf_main(argc, argv, false, NULL);
}
