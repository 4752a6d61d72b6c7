// SPDX-License-Identifier: MIT
#include "platform/agent_page.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstring>

namespace apusched::platform {

using namespace std::chrono_literals;

namespace {

constexpr int kTries = 4;
/// Beyond any machine; a number above is nonsense.
constexpr std::uint32_t kMostQueues = 100'000;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 50U;
constexpr std::uint64_t kLongestWaitNs = std::chrono::nanoseconds(1h).count();

/// Pages are shared word by word: a plain copy of memory that another process writes is a data
/// race.
using Word [[gnu::may_alias]] = std::uint32_t;

template <typename Page>
void store_words(Page& to, const Page& from, std::size_t first_word) {
  std::array<std::uint32_t, sizeof(Page) / sizeof(std::uint32_t)> words{};
  std::memcpy(words.data(), &from, sizeof(Page));
  auto* target = reinterpret_cast<Word*>(&to);
  for (std::size_t i = first_word; i < words.size(); ++i)
    __atomic_store_n(target + i, words.at(i), __ATOMIC_RELEASE);
}

template <typename Page>
Page load_words(const Page& from) {
  std::array<std::uint32_t, sizeof(Page) / sizeof(std::uint32_t)> words{};
  const auto* source = reinterpret_cast<const Word*>(&from);
  for (std::size_t i = 0; i < words.size(); ++i)
    words.at(i) = __atomic_load_n(source + i, __ATOMIC_ACQUIRE);
  Page page;
  std::memcpy(&page, words.data(), sizeof(Page));
  return page;
}

std::optional<core::PciAddress> pci_of(const agent_abi::HelloGpu& gpu) {
  if (gpu.pci_domain > 0xffff || gpu.pci_bdf > 0xffff) return std::nullopt;
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.%x", gpu.pci_domain, gpu.pci_bdf >> 8U,
                gpu.pci_bdf >> 3U & 0x1fU, gpu.pci_bdf & 7U);
  return core::PciAddress::parse(text.data());
}

/// Only what an ISA's name can hold: it is shown to people.
std::string isa_of(const agent_abi::HelloGpu& gpu) {
  std::string text;
  for (const char c : gpu.isa) {
    if (c == '\0') break;
    text += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '?';
  }
  return text;
}

tl::unexpected<core::Error> malformed(const char* what) {
  return core::fail(core::ErrorCode::invalid_input, "talk to the agent in", {}, what);
}

core::AgentSetting setting_of(const agent_abi::Setting& setting) {
  return {static_cast<core::AgentOutcome>(setting.applied), setting.detail};
}

bool is_known(const agent_abi::Setting& setting) {
  return setting.applied <= static_cast<std::uint32_t>(agent_abi::Applied::unsupported);
}

agent_abi::Priority to_abi(core::QueuePriority priority) {
  switch (priority) {
    case core::QueuePriority::low:
      return agent_abi::Priority::low;
    case core::QueuePriority::normal:
      return agent_abi::Priority::normal;
    case core::QueuePriority::high:
      return agent_abi::Priority::high;
  }
  return agent_abi::Priority::leave;
}

std::vector<std::chrono::nanoseconds> newest_waits(const agent_abi::Telemetry& t,
                                                   std::uint64_t known) {
  const auto count = std::min<std::uint64_t>(t.wait_count - known, agent_abi::kWaits);
  std::vector<std::chrono::nanoseconds> waits;
  for (std::uint64_t back = count; back > 0; --back)
    waits.emplace_back(t.waits_ns[(t.next_wait + agent_abi::kWaits - back) % agent_abi::kWaits]);
  return waits;
}

}  // namespace

core::Result<core::AgentFacts> parse_hello(std::span<const std::byte> bytes,
                                           const core::ProcessKey& process) {
  agent_abi::Hello hello{};
  constexpr std::size_t kPreamble = offsetof(agent_abi::Hello, features);
  if (bytes.size() < kPreamble) return malformed("its greeting is too short");
  std::memcpy(&hello, bytes.data(), std::min(bytes.size(), sizeof hello));
  if (hello.magic != agent_abi::kMagic) return malformed("that is no agent's greeting");
  if (hello.version != agent_abi::kVersion)
    return core::fail(core::ErrorCode::unsupported, "talk to the agent in", {},
                      "it speaks version " + std::to_string(hello.version) + " of the protocol, " +
                          std::to_string(agent_abi::kVersion) +
                          " is spoken here: restart the program with the agent of this release");
  if (bytes.size() != sizeof hello || hello.size != sizeof hello)
    return malformed("its greeting has the wrong size");
  if (hello.gpu_count > agent_abi::kMaxGpus) return malformed("it names too many GPUs");
  const auto can = [&](agent_abi::Feature feature) { return (hello.features & feature) != 0; };
  core::AgentFacts facts{process,
                         can(agent_abi::kFeatureMask),
                         can(agent_abi::kFeaturePriority),
                         can(agent_abi::kFeatureSerial),
                         can(agent_abi::kFeatureQueueLimit),
                         can(agent_abi::kFeatureMemoryLimit),
                         can(agent_abi::kFeatureGate),
                         std::min(hello.queues_before, kMostQueues),
                         {}};
  for (std::uint32_t i = 0; i < hello.gpu_count; ++i) {
    const auto& gpu = hello.gpus[i];
    const auto pci = pci_of(gpu);
    if (!pci) return malformed("it names a GPU by an address that cannot be");
    facts.gpus.push_back({*pci, std::min(gpu.compute_units, core::CuMask::kMaxBits), isa_of(gpu)});
  }
  return facts;
}

agent_abi::Control to_control(const core::AgentSettings& settings,
                              const std::vector<core::AgentGpu>& gpus) {
  constexpr std::uint64_t kBytesPerMebi = 1024 * 1024;
  agent_abi::Control control{};
  control.magic = agent_abi::kMagic;
  control.version = agent_abi::kVersion;
  control.size = sizeof control;
  control.sample_hz = std::min(settings.sample_hz, agent_abi::kMaxSampleHz);
  if (settings.priority) control.priority = static_cast<std::uint32_t>(to_abi(*settings.priority));
  control.serial = settings.serial ? 1 : 0;
  if (settings.queue_limit) control.queue_limit = settings.queue_limit->value();
  if (settings.memory_limit)
    control.memory_limit_bytes = settings.memory_limit->value() * kBytesPerMebi;
  if (settings.gate_closed_until.count() > 0)
    control.gate_closed_until_ns = static_cast<std::uint64_t>(settings.gate_closed_until.count());
  for (std::size_t i = 0; i < std::min(gpus.size(), agent_abi::kMaxGpus); ++i) {
    const auto mask = settings.masks.find(gpus[i].pci);
    if (mask == settings.masks.end() || mask->second.empty()) continue;
    const auto words =
        (gpus[i].compute_units + core::CuMask::kWordBits - 1) / core::CuMask::kWordBits;
    control.gpus[i].mask_bits = words * core::CuMask::kWordBits;
    for (std::size_t word = 0; word < words; ++word)
      control.gpus[i].mask[word] = mask->second.word(word);
  }
  return control;
}

void publish(agent_abi::Control& page, const agent_abi::Control& control, std::uint32_t sequence) {
  constexpr std::size_t kAfterSequence =
      offsetof(agent_abi::Control, sequence) / sizeof(std::uint32_t) + 1;
  __atomic_store_n(&page.sequence, sequence - 1, __ATOMIC_RELAXED);
  page.magic = control.magic;
  page.version = control.version;
  page.size = control.size;
  store_words(page, control, kAfterSequence);
  __atomic_store_n(&page.sequence, sequence, __ATOMIC_RELEASE);
}

std::optional<agent_abi::Telemetry> snapshot(const agent_abi::Telemetry& page) {
  for (int i = 0; i < kTries; ++i) {
    const auto before = __atomic_load_n(&page.sequence, __ATOMIC_ACQUIRE);
    if (before % 2 != 0) continue;
    auto copy = load_words(page);
    if (__atomic_load_n(&page.sequence, __ATOMIC_RELAXED) != before) continue;
    copy.sequence = before;
    return copy;
  }
  return std::nullopt;
}

bool ReportChecker::well_formed(const agent_abi::Telemetry& t, std::uint32_t newest) const {
  if (t.magic != agent_abi::kMagic || t.version != agent_abi::kVersion || t.size != sizeof t)
    return false;
  if (t.queue_count > kMostQueues || t.reported_queues > agent_abi::kMaxQueues ||
      t.next_wait >= agent_abi::kWaits || t.memory_bytes > kMostBytes ||
      t.control_sequence > newest)
    return false;
  if (t.taken > t.submitted || t.busy_samples > t.samples) return false;
  return is_known(t.priority) && is_known(t.serial) &&
         std::all_of(t.mask, t.mask + agent_abi::kMaxGpus, is_known) && waits_make_sense(t);
}

bool ReportChecker::waits_make_sense(const agent_abi::Telemetry& t) const {
  if (report_ && t.wait_count < report_->wait_count) return false;
  return std::ranges::all_of(
      newest_waits(t, report_ ? report_->wait_count : 0), [](std::chrono::nanoseconds wait) {
        return wait.count() >= 0 && static_cast<std::uint64_t>(wait.count()) <= kLongestWaitNs;
      });
}

bool ReportChecker::goes_on(const agent_abi::Telemetry& t) const {
  if (!report_) return true;
  const auto& before = *report_;
  return t.submitted >= before.submitted && t.taken >= before.taken &&
         t.refused_queues >= before.refused_queues &&
         t.refused_allocations >= before.refused_allocations && t.gate_waits >= before.gate_waits &&
         t.samples >= before.samples && t.busy_samples >= before.busy_samples &&
         t.backlog_sum >= before.backlog_sum && t.control_sequence >= before.settings;
}

ReportChecker::Verdict ReportChecker::check(const agent_abi::Telemetry& t,
                                            std::uint32_t newest_settings) {
  if (t.sequence == 0 || (report_ && t.sequence == sequence_)) return Verdict::unchanged;
  if (!well_formed(t, newest_settings) || !goes_on(t)) return Verdict::senseless;
  core::AgentReport report;
  report.settings = t.control_sequence;
  report.queues = t.queue_count;
  report.submitted = t.submitted;
  report.taken = t.taken;
  report.memory_bytes = t.memory_bytes;
  report.refused_queues = t.refused_queues;
  report.refused_allocations = t.refused_allocations;
  report.gate_waits = t.gate_waits;
  report.samples = t.samples;
  report.busy_samples = t.busy_samples;
  report.backlog_sum = t.backlog_sum;
  report.wait_count = t.wait_count;
  report.waits = newest_waits(t, report_ ? report_->wait_count : 0);
  for (std::size_t i = 0; i < gpu_count_; ++i) report.masks.push_back(setting_of(t.mask[i]));
  report.priority = setting_of(t.priority);
  report.serial = setting_of(t.serial);
  sequence_ = t.sequence;
  report_ = std::move(report);
  return Verdict::good;
}

}  // namespace apusched::platform
