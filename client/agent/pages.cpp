// SPDX-License-Identifier: MIT
#include "agent/pages.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>
#include <iterator>

namespace apusched::agent {
namespace {

constexpr int kAttempts = 16;
constexpr off_t kLargestPage = 1 << 20;

// Word by word, because the other side writes meanwhile; each with an order of its own in place of
// one fence, which ThreadSanitizer does not know. On x86 neither costs an instruction.
std::uint64_t load(const void* from) {
  return __atomic_load_n(static_cast<const std::uint64_t*>(from), __ATOMIC_ACQUIRE);
}

const std::uint32_t* sequence_of(const void* page) {
  static_assert(offsetof(agent_abi::Control, sequence) == offsetof(agent_abi::Telemetry, sequence));
  return static_cast<const std::uint32_t*>(page) +
         offsetof(agent_abi::Control, sequence) / sizeof(std::uint32_t);
}

static_assert(sizeof(agent_abi::Control) % 8 == 0 && sizeof(agent_abi::Telemetry) % 8 == 0);

}  // namespace

bool SharedPage::map(int descriptor, std::size_t bytes, bool writable) noexcept {
  unmap();
  struct stat facts {};
  const int seals = fcntl(descriptor, F_GET_SEALS);  // fails on what is no memfd
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return false;
  if (fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size > kLargestPage ||
      static_cast<std::size_t>(facts.st_size) < bytes)
    return false;
  void* memory = mmap(nullptr, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
                      descriptor, 0);
  if (memory == MAP_FAILED) return false;
  memory_ = memory;
  bytes_ = bytes;
  madvise(memory_, bytes_, MADV_DONTFORK);
  return true;
}

void SharedPage::unmap() noexcept {
  if (memory_ != nullptr) munmap(memory_, bytes_);
  memory_ = nullptr;
}

std::optional<agent_abi::Control> read_control(const void* page) noexcept {
  const std::uint32_t* sequence = sequence_of(page);
  for (int i = 0; i < kAttempts; i++) {
    const std::uint32_t before = __atomic_load_n(sequence, __ATOMIC_ACQUIRE);
    if (before % 2 != 0) {
      sched_yield();
      continue;
    }
    std::uint64_t words[sizeof(agent_abi::Control) / 8];
    for (std::size_t word = 0; word < std::size(words); word++)
      words[word] = load(static_cast<const char*>(page) + 8 * word);
    if (__atomic_load_n(sequence, __ATOMIC_RELAXED) != before) continue;
    agent_abi::Control copy;
    std::memcpy(&copy, words, sizeof copy);
    return copy;
  }
  return std::nullopt;
}

void write_telemetry(void* page, const agent_abi::Telemetry& telemetry,
                     std::size_t bytes) noexcept {
  auto* sequence = const_cast<std::uint32_t*>(sequence_of(page));
  __atomic_store_n(sequence, telemetry.sequence - 1, __ATOMIC_RELAXED);
  agent_abi::Telemetry copy = telemetry;
  copy.sequence--;  // shares a word with what is copied
  for (std::size_t offset = 0; offset < bytes; offset += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, reinterpret_cast<const char*>(&copy) + offset, sizeof word);
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(static_cast<char*>(page) + offset), word,
                     __ATOMIC_RELEASE);
  }
  __atomic_store_n(sequence, telemetry.sequence, __ATOMIC_RELEASE);
}

}  // namespace apusched::agent
