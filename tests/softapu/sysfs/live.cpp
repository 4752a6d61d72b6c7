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
#include "sysfs/gpu_metrics.h"

namespace apusched::softapu {
namespace fs = std::filesystem;
namespace {

std::string number(double value) {
  return std::to_string(std::llround(value));
}

}  // namespace

LiveTree::LiveTree(TreePaths paths, const MachineModel& model, Traps traps, bool first)
    : paths_(std::move(paths)), model_(model), traps_(traps), first_(first) {}

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

std::string LiveTree::rows(const DpmTable& table, std::uint32_t current) const {
  std::ostringstream out;
  for (std::uint32_t i = 0; i < table.count; i++) {
    bool star = i == current;
    if (traps_.has(Trap::two_stars)) star |= i == (current + 1) % table.count;
    if (traps_.has(Trap::no_star) || traps_.has(Trap::bare_row)) star = false;
    const std::uint32_t mhz = traps_.has(Trap::equal_rows) ? table.mhz[0] : table.mhz[i];
    out << i << ": " << mhz << "Mhz " << (star ? "*" : "") << '\n';
  }
  if (traps_.has(Trap::bare_row)) out << "   " << table.mhz[current] << "Mhz *\n";
  return out.str();
}

// The lowest, the highest, and between them the present clock, or the nominal one while the present
// is one of the two others (yellow_carp_print_clk_levels and renoir_print_clk_levels).
std::string LiveTree::shader_clock_table(std::uint32_t mhz) const {
  DpmTable table = model_.device.sclk;
  const std::uint32_t last = table.count - 1;
  if (mhz == table.mhz[last]) return rows(table, last);
  if (mhz == table.mhz[0]) return rows(table, 0);
  const std::uint32_t middle = table.count / 2;
  table.mhz[middle] = mhz;
  return rows(table, middle);
}

std::string LiveTree::memory_clock_table(std::uint32_t current) const {
  return rows(model_.device.mclk, current);
}

std::string LiveTree::overdrive_table() const {
  const DpmTable& sclk = model_.device.sclk;
  const std::string low = std::to_string(sclk.mhz[0]) + "Mhz";
  const std::string high = std::to_string(sclk.mhz[sclk.count - 1]) + "Mhz";
  // As captured on a Phoenix, where each section came with padding up to its own buffer's size.
  const std::string gap(traps_.has(Trap::nul_bytes) ? 200 : 0, '\0');
  return "OD_SCLK:\n0:        " + low + "\n1:       " + high + "\n" + gap +
         "OD_RANGE:\nSCLK:     " + low + "       " + high + "\n" + gap;
}

void LiveTree::show_sensors(const Readings& r) {
  rewrite(paths_.device / "gpu_busy_percent", std::to_string(r.busy_percent) + "\n");
  if (!model_.power_file.empty())
    rewrite(paths_.hwmon / model_.power_file, number(r.power_w * 10) + "00000\n");
  if (model_.has_temp1) rewrite(paths_.hwmon / "temp1_input", number(r.temperature_c) + "000\n");
}

void LiveTree::show(const Readings& r) {
  const DeviceDescription& d = model_.device;
  const fs::path& dev = paths_.device;
  const std::uint64_t kfd_gtt = r.gtt_used + (model_.kfd_vram_is_gtt ? r.vram_used : 0);
  const std::uint64_t kfd_vram = model_.kfd_vram_is_gtt ? 0 : r.vram_used;
  rewrite(dev / "pp_dpm_sclk", shader_clock_table(r.sclk_mhz));
  rewrite(dev / "pp_dpm_mclk", memory_clock_table(r.mclk_index));
  if (model_.od_sclk) rewrite(dev / "pp_od_clk_voltage", overdrive_table());
  const std::string metrics =
      gpu_metrics(model_.metrics, r, d.mclk.mhz[r.mclk_index], traps_.has(Trap::unknown_metrics));
  if (!metrics.empty()) rewrite(dev / "gpu_metrics", metrics);
  const std::string vram = std::to_string(d.vram_base_used + kfd_vram) + "\n";
  rewrite(dev / "mem_info_vram_used", vram);
  rewrite(dev / "mem_info_vis_vram_used", vram);
  rewrite(dev / "mem_info_gtt_used", std::to_string(d.gtt_base_used + kfd_gtt) + "\n");
  rewrite(paths_.hwmon / "freq1_input", std::to_string(r.sclk_mhz) + "000000\n");
  if (!traps_.has(Trap::missing_files)) show_sensors(r);
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
  if (first_) fs::remove_all(dir, ignored);
  fs::create_directories(dir / "queues");
  fs::create_directories(dir / ("stats_" + gpu));
  fs::create_directories(dir / ("counters_" + gpu));
  if (first_) put(dir / "pasid", std::to_string(pasid) + "\n");
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
  if (first_) {
    fs::remove_all(dir, ignored);
    return;
  }
  const std::string gpu = std::to_string(model_.device.gpu_id);
  for (const char* part : {"vram_", "sdma_", "stats_", "counters_"})
    fs::remove_all(dir / (part + gpu), ignored);
}

void LiveTree::add_queue(std::uint32_t pid, std::uint32_t queue, std::uint32_t ring_bytes) {
  // Filled before it gets its name: whoever lists queues/ finds complete ones. The kernel prints
  // these three without a newline (kfd_process.c, kfd_procfs_show).
  const fs::path process = paths_.proc / std::to_string(pid);
  const fs::path fresh = process / (".queue" + std::to_string(queue));
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
