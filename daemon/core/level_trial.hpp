// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "core/control.hpp"

/// Whether it pays to hold a GPU at a high performance level. Pure; a value for each GPU.
namespace apusched::core {

struct LevelSettings {
  Moment idle_after{2000};         ///< the level goes back once nothing worked for so long
  Moment check_after{30000};       ///< held so long, it is let go for a while to compare; 0: never
  Moment check_after_max{600000};  ///< doubles up to this while the answer stays the same
  Moment settle{1000};             ///< clocks ramp
  double min_gain = 0.05;          ///< of the dispatch latency
  double gain_per_watt = 0.01;     ///< and at least this for each watt that it costs, where known
  std::optional<double> max_celsius;
  double cool_down_celsius = 5;  ///< below the limit, before it is held again
  bool on_battery = false;       ///< held there, too, and with a power-saving profile

  bool operator==(const LevelSettings&) const = default;
};

struct LevelInput {
  Moment now{0};
  bool working = true;               ///< a process that asks for the level does something
  std::optional<double> latency_us;  ///< mean of the dispatches timed since the last input
  std::optional<double> watts;
  std::optional<double> celsius;
  bool saving = false;  ///< on battery, or a power-saving profile is chosen

  bool operator==(const LevelInput&) const = default;
};

/// The level is held from the beginning, as it is known to help where clocks have to ramp. Then it
/// has to show that: dispatches timed with it are compared with some timed without, and where the
/// difference is small for what it costs, it stays off until the next comparison.
class LevelTrial {
 public:
  explicit LevelTrial(const LevelSettings& settings)
      : settings_(settings), next_after_(settings.check_after) {}
  struct Output {
    bool hold = true;
    std::string why;    ///< not to hold it; empty otherwise
    std::string event;  ///< what has just become known, a sentence; mostly empty
    double before = 0;  ///< mean latencies that decided, in the order of time
    double after = 0;
  };
  [[nodiscard]] Output step(const LevelInput& input);

 private:
  struct Stretch {
    std::deque<double> latencies;
    double watts = 0;
    std::uint32_t readings = 0;  ///< of watts
    void add(const LevelInput& input);
    [[nodiscard]] bool full() const;
    [[nodiscard]] double mean() const;
    [[nodiscard]] double mean_watts() const;
  };
  enum class Phase { settled, comparing };

  [[nodiscard]] std::string obstacle(const LevelInput& input);
  void begin(Phase phase, bool hold, Moment now);
  void compare(const LevelInput& input, Output& output);
  [[nodiscard]] bool pays(const Stretch& with, const Stretch& without) const;

  LevelSettings settings_;
  Phase phase_ = Phase::settled;
  bool hold_ = true;  ///< as far as latency goes
  bool hot_ = false;
  bool interrupted_ = true;  ///< something else had it let go
  Moment since_{0};
  Moment next_after_;
  std::optional<Moment> worked_;
  Stretch now_, before_;
};

}  // namespace apusched::core
