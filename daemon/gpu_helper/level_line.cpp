// SPDX-License-Identifier: MIT
#include "gpu_helper/level_line.hpp"

#include <array>
#include <utility>

#include "gpu_helper/protocol.hpp"

namespace apusched::gpu_helper {

using core::ErrorCode;

namespace {

constexpr std::string_view kLevel = "level=";
constexpr std::string_view kError = "error=";
constexpr std::size_t kMaxSentence = 400;
/// The words of the line; what is not here travels as "failed".
constexpr std::array<std::pair<ErrorCode, std::string_view>, 6> kCodes{{
    {ErrorCode::gone, "gone"},
    {ErrorCode::denied, "denied"},
    {ErrorCode::unsupported, "unsupported"},
    {ErrorCode::contended, "contended"},
    {ErrorCode::timed_out, "timed_out"},
    {ErrorCode::failed, "failed"},
}};

std::string_view word_of(ErrorCode code) {
  for (const auto& [known, word] : kCodes)
    if (known == code) return word;
  return "failed";
}

core::Result<core::PerformanceLevel> not_understood(std::string_view line,
                                                    const core::PciAddress& gpu) {
  return core::fail(ErrorCode::failed, "performance level", gpu.text(),
                    "apusched-gpu-write answered \"" + printable(line, 80) + "\"");
}

}  // namespace

WriterExit exit_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::contended:
      return WriterExit::contended;
    case ErrorCode::denied:
      return WriterExit::denied;
    case ErrorCode::unsupported:
    case ErrorCode::invalid_input:
      return WriterExit::unsupported;
    case ErrorCode::gone:
    case ErrorCode::not_found:
      return WriterExit::gone;
    case ErrorCode::timed_out:
      return WriterExit::timed_out;
    case ErrorCode::limit_reached:
    case ErrorCode::failed:
      return WriterExit::failed;
  }
  return WriterExit::failed;
}

std::string format_level_line(const core::Result<core::PerformanceLevel>& result) {
  if (result) return std::string(kLevel) + std::string(core::to_string(*result));
  const auto& error = result.error();
  return std::string(kError) + std::string(word_of(error.code)) + ' ' +
         printable(error.detail, kMaxSentence);
}

core::Result<core::PerformanceLevel> parse_level_line(std::string_view line,
                                                      const core::PciAddress& gpu) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (line.starts_with(kLevel)) {
    const auto level = core::parse_performance_level(line.substr(kLevel.size()));
    if (level && !line.ends_with('\n')) return *level;
    return not_understood(line, gpu);
  }
  if (!line.starts_with(kError)) return not_understood(line, gpu);
  const auto rest = line.substr(kError.size());
  const auto word = rest.substr(0, rest.find(' '));
  for (const auto& [code, known] : kCodes) {
    if (known != word || word.size() == rest.size()) continue;
    return core::fail(code, "performance level", gpu.text(),
                      printable(rest.substr(word.size() + 1), kMaxSentence));
  }
  return not_understood(line, gpu);
}

}  // namespace apusched::gpu_helper
