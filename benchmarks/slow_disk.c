/* A FUSE file system that passes each call on to a folder after a delay, as a busy shared file system does.

   cc -O2 slow_disk.c -o slow_disk $(pkg-config --cflags --libs fuse3)
   slow_disk FOLDER DELAY_US MOUNT_POINT [options of FUSE]
*/
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *folder;
static useconds_t delay_us;

static void below(char *into, const char *path) {
    usleep(delay_us);
    snprintf(into, PATH_MAX, "%s%s", folder, path);
}

static int get_attributes(const char *path, struct stat *status, struct fuse_file_info *info) {
    char real[PATH_MAX];
    (void)info;
    below(real, path);
    return lstat(real, status) ? -errno : 0;
}

static int read_folder(const char *path, void *buffer, fuse_fill_dir_t fill, off_t offset,
                       struct fuse_file_info *info, enum fuse_readdir_flags flags) {
    char real[PATH_MAX];
    (void)offset, (void)info, (void)flags;
    below(real, path);
    DIR *stream = opendir(real);
    if (!stream) return -errno;
    for (struct dirent *entry; (entry = readdir(stream));) {
        struct stat status;
        memset(&status, 0, sizeof status);
        status.st_ino = entry->d_ino;
        status.st_mode = DTTOIF(entry->d_type);
        if (fill(buffer, entry->d_name, &status, 0, 0)) break;
    }
    closedir(stream);
    return 0;
}

static int open_file(const char *path, struct fuse_file_info *info) {
    char real[PATH_MAX];
    below(real, path);
    int descriptor = open(real, info->flags);
    info->fh = (uint64_t)descriptor;
    return descriptor < 0 ? -errno : 0;
}

static int read_file(const char *path, char *buffer, size_t size, off_t offset, struct fuse_file_info *info) {
    (void)path;
    usleep(delay_us);
    ssize_t count = pread((int)info->fh, buffer, size, offset);
    return count < 0 ? -errno : (int)count;
}

static int close_file(const char *path, struct fuse_file_info *info) {
    (void)path;
    usleep(delay_us);
    close((int)info->fh);
    return 0;
}

static const struct fuse_operations operations = {
    .getattr = get_attributes,
    .readdir = read_folder,
    .open = open_file,
    .read = read_file,
    .release = close_file,
};

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: slow_disk FOLDER DELAY_US MOUNT_POINT\n");
        return 2;
    }
    folder = argv[1];
    delay_us = (useconds_t)atoi(argv[2]);
    argv[2] = argv[0];
    return fuse_main(argc - 2, argv + 2, &operations, NULL);
}
