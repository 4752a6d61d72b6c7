// SPDX-License-Identifier: MIT
// A HIP program: a command per line on stdin, an answer in JSON per line on stdout, in which every
// call's result is. It knows neither of the software APU nor of an agent.
#include <hip/hip_runtime.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <string>

__global__ void add(const float* one, const float* two, float* sum, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) sum[i] = one[i] + two[i];
}

namespace {

constexpr int kCount = 1024;

// What an application does in its main loop, on the default stream and on one with a priority.
void work() {
  float* memory[3] = {};
  std::printf("{\"results\": [");
  for (auto& part : memory) std::printf("%d, ", hipMalloc(&part, kCount * sizeof(float)));
  std::printf("%d, ", hipMemset(memory[0], 0, kCount * sizeof(float)));
  for (int i = 0; i < 10; i++) {
    add<<<4, 256>>>(memory[0], memory[1], memory[2], kCount);
    std::printf("%d, ", hipGetLastError());
  }
  std::printf("%d, ", hipDeviceSynchronize());
  hipStream_t stream = nullptr;
  std::printf("%d, ", hipStreamCreateWithPriority(&stream, hipStreamNonBlocking, 1));
  add<<<4, 256, 0, stream>>>(memory[0], memory[1], memory[2], kCount);
  std::printf("%d, %d, ", hipGetLastError(), hipStreamSynchronize(stream));
  std::printf("%d, ", hipStreamDestroy(stream));
  for (auto* part : memory) std::printf("%d, ", hipFree(part));
  std::printf("0]}\n");
}

void allocate(const std::string& mib) {
  void* memory = nullptr;
  const hipError_t result = hipMalloc(&memory, std::stoul(mib) << 20);
  const hipError_t freed = memory == nullptr ? hipSuccess : hipFree(memory);
  std::printf("{\"results\": [%d, %d]}\n", result, freed);
}

}  // namespace

int main() {
  int devices = 0;
  hipDeviceProp_t properties{};
  const hipError_t counted = hipGetDeviceCount(&devices);
  const hipError_t asked = hipGetDeviceProperties(&properties, 0);
  std::printf("{\"pid\": %d, \"results\": [%d, %d], \"devices\": %d, \"isa\": \"%s\"}\n", getpid(),
              counted, asked, devices, properties.gcnArchName);
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    if (line.rfind("allocate ", 0) == 0)
      allocate(line.substr(9));
    else
      work();
    std::fflush(stdout);
  }
  return 0;
}
