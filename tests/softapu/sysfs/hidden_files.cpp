// SPDX-License-Identifier: MIT
#include "sysfs/hidden_files.h"

#include <algorithm>
#include <string>

namespace apusched::softapu {
namespace fs = std::filesystem;

void HiddenFiles::hide_only(const std::vector<fs::path>& wanted) {
  std::error_code ignored;
  // The last first: a file may have been hidden below a directory that was hidden later.
  for (std::size_t i = hidden_.size(); i-- > 0;) {
    const Hidden entry = hidden_[i];
    if (std::ranges::find(wanted, entry.place) != wanted.end()) continue;
    fs::rename(entry.kept, entry.place, ignored);
    if (!ignored) hidden_.erase(hidden_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  fs::create_directories(stash_);
  for (const fs::path& place : wanted) {
    if (std::ranges::any_of(hidden_, [&](const Hidden& h) { return h.place == place; })) continue;
    const fs::path kept = stash_ / std::to_string(next_++);
    fs::rename(place, kept, ignored);
    if (!ignored) hidden_.push_back({place, kept});
  }
}

}  // namespace apusched::softapu
