/* A stand-in for NVIDIA's driver library. FAKE_GPUS lists the machine's GPUs in the order of speed, each as the last
   two hexadecimal digits of its UUID; a digit pair with a following "m" is a MIG slice. CUDA_DEVICE_ORDER=PCI_BUS_ID
   reverses the order. CUDA_VISIBLE_DEVICES works as NVIDIA documents it: the first invalid name hides all after it,
   a name that occurs twice hides all, and only one MIG slice is offered. FAKE_ERROR is what cuInit returns. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int count, offered[64], last[64], mig[64];

static void uuid_of(int gpu, char *text) {
    sprintf(text, "%s-00000000-0000-0000-0000-0000000000%02x", mig[gpu] ? "MIG" : "GPU", last[gpu]);
}

static int find(const char *name, int all) {
    char *end, text[64];
    long number = strtol(name, &end, 10);
    if (*name && !*end) return number >= 0 && number < all ? (int)number : -1;
    for (int gpu = 0; gpu < all; gpu++) {
        uuid_of(gpu, text);
        if (strlen(name) > 4 && !strncmp(text, name, strlen(name))) return gpu;
    }
    return -1;
}

int cuInit(unsigned flags) {
    int all = 0, slices = 0;
    char list[512], *error = getenv("FAKE_ERROR"), *log = getenv("FAKE_LOG");
    if (log) {
        FILE *file = fopen(log, "a");
        fputs("init\n", file);
        fclose(file);
    }
    puts("a banner of the driver");
    if (error) return atoi(error);
    strcpy(list, getenv("FAKE_GPUS") ? getenv("FAKE_GPUS") : "");
    for (char *name = strtok(list, ","); name; name = strtok(NULL, ",")) {
        mig[all] = strchr(name, 'm') != NULL;
        last[all++] = (int)strtol(name, NULL, 16);
    }
    char *order = getenv("CUDA_DEVICE_ORDER"), *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (order && !strcmp(order, "PCI_BUS_ID"))
        for (int gpu = 0; gpu < all / 2; gpu++) {
            int other = all - 1 - gpu, value = last[gpu];
            last[gpu] = last[other], last[other] = value;
        }
    count = 0;
    if (!visible)
        for (; count < all; count++) offered[count] = count;
    else {
        strcpy(list, visible);
        for (char *name = list, *next; name; name = next) {
            if ((next = strchr(name, ','))) *next++ = 0;
            while (*name == ' ') name++;
            int gpu = find(name, all);
            if (gpu < 0 || (mig[gpu] && slices++)) break;
            for (int earlier = 0; earlier < count; earlier++)
                if (offered[earlier] == gpu) { count = 0; return 100; }
            offered[count++] = gpu;
        }
    }
    return count ? 0 : 100;
}

int cuDeviceGetCount(int *number) { *number = count; return 0; }
int cuDeviceGet(int *device, int index) { *device = index; return 0; }
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuDeviceGetName(char *name, int size, int device) {
    snprintf(name, size, mig[offered[device]] ? "NVIDIA Fake MIG 1g.5gb" : "NVIDIA Fake");
    return 0;
}
int cuDeviceGetUuid_v2(char *uuid, int device) {
    memset(uuid, 0, 16);
    uuid[15] = (char)last[offered[device]];
    return 0;
}
int cuGetErrorName(int error, const char **text) {
    *text = error == 100 ? "CUDA_ERROR_NO_DEVICE" : error == 803 ? "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" : NULL;
    return *text ? 0 : 1;
}
