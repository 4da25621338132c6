/* SPDX-License-Identifier: Apache-2.0
   A driver's library with two GPUs: the second one gives neither power nor energy, as one cut into instances does not. */
#include <stdio.h>

typedef struct { unsigned gpu, memory; } utilization;
typedef struct { unsigned long long total, free, used; } memory;

static unsigned long long energy = 5000000;
static int index_of(void *device) { return (int)(long)device - 1; }

int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = (void *)(long)(index + 1); return 0; }
int nvmlDeviceGetUUID(void *device, char *text, unsigned size) {
  snprintf(text, size, "GPU-%d%d", index_of(device), index_of(device));
  return 0;
}
int nvmlDeviceGetName(void *device, char *text, unsigned size) { snprintf(text, size, "NVIDIA Test"); return 0; }
int nvmlDeviceGetUtilizationRates(void *device, utilization *found) {
  found->gpu = index_of(device) ? 20 : 75;
  found->memory = 1;
  return 0;
}
int nvmlDeviceGetMemoryInfo(void *device, memory *found) {
  found->total = 80ull << 30;
  found->used = (index_of(device) + 1ull) << 30;
  found->free = found->total - found->used;
  return 0;
}
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) {
  *milliwatts = 350500;
  return index_of(device) ? 3 : 0;
}
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius) { *celsius = 61 + sensor; return 0; }
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules) {
  *millijoules = energy += 700;
  return index_of(device) ? 3 : 0;
}
