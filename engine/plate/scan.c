/*
 * Walking a plate's folder: see engine/plate/scan.h. Folders wait in a list
 * rather than on the stack; links to folders come last, and a folder that was
 * visited before, or that holds the plate itself, is not entered again.
 */
#include "engine/plate/scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/plate/visited.h"

struct walk {
  struct pf_tree *tree;
  struct pf_leftovers *left;
  struct pf_visited visited;
  size_t *links; /* offsets in tree->folder_paths */
  uint32_t n_links, cap_links;
  int root_fd;
  bool failed; /* memory */
};

/* Append an offset to a growing list. */
static bool push(size_t **list, uint32_t *n, uint32_t *cap, size_t value) {
  if (*n == *cap) {
    uint32_t grown = *cap ? *cap * 2 : 16;
    size_t *more = realloc(*list, grown * sizeof(*more));
    if (!more)
      return false;
    *list = more;
    *cap = grown;
  }
  (*list)[(*n)++] = value;
  return true;
}

/* Remember a folder below folders[parent], in the list for its kind. */
static void add_folder(struct walk *w, size_t parent, const char *name,
                       bool is_link) {
  struct pf_tree *tree = w->tree;
  size_t at = tree->folder_paths.len;
  size_t n_parent = strlen(tree->folder_paths.data + parent);
  char *copy = strdup(tree->folder_paths.data + parent);
  if (!copy) {
    w->failed = true;
    return;
  }
  pf_buf_add(&tree->folder_paths, copy, n_parent);
  free(copy);
  if (n_parent)
    pf_buf_char(&tree->folder_paths, '/');
  pf_buf_add(&tree->folder_paths, name, strlen(name) + 1);
  if (is_link
          ? !push(&w->links, &w->n_links, &w->cap_links, at)
          : !push(&tree->folders, &tree->n_folders, &tree->cap_folders, at))
    w->failed = true;
}

static void add_file(struct walk *w, uint32_t folder, const char *name) {
  struct pf_tree *tree = w->tree;
  size_t n = strlen(name) + 1;
  if (tree->n_files == tree->cap_files) {
    uint32_t cap = tree->cap_files ? tree->cap_files * 2 : 256;
    struct pf_file *files = cap > UINT32_MAX / 2
                                ? NULL
                                : realloc(tree->files, cap * sizeof(*files));
    if (!files) {
      w->failed = true;
      return;
    }
    tree->files = files;
    tree->cap_files = cap;
  }
  /* Offsets have 32 bits: 4 GiB of names are some 100 million files. */
  if (tree->names.len + n > UINT32_MAX) {
    w->failed = true;
    return;
  }
  tree->files[tree->n_files++] =
      (struct pf_file){folder, (uint32_t)tree->names.len};
  pf_buf_add(&tree->names, name, n);
}

static bool ends_with(const char *name, size_t n, const char *end) {
  size_t n_end = strlen(end);
  return n >= n_end && strcasecmp(name + n - n_end, end) == 0;
}

/* Bytes before ".tif" or ".tiff"; 0: it is no name of a TIFF. */
static size_t tiff_stem(const char *name) {
  size_t n = strlen(name);
  if (ends_with(name, n, ".tif"))
    return n - 4;
  return ends_with(name, n, ".tiff") ? n - 5 : 0;
}

/* "..._thumb.tif" and, as MetaXpress writes it, "..._thumbGUID.tif". */
static bool is_thumbnail(const char *name, size_t n_stem) {
  size_t n = n_stem;
  if (n > 0 && name[n - 1] == ']')
    n--;
  if (n > 36 && name[n - 13] == '-' && name[n - 18] == '-' &&
      name[n - 23] == '-' && name[n - 28] == '-')
    n -= 36;
  else
    n = n_stem;
  while (n > 0 && (name[n - 1] == '[' || name[n - 1] == '_'))
    n--;
  return n >= 6 && strncasecmp(name + n - 6, "_thumb", 6) == 0;
}

/* Why a name is not looked at, by how it ends; the last row fits all. */
static const struct {
  const char *end, *reason;
} not_images[] = {
    {".c01", "a Cellomics container, not a TIFF"},
    {".dib", "a bitmap, not a TIFF"},
    {".png", "a PNG, not a TIFF"},
    {".jpg", "a JPEG, not a TIFF"},
    {"", "not an image"},
};

static const char *reason_against_name(const char *name) {
  size_t n = strlen(name), n_stem = tiff_stem(name), i = 0;
  if (name[0] == '.')
    return "a hidden file";
  if (n_stem)
    return is_thumbnail(name, n_stem) ? "a thumbnail" : NULL;
  while (!ends_with(name, n, not_images[i].end))
    i++;
  return not_images[i].reason;
}

/* The entry's kind, following links; sets `*is_link`. */
static mode_t entry_mode(int fd, const struct dirent *entry, bool *is_link) {
  struct stat st;
  *is_link = entry->d_type == DT_LNK;
  if (entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK)
    return (mode_t)DTTOIF(entry->d_type);
  if (entry->d_type == DT_UNKNOWN)
    *is_link = fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
               S_ISLNK(st.st_mode);
  return fstatat(fd, entry->d_name, &st, 0) == 0 ? st.st_mode & S_IFMT : 0;
}

static void take_entry(struct walk *w, int fd, uint32_t folder,
                       const struct dirent *entry) {
  size_t parent = w->tree->folders[folder];
  const char *name = entry->d_name, *reason = NULL;
  bool is_link = false;
  mode_t mode;
  if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
    return;
  mode = entry_mode(fd, entry, &is_link);
  if (mode == S_IFDIR && name[0] == '.') {
    reason = "a hidden folder";
  } else if (mode == S_IFDIR && tiff_stem(name)) {
    reason = "a folder that is named like an image";
  } else if (mode == S_IFDIR) {
    add_folder(w, parent, name, is_link);
    return;
  } else if (mode == 0 && is_link) {
    reason = errno == ELOOP ? "a link that leads to itself"
                            : "a link that leads nowhere";
  } else {
    reason = reason_against_name(name);
    if (!reason && mode != S_IFREG)
      reason = mode ? "not a regular file" : "it cannot be looked at";
  }
  if (reason)
    pf_leftovers_add(w->left, w->tree->folder_paths.data + parent, name,
                     reason);
  else
    add_file(w, folder, name);
}

static void leave_out_folder(struct walk *w, const char *path,
                             const char *what, int saved) {
  struct pf_buf reason = {0};
  pf_buf_str(&reason, what);
  if (saved)
    pf_buf_printf(&reason, ": %s", strerror(saved));
  pf_leftovers_add(w->left, path, "", pf_buf_text(&reason));
  pf_buf_free(&reason);
}

/* Whether the folder behind `fd` is new; says why not. */
static bool enter(struct walk *w, int fd, const char *path) {
  struct stat st;
  enum pf_visit visit;
  if (fstat(fd, &st) != 0) {
    leave_out_folder(w, path, "the folder cannot be read", errno);
    return false;
  }
  visit = pf_visited_add(&w->visited, &st, false);
  if (visit == PF_VISIT_NO_MEMORY)
    w->failed = true;
  else if (visit == PF_VISIT_HOLDS_PLATE)
    leave_out_folder(w, path,
                     "a loop: it leads to a folder that holds the plate", 0);
  else if (visit == PF_VISIT_AGAIN)
    leave_out_folder(
        w, path, "a loop or a second link: the same folder was read before",
        0);
  return visit == PF_VISIT_FIRST;
}

/* Take all entries of one folder. `fd` is closed in any case. */
static void read_folder(struct walk *w, uint32_t folder, int fd) {
  DIR *dir = fdopendir(fd);
  struct dirent *entry;
  int saved = errno;
  if (!dir) {
    (void)close(fd);
  } else {
    for (errno = 0; !w->failed && (entry = readdir(dir)); errno = 0)
      take_entry(w, fd, folder, entry);
    saved = errno;
    (void)closedir(dir);
  }
  if (!dir || (saved && !w->failed))
    leave_out_folder(w, w->tree->folder_paths.data + w->tree->folders[folder],
                     "the folder cannot be read to its end", saved);
}

static void walk_folder(struct walk *w, uint32_t folder) {
  const char *path = w->tree->folder_paths.data + w->tree->folders[folder];
  int fd = openat(w->root_fd, *path ? path : ".",
                  O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    leave_out_folder(w, path, "the folder cannot be opened", errno);
    return;
  }
  if (enter(w, fd, path))
    read_folder(w, folder, fd);
  else
    (void)close(fd);
}

static void walk_all(struct walk *w) {
  struct pf_tree *tree = w->tree;
  uint32_t folder = 0, link = 0;
  pf_buf_add(&tree->folder_paths, "", 1);
  w->failed |= !pf_buf_ok(&tree->folder_paths) ||
               !push(&tree->folders, &tree->n_folders, &tree->cap_folders, 0);
  for (;;) {
    for (; !w->failed && folder < tree->n_folders; folder++)
      walk_folder(w, folder);
    if (w->failed || link == w->n_links)
      break;
    if (!push(&tree->folders, &tree->n_folders, &tree->cap_folders,
              w->links[link++]))
      w->failed = true;
  }
}

/* Set tree->root and open it. */
static int open_root(struct pf_tree *tree, const char *path, int *fd,
                     struct pf_error *err) {
  char *name = pf_name_for_people(path);
  const char *shown = name ? name : "";
  int result = PF_OK;
  tree->root = realpath(path, NULL);
  *fd = tree->root ? open(tree->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  if (*fd < 0 && errno == ENOTDIR)
    result = pf_error_set(err, PF_EINVAL,
                          "the plate %s is not a folder; give the folder that "
                          "holds the images",
                          shown);
  else if (*fd < 0)
    result = pf_error_set(err, PF_EINVAL, "cannot open the plate %s: %s",
                          shown, strerror(errno));
  free(name);
  return result;
}

int pf_tree_scan(struct pf_tree *tree, const char *path,
                 struct pf_leftovers *left, struct pf_error *err) {
  struct walk w = {.tree = tree, .left = left, .root_fd = -1};
  int result = open_root(tree, path, &w.root_fd, err);
  if (result != PF_OK)
    return result;
  if (!pf_visited_add_ancestors(&w.visited, tree->root))
    w.failed = true;
  walk_all(&w);
  if (w.failed || left->failed || !pf_buf_ok(&tree->names) ||
      !pf_buf_ok(&tree->folder_paths))
    result = pf_error_set(err, PF_ENOMEM,
                          "out of memory for the names of the plate %s",
                          tree->root);
  pf_visited_finish(&w.visited);
  free(w.links);
  (void)close(w.root_fd);
  return result;
}

void pf_tree_finish(struct pf_tree *tree) {
  free(tree->root);
  pf_buf_free(&tree->names);
  pf_buf_free(&tree->folder_paths);
  free(tree->files);
  free(tree->folders);
  *tree = (struct pf_tree){0};
}

const char *pf_tree_name(const struct pf_tree *tree, uint32_t file) {
  return tree->names.data + tree->files[file].name;
}

const char *pf_tree_folder(const struct pf_tree *tree, uint32_t file) {
  return tree->folder_paths.data + tree->folders[tree->files[file].folder];
}
