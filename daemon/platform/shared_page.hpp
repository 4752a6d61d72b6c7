// SPDX-License-Identifier: MIT
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <utility>

#include "core/result.hpp"
#include "platform/unique_fd.hpp"

namespace apusched::platform {

/// Memory shared with another process: a memfd that can be neither shrunk nor grown by anyone, so
/// that no access to the mapping can fault, whatever the other side does.
class SharedPage {
 public:
  enum class Writer {
    us_alone,  ///< the other side can only map it for reading
    both
  };
  /// The mapping is ours; `fd` is for the other side and may be closed once it is sent.
  struct Made;
  [[nodiscard]] static core::Result<Made> make(const char* name, std::size_t size, Writer writer);

  SharedPage() = default;
  SharedPage(SharedPage&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  SharedPage& operator=(SharedPage&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  SharedPage(const SharedPage&) = delete;
  SharedPage& operator=(const SharedPage&) = delete;
  ~SharedPage() {
    if (data_ != nullptr) ::munmap(data_, size_);
  }

  template <typename T>
  [[nodiscard]] T& as() const {
    return *static_cast<T*>(data_);
  }

 private:
  SharedPage(void* data, std::size_t size) : data_(data), size_(size) {}
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

struct SharedPage::Made {
  SharedPage page;
  UniqueFd fd;
};

}  // namespace apusched::platform
