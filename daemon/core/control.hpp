// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/exceedance.hpp"

/// The closed loop of one target: what is observed, what could be done, and what is to be done now.
/// Pure: all time comes in with the input, so that a run can be recorded and replayed bit for bit.
namespace apusched::core {

using Moment = std::chrono::milliseconds;  ///< on any monotonic clock

enum class ControlState {
  idle,       ///< the process does nothing; nothing is held
  observing,  ///< not enough is known yet
  meeting,
  violating,
  saturated,  ///< violating, and nothing is left to try
  failsafe,   ///< readings are missing: hold, then let go
};
[[nodiscard]] std::string_view to_string(ControlState state);

/// What a target is about.
enum class Latency {
  cpu_wait,  ///< threads of the process wait for a CPU
  dispatch,  ///< packets of the process wait for the GPU
};
[[nodiscard]] std::string_view to_string(Latency what);
[[nodiscard]] std::optional<Latency> parse_latency(std::string_view text);

/// One thing that can be done, in the order of trying: the ladder's rungs, cheapest first.
struct Rung {
  std::string name;  ///< unique in the ladder
  bool available = true;
  std::string why_not;      ///< a sentence, where not available
  bool needs_rival = true;  ///< acts only against others: useless where there is no contention
  Moment settle{200};       ///< from asking until its effect can be seen
  double watts = 0;         ///< what it costs while engaged
  /// What was asked last is not in force yet: nothing can be seen of it, and it settles from then.
  bool being_written = false;

  bool operator==(const Rung&) const = default;
};

struct ControlSettings {
  double target = 0;  ///< an observation above it is an exceedance; the unit is the observer's
  Moment relax_after{500};        ///< contention must be over for so long before letting go
  Moment relax_after_max{60000};  ///< it doubles up to this while contention keeps coming back
  /// A rung that did not help is not tried again before; after each further failure under the same
  /// contention twice as long, at most 16 times.
  Moment retry_after{30000};
  Moment stale_after{1000};     ///< without an observation: failsafe
  Moment let_go_after{5000};    ///< and after so long everything is let go
  Moment change_interval{500};  ///< no rung changes twice within this
  /// What acts without rivals is let go after so long, to see whether it is still needed; where it
  /// is, it is asked again after twice as long, at most the latter.
  Moment check_after{30000};
  Moment check_after_max{600000};
  double rival_floor = 0.10;  ///< rivals that use less of the machine are no contention
  double min_gain = 0.10;     ///< an improvement below this share is none
  /// Not 0: compare exactly so many observations before with as many after. Before: taken once the
  /// target is exceeded, because those that showed it are the highest of many, and the next would
  /// be lower with any lever. After: no fewer, because who stops when it looks good is often wrong.
  /// 0: be quick, decide as soon as the test does.
  std::uint32_t compared = 0;
  /// Share of the pairs of an observation before and one after in which the second is the lower
  /// one (Mann and Whitney's U): below it a better mean is chance. 0.5 is no difference, 0: not
  /// asked.
  double min_superiority = 0;
  /// A gain below this share is kept only if it is gone in a time without the rung. 0: not asked.
  double sure_gain = 0;

  bool operator==(const ControlSettings&) const = default;
};

struct ControlInput {
  Moment now{0};
  bool working = true;                ///< the process has done something since the last input
  std::optional<double> observation;  ///< nothing: none was made, or it is not to be trusted
  double rival = 0;                   ///< share of the machine that others use, 0..1
  std::vector<Rung> rungs;
  std::optional<double> target{};  ///< instead of ControlSettings::target

  bool operator==(const ControlInput&) const = default;
};

/// What became of one rung, told once, with the figures that decided.
struct ControlEvent {
  enum class What { tried, kept, undone, confirmed, inconclusive, released, state };
  What what = What::state;
  std::string rung;   ///< empty for `state`
  std::string text;   ///< a sentence
  double before = 0;  ///< mean observation
  double after = 0;

  bool operator==(const ControlEvent&) const = default;
};
[[nodiscard]] std::string_view to_string(ControlEvent::What what);

struct ControlOutput {
  ControlState state = ControlState::observing;
  std::vector<std::string> engaged;  ///< rungs that have to be in force now
  std::vector<ControlEvent> events;

  bool operator==(const ControlOutput&) const = default;
};

/// A value; its owner keeps one for each target. Memory is bounded by the number of rungs.
class Controller {
 public:
  explicit Controller(const ControlSettings& settings)
      : settings_(settings), relax_after_(settings.relax_after) {}
  [[nodiscard]] ControlOutput step(const ControlInput& input);
  /// Nothing is held or tried, and an observation within the target changes nothing: rungs and
  /// rivals do not matter to a step that brings one.
  [[nodiscard]] bool is_at_rest() const;
  [[nodiscard]] const ControlSettings& settings() const { return settings_; }

 private:
  struct Sample {
    double observation = 0;
    double rival = 0;
  };
  /// The last few observations made under the same setting of the levers.
  class Stretch {
   public:
    void add(const Sample& sample, std::size_t most);
    void clear() { samples_.clear(); }
    void keep_newest(std::size_t count);
    [[nodiscard]] std::size_t size() const { return samples_.size(); }
    [[nodiscard]] double mean() const;
    [[nodiscard]] double mean_rival() const;
    /// Share of the pairs in which an observation of `after` is below one of these.
    [[nodiscard]] double superiority_of(const Stretch& after) const;

   private:
    std::deque<Sample> samples_;
  };
  struct Memory {
    std::string name;
    std::optional<Moment> blocked_until;
    std::optional<Moment> changed;
    std::uint32_t helped = 0;  ///< times in a row, each after a time without it
    int failed = 0;            ///< times in a row, none of them in doubt
    double gain = 0;           ///< share of the observation that it took away, when last seen
    double watts = 0;
    bool needs_rival = true;
    Moment check_after{0};          ///< engaged for so long it is let go for a check
    std::optional<Moment> checked;  ///< since when it is let go for that
  };
  enum class Phase {
    with,          ///< just engaged
    reversal,      ///< it did not help: is it worse without?
    confirmation,  ///< it helped a little: is that gone without?
  };
  struct Experiment {
    std::string rung;
    Phase phase = Phase::with;
    Stretch before;  ///< the phase
  };
  struct Means {
    double before = 0;
    double after = 0;
  };

  [[nodiscard]] Memory& memory(const std::string& name);
  [[nodiscard]] bool is_engaged(const std::string& name) const;
  [[nodiscard]] bool may_change(const std::string& name, Moment now);
  [[nodiscard]] const Rung* next_rung(const ControlInput& input);
  [[nodiscard]] std::string saturation(const ControlInput& input);
  void await_writing(const ControlInput& input);
  void observe(const ControlInput& input);
  void drop_unavailable(const ControlInput& input, ControlOutput& output);
  void conclude(const ControlInput& input, ControlOutput& output);
  void conclude_reversal(const ControlInput& input, ControlOutput& output);
  void conclude_confirmation(const ControlInput& input, ControlOutput& output);
  void try_without(Phase phase, const std::string& name, const ControlInput& input);
  void keep(const std::string& name, Means means, ControlOutput& output);
  void undo(const std::string& name, const std::string& why, Means means, Moment now,
            ControlOutput& output);
  [[nodiscard]] bool knows_before();
  [[nodiscard]] bool knows_after() const;
  [[nodiscard]] std::size_t stretch_length() const;
  [[nodiscard]] Stretch what_is_before() const;
  [[nodiscard]] bool helped(const Stretch& without, const Stretch& with) const;
  [[nodiscard]] bool rival_fell_since(const Stretch& before) const;
  void climb(const ControlInput& input, ControlOutput& output);
  void relax(const ControlInput& input, ControlOutput& output);
  void check_need(const ControlInput& input, ControlOutput& output);
  void let_go(Moment now, ControlOutput& output, const std::string& why);
  void let_go(std::vector<std::string> names, Moment now, ControlOutput& output,
              const std::string& why);
  [[nodiscard]] std::vector<std::string> engaged_against_rivals();
  void engage(const Rung& rung, Moment now);
  [[nodiscard]] std::string least_worth(const std::vector<std::string>& names);
  void disengage(const std::string& name, Moment now);
  void fresh_start();
  void enter(ControlState state, ControlOutput& output, const std::string& why);
  [[nodiscard]] ControlState judge() const;

  ControlSettings settings_;
  ExceedanceTest test_;
  Stretch stretch_;
  std::vector<std::string> engaged_;
  std::vector<Memory> memories_;
  std::optional<Experiment> experiment_;
  Moment settled_{0};  ///< what is observed before says nothing of the present levers
  bool measuring_before_ = false;
  std::optional<Moment> observed_;    ///< when last
  std::optional<Moment> worked_;      ///< when last
  std::optional<Moment> rival_gone_;  ///< since when
  std::optional<Moment> relaxed_;     ///< when last
  Moment relax_after_{0};
  ControlState state_ = ControlState::observing;
};

}  // namespace apusched::core
