// SPDX-License-Identifier: MIT
#include "sysfs/live.h"

#include <fcntl.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "device/model.h"
#include "session/layout.h"

namespace apusched::softapu {
namespace fs = std::filesystem;
namespace {

constexpr std::chrono::duration<double> kThermalTime{4.0};

std::string number(double value) {
  return std::to_string(std::llround(value));
}

}  // namespace

LiveTree::LiveTree(TreePaths paths, const MachineModel& model)
    : paths_(std::move(paths)), model_(model) {}

void LiveTree::rewrite(const fs::path& file, const std::string& text) {
  const auto known = shown_.find(file);
  if (known != shown_.end() && known->second == text) return;
  // In place, not renamed: sysfs files are kept open and read again at offset 0.
  // One that was shown and is not there now has been taken away: not made again.
  const int create = known == shown_.end() ? O_CREAT : 0;
  const int fd = ::open(file.c_str(), O_WRONLY | create | O_CLOEXEC, 0644);
  if (fd < 0) return;
  const bool ok = ::pwrite(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()) &&
                  ::ftruncate(fd, static_cast<off_t>(text.size())) == 0;
  ::close(fd);
  if (ok) shown_[file] = text;
}

std::string LiveTree::clock_table(const DpmTable& table, std::uint32_t current) const {
  std::ostringstream out;
  for (std::uint32_t i = 0; i < table.count; i++)
    out << i << ": " << table.mhz[i] << "Mhz " << (i == current ? "*" : "") << '\n';
  return out.str();
}

void LiveTree::update_sensors(DeviceState& state, double busy,
                              std::chrono::duration<double> elapsed) const {
  const DpmTable& sclk = model_.device.sclk;
  const double clock = static_cast<double>(sclk.mhz[state.sclk_index]) / sclk.mhz[sclk.count - 1];
  // A high clock costs something even without load.
  const double activity = std::max(busy, 0.1) * (0.2 + 0.8 * clock * clock);
  state.power_w = model_.idle_w + (model_.busy_w - model_.idle_w) * activity;
  const double target = model_.ambient_c + model_.c_per_w * (state.power_w - model_.idle_w);
  if (state.temperature_c <= 0) state.temperature_c = model_.ambient_c;
  state.temperature_c +=
      (target - state.temperature_c) * (1 - std::exp(-elapsed.count() / kThermalTime.count()));
  state.busy_percent = static_cast<std::uint32_t>(std::lround(busy * 100));
}

void LiveTree::show(const Readings& r) {
  const DeviceDescription& d = model_.device;
  const fs::path& dev = paths_.device;
  const std::uint64_t kfd_gtt = r.gtt_used + (model_.kfd_vram_is_gtt ? r.vram_used : 0);
  const std::uint64_t kfd_vram = model_.kfd_vram_is_gtt ? 0 : r.vram_used;
  rewrite(dev / "gpu_busy_percent", std::to_string(r.busy_percent) + "\n");
  rewrite(dev / "pp_dpm_sclk", clock_table(d.sclk, r.sclk_index));
  rewrite(dev / "pp_dpm_mclk", clock_table(d.mclk, r.mclk_index));
  const std::string vram = std::to_string(d.vram_base_used + kfd_vram) + "\n";
  rewrite(dev / "mem_info_vram_used", vram);
  rewrite(dev / "mem_info_vis_vram_used", vram);
  rewrite(dev / "mem_info_gtt_used", std::to_string(d.gtt_base_used + kfd_gtt) + "\n");
  rewrite(paths_.hwmon / "temp1_input", number(r.temperature_c) + "000\n");
  rewrite(paths_.hwmon / model_.power_file, number(r.power_w * 10) + "00000\n");
  rewrite(paths_.hwmon / "freq1_input", std::to_string(d.sclk.mhz[r.sclk_index]) + "000000\n");
}

fs::path LiveTree::level_file() const {
  return paths_.device / kLevelFileName;
}

void LiveTree::show_level(Level level) {
  const std::string text = std::string(level_name(level)) + "\n";
  shown_.erase(level_file());  // others write it
  if (read_level() != text) rewrite(level_file(), text);
}

std::string LiveTree::read_level() const {
  std::ifstream in(level_file());
  std::string text(64, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

void LiveTree::add_process(std::uint32_t pid, std::uint32_t pasid) {
  const fs::path dir = paths_.proc / std::to_string(pid);
  const std::string gpu = std::to_string(model_.device.gpu_id);
  std::error_code ignored;
  fs::remove_all(dir, ignored);
  fs::create_directories(dir / "queues");
  fs::create_directories(dir / ("stats_" + gpu));
  fs::create_directories(dir / ("counters_" + gpu));
  put(dir / "pasid", std::to_string(pasid) + "\n");
  put(dir / ("vram_" + gpu), "0\n");
  put(dir / ("sdma_" + gpu), "0\n");
  put(dir / ("stats_" + gpu) / "evicted_ms", "0\n");
  if (model_.cu_occupancy) put(dir / ("stats_" + gpu) / "cu_occupancy", "0\n");
  for (const char* name : {"faults", "page_in", "page_out"})
    put(dir / ("counters_" + gpu) / name, "0\n");
}

void LiveTree::remove_process(std::uint32_t pid) {
  const fs::path dir = paths_.proc / std::to_string(pid);
  std::erase_if(shown_, [&](const auto& entry) {
    return entry.first.string().starts_with(dir.string() + "/");
  });
  std::error_code ignored;
  fs::remove_all(dir, ignored);
}

void LiveTree::add_queue(std::uint32_t pid, std::uint32_t queue, std::uint32_t ring_bytes) {
  // Filled before it gets its name: whoever lists queues/ finds complete ones. The kernel prints
  // these three without a newline (kfd_process.c, kfd_procfs_show).
  const fs::path process = paths_.proc / std::to_string(pid);
  const fs::path fresh = process / ".queue";
  std::error_code ignored;
  fs::remove_all(fresh, ignored);
  fs::create_directories(fresh);
  put(fresh / "size", std::to_string(ring_bytes));
  put(fresh / "type", "0");
  put(fresh / "gpuid", std::to_string(model_.device.gpu_id));
  fs::rename(fresh, process / "queues" / std::to_string(queue));
}

void LiveTree::remove_queue(std::uint32_t pid, std::uint32_t queue) {
  std::error_code ignored;
  fs::remove_all(paths_.proc / std::to_string(pid) / "queues" / std::to_string(queue), ignored);
}

void LiveTree::show_process_memory(std::uint32_t pid, std::uint64_t vram_used) {
  rewrite(paths_.proc / std::to_string(pid) / ("vram_" + std::to_string(model_.device.gpu_id)),
          std::to_string(vram_used) + "\n");
}

}  // namespace apusched::softapu
