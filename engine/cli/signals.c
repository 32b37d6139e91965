/* Signals: see engine/cli/signals.h. */
#include "engine/cli/signals.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

static pf_stop_flag stop_flag;
static atomic_int first_signal; /* 0: none */
static atomic_bool run_began;

static int status_of(int number) {
  return number == SIGINT ? 130 : 143;
}

/* Only async-signal-safe calls. Before a run there is nothing to finish, so
 * the process ends; the run's main thread acts on a second signal, because
 * removing temporaries needs a lock. */
static void on_signal(int number) {
  int none = 0;
  (void)atomic_compare_exchange_strong(&first_signal, &none, number);
  if (!atomic_load(&run_began))
    _exit(status_of(number));
  atomic_fetch_add(&stop_flag, 1);
}

/* Whether the program was started with the signal ignored, as nohup and
 * shells do for what must outlive them: then it stays so. Imports may put in
 * handlers of their own later, so only the first look counts. */
static bool was_ignored(int number) {
  static bool looked[NSIG], ignored[NSIG];
  struct sigaction before;
  if (!looked[number]) {
    looked[number] = true;
    ignored[number] =
        sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_IGN;
  }
  return ignored[number];
}

void signals_install(void) {
  static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
  /* Restart what was interrupted: the read of an image on a network share
   * must not fail because somebody pressed Ctrl-C. */
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  struct sigaction ignore = {.sa_handler = SIG_IGN};
  (void)sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
    (void)sigaction(numbers[i], was_ignored(numbers[i]) ? &ignore : &action,
                    NULL);
  (void)sigaction(SIGPIPE, &ignore, NULL);
}

pf_stop_flag *signals_begin_run(void) {
  atomic_store(&run_began, true);
  return &stop_flag;
}

int signals_status(void) {
  int number = atomic_load(&first_signal);
  return number ? status_of(number) : 0;
}
