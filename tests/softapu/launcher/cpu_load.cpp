// SPDX-License-Identifier: MIT
#include "launcher/cpu_load.h"

#include <charconv>
#include <fstream>
#include <string>

namespace apusched::softapu {

CpuLoad CpuLoad::measured() {
  CpuLoad load;
  load.measured_ = true;
  load.sample();
  return load;
}

std::optional<CpuLoad> CpuLoad::parse(std::string_view text) {
  if (text == "measured") return measured();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= 0 && value <= 1))
    return std::nullopt;
  return CpuLoad(value);
}

double CpuLoad::sample() {
  if (!measured_) return fixed_;
  std::ifstream in("/proc/stat");
  std::string cpu;
  in >> cpu;
  std::uint64_t all = 0;
  std::uint64_t idle = 0;
  // user nice system idle iowait irq softirq steal (proc_stat(5)); what follows is counted in them
  for (int field = 0; field < 8; field++) {
    std::uint64_t ticks = 0;
    in >> ticks;
    all += ticks;
    if (field == 3 || field == 4) idle += ticks;
  }
  const std::uint64_t busy = all - idle;
  if (in && all > all_) {
    last_ = static_cast<double>(busy - busy_) / static_cast<double>(all - all_);
    busy_ = busy;
    all_ = all;
  }
  return last_;
}

}  // namespace apusched::softapu
