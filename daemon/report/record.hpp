// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <fstream>
#include <iosfwd>
#include <memory>
#include <string>

#include "core/result.hpp"
#include "ports/control_log.hpp"

namespace apusched::report {

/// Every input of every controller and what it decided, one JSON document per line. Numbers are
/// written so that they read back to the last bit.
class Recorder final : public ports::ControlLog {
 public:
  /// Truncates the file.
  [[nodiscard]] static core::Result<std::unique_ptr<Recorder>> open(const std::string& path);
  explicit Recorder(std::ostream& out) : out_(&out) {}

  void began(core::RegistrationId id, core::Latency what,
             const core::ControlSettings& settings) override;
  void stepped(core::RegistrationId id, core::Latency what, const core::ControlInput& input,
               const core::ControlOutput& output) override;

 private:
  std::unique_ptr<std::ofstream> file_;
  std::ostream* out_;
};

struct Replay {
  std::uint64_t steps = 0;
  std::uint64_t different = 0;
  std::string first_difference;  ///< "line 12: …"
};
/// Decides everything in a record again and compares. An error names the line that is no record.
[[nodiscard]] core::Result<Replay> replay(std::istream& record);

}  // namespace apusched::report
