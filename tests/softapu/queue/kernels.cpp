// SPDX-License-Identifier: MIT
#include "queue/kernels.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

namespace apusched::softapu {
namespace {

constexpr std::size_t kHintWindow = 256;  // bytes; test kernels are aligned to as much
constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kMostLoads = 7;  // one more than any of them has
constexpr std::uint32_t kFill32 = 1;
constexpr std::uint32_t kTimed = 2;
// ROCr puts its own shaders straight behind an amd_kernel_code_t of this size.
constexpr std::int64_t kRocrEntryOffset = 256;

// ROCr's blit kernels begin by loading all their arguments, 16 bytes at a time (blit_*.s): how
// often is what tells them apart, whatever the chip and the assembler.
std::size_t argument_loads(const std::byte* code) {
  constexpr std::uint32_t kScalarMemoryGcn = 0b110000;   // top 6 bits, GFX8 and GFX9
  constexpr std::uint32_t kScalarMemoryRdna = 0b111101;  // GFX10 to GFX12
  constexpr std::uint32_t kOffsetMask = (1U << 21) - 1;
  std::size_t count = 0;
  for (; count < kMostLoads; count++) {
    std::array<std::uint32_t, 2> instruction{};
    std::memcpy(instruction.data(), code + count * sizeof instruction, sizeof instruction);
    const std::uint32_t encoding = instruction[0] >> 26;
    if (encoding != kScalarMemoryGcn && encoding != kScalarMemoryRdna) break;
    if ((instruction[1] & kOffsetMask) != count * 16) break;
  }
  return count;
}

KernelEffect blit_effect(const std::byte* code) {
  switch (argument_loads(code)) {
    case 2:
      return KernelEffect::fill;
    case 4:
      return KernelEffect::copy_misaligned;
    case 6:
      return KernelEffect::copy_aligned;
    default:
      return KernelEffect::unknown_blit;
  }
}

struct Hint {
  std::uint32_t magic, operation, ns_per_workgroup;
};

bool find_hint(const std::byte* code, Hint& hint) {
  // Never past the page: what follows a foreign kernel may not be mapped.
  const auto in_page = kPageBytes - reinterpret_cast<std::uintptr_t>(code) % kPageBytes;
  const std::size_t window = std::min(kHintWindow, in_page);
  for (std::size_t at = 0; at + sizeof hint <= window; at += 4) {
    std::memcpy(&hint, code + at, sizeof hint);
    if (hint.magic == kHintMagic) return true;
  }
  return false;
}

template <class T>
T argument(const DispatchPacket& packet, std::size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(packet.kernarg_address) + offset, sizeof value);
  return value;
}

// Arguments of a foreign program may lie anywhere: the kernel copies them, a bad address is an
// error and not a crash of the client.
bool read_argument(const DispatchPacket& packet, std::uint64_t& value) {
  if (packet.kernarg_address == nullptr) return false;
  const iovec to{&value, sizeof value};
  const iovec from{packet.kernarg_address, sizeof value};
  return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == sizeof value;
}

double timed_ns(const DispatchPacket& packet, std::uint32_t otherwise) {
  std::uint64_t ns = 0;
  return static_cast<double>(read_argument(packet, ns) && ns <= kMostTimedNs ? ns : otherwise);
}

// Arguments of the blit kernels (amd_blit_kernel.h of ROCr): running source and destination
// addresses of each phase, the last of them the ends.
struct BlitRange {
  std::uint64_t source = 0, destination = 0, bytes = 0;
};

BlitRange blit_range(KernelEffect effect, const DispatchPacket& packet) {
  const auto word = [&](std::size_t i) { return argument<std::uint64_t>(packet, i * 8); };
  switch (effect) {
    case KernelEffect::copy_aligned:
      return {word(0), word(1), word(8) - word(0)};
    case KernelEffect::copy_misaligned:
      return {word(0), word(1), word(4) - word(0)};
    case KernelEffect::fill:
      return {0, word(0), word(2) - word(0)};
    default:
      return {};
  }
}

void* pointer(std::uint64_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT: device addresses are integers
}

}  // namespace

KernelWork KernelTable::blit(KernelEffect effect, const DispatchPacket& packet) const {
  const double bytes = static_cast<double>(blit_range(effect, packet).bytes);
  KernelWork work;
  work.effect = effect;
  // Bound by memory, not by how it was cut into workgroups.
  work.cost = {description_.compute_units,
               bytes * 1000.0 / std::max(1U, description_.copy_bytes_per_us), 1};
  return work;
}

KernelWork KernelTable::resolve(const DispatchPacket& packet) const {
  const auto* object = static_cast<const std::byte*>(pointer(packet.kernel_object));
  // The same place in an amd_kernel_code_t and in a kernel descriptor of code object v3 and later.
  std::int64_t entry = 0;
  std::memcpy(&entry, object + 16, sizeof entry);
  const std::byte* code = object + entry;
  KernelWork work;
  const std::uint32_t size =
      std::uint32_t{packet.workgroup_size_x} * packet.workgroup_size_y * packet.workgroup_size_z;
  work.cost = {workgroup_count(packet), static_cast<double>(description_.workgroup_ns),
               std::max(1U, (size + description_.wave_size - 1) / description_.wave_size)};
  Hint hint{};
  if (find_hint(code, hint)) {
    work.cost.ns_per_workgroup =
        hint.operation == kTimed ? timed_ns(packet, hint.ns_per_workgroup) : hint.ns_per_workgroup;
    work.effect = hint.operation == kFill32 ? KernelEffect::fill32 : KernelEffect::none;
    return work;
  }
  if (entry != kRocrEntryOffset) return work;
  work.effect = blit_effect(code);
  if (work.effect != KernelEffect::unknown_blit) return blit(work.effect, packet);
  std::fprintf(stderr, "softapu: a kernel of ROCr's own is unknown; add it to queue/kernels.cpp\n");
  return work;
}

void KernelTable::perform(const KernelWork& work, const DispatchPacket& packet) const {
  const BlitRange range = blit_range(work.effect, packet);
  switch (work.effect) {
    case KernelEffect::none:
    case KernelEffect::unknown_blit:
      break;
    case KernelEffect::fill32:
      std::fill_n(static_cast<std::uint32_t*>(pointer(argument<std::uint64_t>(packet, 0))),
                  packet.grid_size_x, argument<std::uint32_t>(packet, 8));
      break;
    case KernelEffect::copy_aligned:
    case KernelEffect::copy_misaligned:
      std::memcpy(pointer(range.destination), pointer(range.source), range.bytes);
      break;
    case KernelEffect::fill:
      std::fill_n(static_cast<std::uint32_t*>(pointer(range.destination)), range.bytes / 4,
                  argument<std::uint32_t>(packet, 24));
      break;
  }
}

}  // namespace apusched::softapu
