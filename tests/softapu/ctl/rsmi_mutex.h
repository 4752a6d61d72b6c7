// SPDX-License-Identifier: MIT
// The mutex of rocm-smi-lib for one card, as another program that uses the library has it.
#pragma once

#include <pthread.h>

#include <string>

namespace apusched::softapu {

// Layout and attributes: rocm_smi_lib, third_party/shared_mutex. The file is that of the mount
// namespace of the caller.
class RsmiMutex {
 public:
  // `device`: as the library calls it. Makes the file where it is missing. Throws
  // std::system_error.
  explicit RsmiMutex(const std::string& device);
  ~RsmiMutex();
  RsmiMutex(const RsmiMutex&) = delete;
  RsmiMutex& operator=(const RsmiMutex&) = delete;
  // Waits.
  void lock();
  void unlock();

 private:
  pthread_mutex_t* mutex_ = nullptr;
};

}  // namespace apusched::softapu
