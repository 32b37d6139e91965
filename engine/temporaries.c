/* Files that are being written: see engine/temporaries.h. */
#include "engine/temporaries.h"

#include <ftw.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bridge/os.h"

enum { N_SLOTS = 4096 }; /* more workers than that are refused */

/* The one state that a process has here: files are the process's, whichever
 * run writes them. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* --- protected by lock */
static char *slots[N_SLOTS];
static bool taken[N_SLOTS];

int pf_temporaries_open(void) {
  int slot = -1;
  (void)pthread_mutex_lock(&lock);
  for (int i = 0; i < N_SLOTS && slot < 0; i++)
    if (!taken[i])
      slot = i;
  if (slot >= 0)
    taken[slot] = true;
  (void)pthread_mutex_unlock(&lock);
  return slot;
}

void pf_temporaries_close(int slot) {
  if (slot < 0)
    return;
  pf_temporaries_end(slot);
  (void)pthread_mutex_lock(&lock);
  taken[slot] = false;
  (void)pthread_mutex_unlock(&lock);
}

int pf_temporaries_begin(int slot, const char *path, struct pf_error *err) {
  char *temporary = pf_os_temporary(path);
  if (!temporary)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  (void)pthread_mutex_lock(&lock);
  free(slots[slot]);
  slots[slot] = temporary;
  (void)pthread_mutex_unlock(&lock);
  return PF_OK;
}

void pf_temporaries_end(int slot) {
  (void)pthread_mutex_lock(&lock);
  free(slots[slot]);
  slots[slot] = NULL;
  (void)pthread_mutex_unlock(&lock);
}

void pf_temporaries_sweep(void) {
  (void)pthread_mutex_lock(&lock);
  for (int i = 0; i < N_SLOTS; i++)
    if (slots[i])
      (void)unlink(slots[i]);
  /* The lock stays held: nobody begins another file. */
}

static int remove_temporary(const char *path, const struct stat *st, int kind,
                            struct FTW *at) {
  static const char suffix[] = ".pf-tmp";
  const char *name = path + at->base;
  size_t n = strlen(name);
  (void)st;
  if (kind == FTW_F && name[0] == '.' && n > strlen(suffix) &&
      strcmp(name + n - strlen(suffix), suffix) == 0)
    (void)unlink(path);
  return 0;
}

void pf_temporaries_clear(const char *out_dir) {
  static const char *const folders[] = {"images", "steps", "tables", "files"};
  enum { MAX_OPEN = 16 };
  for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
    char *folder = pf_os_join(out_dir, folders[i]);
    if (folder)
      (void)nftw(folder, remove_temporary, MAX_OPEN, FTW_PHYS);
    free(folder);
  }
}
