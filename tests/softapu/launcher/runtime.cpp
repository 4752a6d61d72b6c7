// SPDX-License-Identifier: MIT
#include "launcher/runtime.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

namespace apusched::softapu {
namespace {

constexpr const char* kLibrary = "libhsa-runtime64.so.1";

// Found as a program would find it. Nothing of it is called, and it is let go of again.
std::string library_path() {
  void* library = dlopen(kLibrary, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return {};
  link_map* map = nullptr;
  std::string path;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0) path = map->l_name;
  dlclose(library);
  return path;
}

// ROCr has the name of each ISA that it knows as a string of its own, with ":xnack-" or the like
// behind it where the ISA has such modes (isa.cpp). An agent whose ISA it does not know it leaves
// out without a word.
bool knows(const std::string& path, const std::string& isa) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const std::string_view all(bytes);
  using namespace std::string_literals;
  return all.find("\0"s + isa + "\0"s) != all.npos || all.find("\0"s + isa + ":") != all.npos;
}

}  // namespace

std::optional<std::string> refusal(const MachineModel& model) {
  const std::string path = library_path();
  const std::string isa = model.device.gfx_name.data();
  if (path.empty()) return std::nullopt;
  // Linux made one node of an APU until 6.6. Seen with ROCr 6.1.2: it lists the agent, and
  // hsa_queue_create() fails before it comes to the driver.
  if (model.merged_node && std::atoi(SOFTAPU_ROCR_VERSION) >= 6)
    return "model " + model.name + " (" + isa +
           ") has CPU and GPU in one KFD node, where ROCr " SOFTAPU_ROCR_VERSION
           " makes no queues; ROCr 5 does";
  if (knows(path, isa)) return std::nullopt;
  std::error_code error;
  const std::string file = std::filesystem::canonical(path, error).filename();
  return "model " + model.name + " is a " + isa + ", which ROCr " SOFTAPU_ROCR_VERSION " (" + file +
         ") does not know; a newer Debian has a newer one, see packaging/matrix";
}

}  // namespace apusched::softapu
