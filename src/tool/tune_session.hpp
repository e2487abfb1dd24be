// tune_session.hpp: what a tuner knows so far. The process that measures says what it does in JSON
// lines; the one that supervises it keeps this, and hands it to the next when that one dies. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/statistics.hpp"
#include "tuning/table.hpp"
#include "vkgemm/config.hpp"

namespace vkgemm::tool {

// How the trial of a configuration ended.
enum class TuneOutcome : std::uint8_t {
  good,
  wrong,   // results outside their bounds
  failed,  // the device lost, the process dead or without an answer
  unfit,   // it cannot be built or run here; not dangerous
  late,    // its workgroups gave up waiting for one another (Context::barrier_aborts())
};

struct Measured {
  Config config;
  TuneOutcome outcome = TuneOutcome::good;
  std::string reason;                // if not good
  std::vector<double> microseconds;  // of the latest rounds
  // Rounds go through the best configurations by turns, so that a clock that drifts does so for
  // all. 0: a first look, whose times do not count beside those of rounds.
  std::uint32_t round = 0;
  // True if it may be chosen: not if only another table proposed it, which it is compared with.
  bool eligible = true;

  double median() const { return vkgemm::median(microseconds); }
};

struct NamedConfig {
  std::string name;  // "built_in", "table", "estimate"
  Config config;
};

// One problem.
struct TuneCase {
  std::string arguments;  // of `vkgemm run`
  std::string list;       // the log that it is from
  TunedProblem problem;
  double multiply_adds = 0.0;

  std::vector<NamedConfig> choices;  // what tables choose
  std::size_t candidates = 0;        // that the search began with
  std::size_t legal = 0;             // of the whole grid and the table, whatever is estimated
  std::vector<Measured> measured;
  bool done = false;
  std::string error;         // why nothing was measured, or no more
  std::uint32_t deaths = 0;  // of processes, with no configuration to blame

  const Measured* find(const Config& config) const;
  Measured& entry(const Config& config);  // made if there is none
};

// The fastest configuration that is good, by medians; of those that may be chosen, unless `any`.
// One that a table chooses anyway is kept if it is at most 1 % slower: that is noise.
const Measured* fastest(const TuneCase& tuned, bool any = false);

// The configurations worth another round: good, and within this factor of the fastest; the fastest
// first, at most so many. The tables' choices are always among them.
std::vector<Config> survivors(const TuneCase& tuned, double within, std::size_t most);

struct TuneSession {
  std::string device, driver, architecture;
  std::vector<TuneCase> cases;
  std::string fatal;  // why nothing can be tuned at all

  // The place that the process that measures is at: the problem, and the configuration if it is at
  // one.
  std::optional<std::size_t> at;
  std::optional<Config> trying;

  std::uint32_t threads = 0;  // that may build plans ahead

  // The problem during which a process died whose threads may have done it. It is tuned without
  // them, so that there is one to blame.
  std::optional<std::size_t> alone;

  bool done() const;
  std::uint32_t builders() const { return alone ? 0 : threads; }
};

// True if it gave wrong results or failed with inputs of this type, for whichever problem: the
// table will deny it for all.
bool is_denied(const TuneSession& session, const Config& config, DataType input_type);

// The messages of the process that measures. Each is one line.
namespace says {
std::string device(const std::string& name, const std::string& driver,
                   const std::string& architecture);
std::string fatal(const std::string& reason);
std::string begins(std::size_t index);  // or goes on with it, and is at no configuration
std::string searches(std::size_t index, const std::vector<NamedConfig>& choices,
                     std::size_t candidates, std::size_t legal);
std::string tries(std::size_t index, const Config& config);
std::string found(std::size_t index, const Measured& measured);
std::string done(std::size_t index, const std::string& error = {});
// The device, or that workgroups wait at all: another process is to go on. The configuration that
// did it is told.
std::string lost();
// Not said by that process, but of it: blame().
std::string died(const std::string& reason);
}  // namespace says

// Takes in a line; false if it makes no sense.
bool take_in(TuneSession& session, std::string_view line);

// The process that measured died, or was ended: the configuration that it was at is to blame; if it
// was at none, the problem, which gets another chance. If threads may have done it nobody is, but
// the problem is tuned alone.
void blame(TuneSession& session, const std::string& reason);

// A table for parse_tuning_table(): the fastest of each problem, and what must not be used again.
// The row of a search that did not come to its end says so. Rows that `before` has for other
// problems are kept, and so is its row for one whose search is not at its end and has found nothing
// faster. `provenance` is put before each row's figures: "measured: NVIDIA H200, driver …,
// 2026-11-22, commit …".
std::string to_table(const TuneSession& session, const TuningTable* before,
                     const std::string& provenance);

// True if the search for this problem came to its end.
bool is_complete(const TuningTable& table, std::string_view arguments);

// "4096x4096x4096 f16", with what else is not as most have it
std::string label(const TunedProblem& problem);

// One problem's results as JSON: what tables choose, what was fastest, what they lose, and the
// medians of all that was timed.
// `commit` and `date` are those of the measurement.
std::string to_json(const TuneSession& session, const TuneCase& tuned, const std::string& commit,
                    const std::string& date);

}  // namespace vkgemm::tool
