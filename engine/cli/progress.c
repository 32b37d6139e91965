/* Progress: see engine/cli/progress.h. */
#include "engine/cli/progress.h"

#include <string.h>

#include "bridge/buf.h"

enum { PLAIN_SECONDS = 60, MAX_TOLD = 20 };

int progress_mode_find(const char *word, bool is_terminal) {
  if (!word || strcmp(word, "auto") == 0)
    return is_terminal ? PROGRESS_LINE : PROGRESS_PLAIN;
  if (strcmp(word, "plain") == 0)
    return PROGRESS_PLAIN;
  if (strcmp(word, "json") == 0)
    return PROGRESS_JSON;
  return strcmp(word, "none") == 0 ? PROGRESS_NONE : -1;
}

static void time_left(const struct pf_event *event, char *text, size_t n) {
  uint64_t left = event->n_groups - event->n_finished;
  double seconds;
  text[0] = '\0';
  if (!event->n_finished || !left)
    return;
  seconds = event->seconds * (double)left / (double)event->n_finished;
  if (seconds < 3600)
    (void)snprintf(text, n, ", %d:%02d left", (int)seconds / 60,
                   (int)seconds % 60);
  else
    (void)snprintf(text, n, ", %.1f h left", seconds / 3600);
}

static void print_line(const struct progress *progress,
                       const struct pf_event *event) {
  double seconds = event->seconds > 0 ? event->seconds : 1e-9;
  char left[48];
  time_left(event, left, sizeof(left));
  (void)fprintf(progress->err,
                "%llu of %llu groups done, %llu failed, %.1f images/s, "
                "%.1f MB/s%s",
                (unsigned long long)event->n_finished,
                (unsigned long long)event->n_groups,
                (unsigned long long)event->n_failed,
                (double)event->n_images / seconds,
                (double)event->n_bytes / 1e6 / seconds, left);
}

static void tick(struct progress *progress, const struct pf_event *event) {
  if (progress->mode == PROGRESS_LINE) {
    (void)fputs("\r\033[K", progress->err);
    print_line(progress, event);
    progress->line_open = true;
    (void)fflush(progress->err);
  } else if (event->seconds - progress->last >= PLAIN_SECONDS) {
    progress->last = event->seconds;
    print_line(progress, event);
    (void)fputc('\n', progress->err);
    (void)fflush(progress->err);
  }
}

static void group(struct progress *progress, const struct pf_event *event) {
  if (progress->n_told++ >= MAX_TOLD)
    return;
  progress_end(progress);
  (void)fprintf(progress->err, "%s: %s: %s\n", pf_status_name(event->status),
                event->group, event->reason);
  if (progress->n_told == MAX_TOLD)
    (void)fprintf(progress->err, "further ones are in OUT/run.sqlite and "
                                 "OUT/tables/images.csv\n");
  (void)fflush(progress->err);
}

static void json_event(struct progress *progress,
                       const struct pf_event *event) {
  static const char *const names[] = {"start", "group", "progress"};
  struct pf_buf line = {0};
  if (event->kind == PF_EVENT_TICK && event->seconds - progress->last < 1 &&
      event->n_finished < event->n_groups)
    return;
  progress->last = event->seconds;
  pf_buf_printf(
      &line,
      "{\"event\": \"%s\", \"seconds\": %.3f, \"groups\": %llu, "
      "\"finished\": %llu, \"failed\": %llu, \"images\": %llu, "
      "\"bytes\": %llu",
      names[event->kind], event->seconds, (unsigned long long)event->n_groups,
      (unsigned long long)event->n_finished,
      (unsigned long long)event->n_failed, (unsigned long long)event->n_images,
      (unsigned long long)event->n_bytes);
  if (event->kind == PF_EVENT_GROUP) {
    pf_buf_str(&line, ", \"group\": ");
    pf_buf_json(&line, event->group);
    pf_buf_str(&line, ", \"status\": ");
    pf_buf_json(&line, pf_status_name(event->status));
    pf_buf_str(&line, ", \"reason\": ");
    pf_buf_json(&line, event->reason);
  }
  (void)fprintf(progress->out, "%s}\n", pf_buf_text(&line));
  (void)fflush(progress->out);
  pf_buf_free(&line);
}

void progress_event(struct progress *progress, const struct pf_event *event) {
  if (progress->mode == PROGRESS_JSON)
    json_event(progress, event);
  else if (progress->mode == PROGRESS_NONE)
    return;
  else if (event->kind == PF_EVENT_TICK)
    tick(progress, event);
  else if (event->kind == PF_EVENT_GROUP)
    group(progress, event);
}

void progress_end(struct progress *progress) {
  if (progress->line_open)
    (void)fputc('\n', progress->err);
  progress->line_open = false;
}
