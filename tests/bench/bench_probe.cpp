// SPDX-License-Identifier: MIT
// What a sample of the daemon's probe costs beside the same AQL loop written bare on the same
// runtime: barrier-AND packets and no-op kernels, in turns, in one process.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gpu_helper/probe.hpp"
#include "programs/hsa_program.h"

namespace {

using namespace apusched;
using Clock = std::chrono::steady_clock;
using nlohmann::json;
using std::chrono::nanoseconds;

constexpr double kGoal = 1.1;

double microseconds(nanoseconds value) {
  return static_cast<double>(value.count()) / 1000.0;
}

double at(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

double timed(const std::function<void()>& call) {
  const auto start = Clock::now();
  call();
  return microseconds(Clock::now() - start);
}

void require(bool good, const char* what) {
  if (!good) softapu::give_up(what);
}

struct Pair {
  std::vector<double> bare, probe;
  [[nodiscard]] json summary() const {
    const double ratio = at(probe, 0.5) / at(bare, 0.5);
    return {{"bare_p50_us", at(bare, 0.5)},
            {"bare_p99_us", at(bare, 0.99)},
            {"probe_p50_us", at(probe, 0.5)},
            {"probe_p99_us", at(probe, 0.99)},
            {"ratio_p50", ratio},
            {"goal", kGoal},
            {"met", ratio <= kGoal}};
  }
};

/// One round: `count` calls of each in turns, so that the machine's noise meets both alike.
Pair measure(int count, const std::function<void()>& bare, const std::function<void()>& probe) {
  Pair pair;
  for (int i = 0; i < count; ++i) {
    pair.bare.push_back(timed(bare));
    pair.probe.push_back(timed(probe));
  }
  return pair;
}

/// The repetition with the median ratio stands for all.
json median_of(int repetitions, const std::function<Pair()>& run) {
  std::vector<json> results;
  for (int i = 0; i < repetitions; ++i) results.push_back(run().summary());
  std::sort(results.begin(), results.end(),
            [](const json& a, const json& b) { return a["ratio_p50"] < b["ratio_p50"]; });
  return results[results.size() / 2];
}

void print_table(const json& result) {
  std::printf("%-8s %12s %12s %12s %12s %8s\n", "source", "bare p50", "p99", "probe p50", "p99",
              "ratio");
  for (const auto* source : {"queue", "kernel"}) {
    if (!result.contains(source)) continue;
    const auto& row = result[source];
    std::printf("%-8s %9.2f us %9.2f us %9.2f us %9.2f us %8.2f  goal %.2f: %s\n", source,
                row["bare_p50_us"].get<double>(), row["bare_p99_us"].get<double>(),
                row["probe_p50_us"].get<double>(), row["probe_p99_us"].get<double>(),
                row["ratio_p50"].get<double>(), kGoal, row["met"].get<bool>() ? "met" : "MISSED");
  }
}

}  // namespace

int main(int argc, char** argv) {
  int count = 2000;
  int repetitions = 5;
  bool as_json = false;
  std::string address = "0000:04:00.0";
  CLI::App app("A sample of the probe beside the bare AQL loop");
  app.add_option("--count", count, "calls of each in one repetition")
      ->check(CLI::Range(10, 100000));
  app.add_option("--repetitions", repetitions)->check(CLI::Range(1, 100));
  app.add_option("--gpu", address, "PCI address");
  app.add_flag("--json", as_json);
  CLI11_PARSE(app, argc, argv);

  const auto pci = core::PciAddress::parse(address);
  require(pci.has_value(), "--gpu: not a PCI address");
  auto probe = gpu_helper::Probe::open(*pci);
  if (!probe) softapu::give_up(core::to_sentence(probe.error()));

  softapu::Gpu gpu;
  gpu.load_kernels(softapu::executable_directory() + "/../softapu/programs");
  const softapu::Queue queue(gpu, 64);
  const softapu::Signal done;
  const auto noop = gpu.kernel("noop");
  const auto sample = [&](core::ProbeSource source) {
    const auto outcome = (*probe)->sample(source, std::chrono::seconds(5));
    require(outcome && !outcome->lost, "a sample of the probe was lost");
  };
  const auto bare = [&](const std::function<void()>& submit) {
    done.set(1);
    submit();
    require(done.wait(HSA_WAIT_STATE_BLOCKED), "a bare packet was lost");
  };

  json result{
      {"what", "probe sample / bare AQL loop, measured on the software APU or the GPU given"},
      {"count", count},
      {"repetitions", repetitions}};
  result["queue"] = median_of(repetitions, [&] {
    return measure(
        count, [&] { bare([&] { queue.barrier_and(nullptr, &done); }); },
        [&] { sample(core::ProbeSource::queue); });
  });
  if ((*probe)->has_kernel())
    result["kernel"] = median_of(repetitions, [&] {
      return measure(
          count, [&] { bare([&] {
                         queue.dispatch({noop, 1, 64, nullptr, true}, &done);
                       }); },
          [&] { sample(core::ProbeSource::kernel); });
    });

  if (as_json)
    std::printf("%s\n", result.dump(2).c_str());
  else
    print_table(result);
  return 0;
}
