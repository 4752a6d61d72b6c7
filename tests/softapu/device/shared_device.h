// SPDX-License-Identifier: MIT
// The device state in a file that several processes map, and the lock around it.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "device/model.h"

namespace apusched::softapu {

inline constexpr std::uint64_t kStateMagic = 0x3130757061746673;  // "sftapu01"

// What is in the file. A reader of another build refuses it by size and magic.
struct SharedFile {
  std::uint64_t magic;
  std::uint64_t bytes;
  pthread_mutex_t mutex;                  // robust, process-shared
  std::atomic<std::uint32_t> letting_go;  // 1: somebody makes a stopped holder go on
  DeviceState state;
};

[[nodiscard]] Nanoseconds monotonic_now();
void futex_wake_all(std::atomic<std::uint32_t>& word);
// Returns when woken, when the word is no longer `seen`, or at `deadline` (CLOCK_MONOTONIC;
// Nanoseconds::max(): never). Spurious returns happen.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, Nanoseconds deadline);
// Lets the client's engine look again at everything. Any process, any thread.
void wake_client(Client& client);

class SharedDevice final : public RateObserver {
 public:
  // Creates the file for a new session, mode 0666. Null with errno set when that fails.
  static std::unique_ptr<SharedDevice> create(const std::string& path,
                                              const DeviceDescription& description);
  // Null with errno set; EPROTO: not a state file of this build.
  static std::unique_ptr<SharedDevice> open(const std::string& path);
  ~SharedDevice() override;
  SharedDevice(const SharedDevice&) = delete;
  SharedDevice& operator=(const SharedDevice&) = delete;

  // The lock for as long as it lives; the model is up to date at `now` of the call.
  class Access {
   public:
    explicit Access(SharedDevice& device);
    ~Access();
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;
    DeviceModel* operator->() { return &model_; }
    [[nodiscard]] DeviceState& state() { return device_.file_->state; }
    [[nodiscard]] Nanoseconds now() const { return now_; }

   private:
    SharedDevice& device_;
    DeviceModel model_;
    Nanoseconds now_;
  };

  // Fields that need no lock: the description, which never changes, and the atomics.
  [[nodiscard]] DeviceState& unlocked() { return file_->state; }
  void runs_end_earlier(ClientIndex client) override;

 private:
  explicit SharedDevice(SharedFile* file) : file_(file) {}
  void lock();
  [[nodiscard]] bool lock_within(Nanoseconds time);
  [[nodiscard]] bool lock_past_stopped_holder();
  SharedFile* file_;
};

}  // namespace apusched::softapu
