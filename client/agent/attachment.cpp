// SPDX-License-Identifier: MIT
#include "agent/attachment.hpp"

namespace apusched::agent {

using Clock = std::chrono::steady_clock;

void Attachment::begin(std::chrono::milliseconds first_queue_wait) noexcept {
  const std::lock_guard lock(mutex_);
  is_attached_ = false;
  wait_ = first_queue_wait;
  wait_until_ = {};
  may_wait_ = first_queue_wait.count() > 0;
}

void Attachment::attached() noexcept {
  settle(true);
}

void Attachment::alone() noexcept {
  settle(false);
}

void Attachment::settle(bool attached) noexcept {
  {
    const std::lock_guard lock(mutex_);
    is_attached_ = attached;
    may_wait_ = false;
  }
  settled_.notify_all();
}

void Attachment::wait_for_answer() noexcept {
  if (!may_wait_.load(std::memory_order_relaxed)) return;
  std::unique_lock lock(mutex_);
  if (wait_until_ == Clock::time_point{}) wait_until_ = Clock::now() + wait_;
  settled_.wait_until(lock, wait_until_, [&] { return !may_wait_; });
  may_wait_ = false;
}

}  // namespace apusched::agent
