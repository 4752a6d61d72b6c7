// SPDX-License-Identifier: MIT
#include "ctl/rsmi_mutex.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace apusched::softapu {
namespace {

void initialise(pthread_mutex_t& mutex) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

}  // namespace

RsmiMutex::RsmiMutex(const std::string& device) {
  const std::string path = "/dev/shm/rocm_smi_" + device;
  const auto failure = [&] { return std::system_error(errno, std::generic_category(), path); };
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0777);
  if (fd < 0) throw failure();
  fchmod(fd, 0777);
  struct stat st {};
  fstat(fd, &st);
  const bool fresh = st.st_size < static_cast<off_t>(sizeof *mutex_);
  void* memory = MAP_FAILED;
  if (!fresh || ftruncate(fd, sizeof *mutex_) == 0)
    memory = mmap(nullptr, sizeof *mutex_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) throw failure();
  mutex_ = static_cast<pthread_mutex_t*>(memory);
  if (fresh) initialise(*mutex_);
}

RsmiMutex::~RsmiMutex() {
  munmap(mutex_, sizeof *mutex_);
}

void RsmiMutex::lock() {
  if (pthread_mutex_lock(mutex_) == EOWNERDEAD) pthread_mutex_consistent(mutex_);
}

void RsmiMutex::unlock() {
  pthread_mutex_unlock(mutex_);
}

}  // namespace apusched::softapu
