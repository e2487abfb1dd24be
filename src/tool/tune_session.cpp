#include "tool/tune_session.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "base/enum_names.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "report/statistics.hpp"
#include "tuning/table_text.hpp"

namespace vkgemm::tool {
namespace {

constexpr double noise = 1.01;
constexpr std::uint32_t most_deaths = 2;
constexpr std::array<std::string_view, 5> outcome_names = {"good", "wrong", "failed", "unfit",
                                                           "late"};

Json choices_json(const std::vector<NamedConfig>& choices) {
  Json out = Json::array();
  for (const NamedConfig& choice : choices) {
    out.push_back({{"name", choice.name}, {"config", to_string(choice.config)}});
  }
  return out;
}

bool is_choice(const TuneCase& tuned, const Config& config) {
  return std::ranges::any_of(tuned.choices,
                             [&](const NamedConfig& choice) { return choice.config == config; });
}

double to_three_decimals(double value) { return std::round(value * 1000.0) / 1000.0; }

Config config_of(const Json& message) {
  const auto config = parse_config(message.at("config").get<std::string>());
  if (!config) throw std::runtime_error(config.error().message);
  return *config;
}

void at_nothing(TuneSession& session) {
  session.at.reset();
  session.trying.reset();
}

// An exception says that the line is not one of says::.
void apply_message(TuneSession& session, const Json& message) {
  const std::string says = message.at("says");
  if (says == "device") {
    session.device = message.at("name");
    session.driver = message.at("driver");
    session.architecture = message.at("architecture");
    return at_nothing(session);
  }
  if (says == "fatal") {
    session.fatal = message.at("reason");
    return;
  }
  if (says == "lost") return at_nothing(session);
  if (says == "died") return blame(session, message.at("reason"));
  const std::size_t index = message.at("case");
  TuneCase& tuned = session.cases.at(index);
  session.at = index;
  // Results may come after the next configuration is begun with: they are verified beside it.
  if (says != "found" || session.trying == config_of(message)) session.trying.reset();
  if (says == "begins") return;
  if (says == "searches") {
    tuned.candidates = message.at("candidates");
    tuned.legal = message.at("legal");
    tuned.choices.clear();
    for (const Json& choice : message.at("choices")) {
      tuned.choices.push_back({choice.at("name"), config_of(choice)});
    }
  } else if (says == "tries") {
    session.trying = config_of(message);
  } else if (says == "found") {
    Measured& known = tuned.entry(config_of(message));
    known.outcome =
        find_name<TuneOutcome>(outcome_names, message.at("outcome").get<std::string>()).value();
    known.reason = message.at("reason");
    known.eligible = message.at("eligible");
    const std::uint32_t round = message.at("round");
    if (round > 0 && known.round == 0) known.microseconds.clear();
    known.round = std::max(known.round, round);
    for (const Json& time : message.at("us")) known.microseconds.push_back(time);
  } else {
    tuned.done = true;
    tuned.error = message.at("error");
    session.at.reset();
    if (session.alone == index) session.alone.reset();
  }
}

TunedShape tuned_shape(const TuneCase& tuned, const Measured& best, const std::string& provenance) {
  const double us = best.median();
  char figures[160];
  std::snprintf(figures, sizeof figures,
                ": %.4g TFLOP/s, %zu timings, verified; the fastest of %zu",
                report::tera_flops(tuned.multiply_adds, us / 1000.0), best.microseconds.size(),
                tuned.measured.size());
  TunedShape shape{.problem = tuned.problem,
                   .microseconds = to_three_decimals(us),
                   .arguments = tuned.arguments,
                   .complete = tuned.done && tuned.error.empty()};
  shape.row.config = best.config;
  shape.row.provenance = provenance + figures;
  return shape;
}

}  // namespace

const Measured* TuneCase::find(const Config& config) const {
  const auto it = std::ranges::find(measured, config, &Measured::config);
  return it == measured.end() ? nullptr : &*it;
}

Measured& TuneCase::entry(const Config& config) {
  const auto it = std::ranges::find(measured, config, &Measured::config);
  return it == measured.end() ? measured.emplace_back(Measured{.config = config}) : *it;
}

const Measured* fastest(const TuneCase& tuned, bool any) {
  const Measured* best = nullptr;
  // A configuration that went through rounds is compared with its like.
  std::uint32_t round = 0;
  const auto may = [&](const Measured& m) {
    return m.outcome == TuneOutcome::good && !m.microseconds.empty() && (any || m.eligible);
  };
  for (const Measured& m : tuned.measured) {
    if (may(m) && m.round > 0) round = 1;
  }
  for (const Measured& m : tuned.measured) {
    if (!may(m) || m.round < round) continue;
    if (best == nullptr || m.median() < best->median()) best = &m;
  }
  if (best == nullptr || any) return best;
  for (const NamedConfig& choice : tuned.choices) {
    if (choice.name == "estimate") continue;  // nobody gets it
    const Measured* chosen = tuned.find(choice.config);
    if (chosen != nullptr && may(*chosen) && chosen->round >= round &&
        chosen->median() <= noise * best->median()) {
      return chosen;
    }
  }
  return best;
}

std::vector<Config> survivors(const TuneCase& tuned, double within, std::size_t most) {
  std::vector<const Measured*> good;
  for (const Measured& m : tuned.measured) {
    if (m.outcome == TuneOutcome::good && !m.microseconds.empty()) good.push_back(&m);
  }
  std::ranges::stable_sort(good, {}, [](const Measured* m) { return m->median(); });
  std::vector<Config> out;
  std::size_t others = 0;
  for (const Measured* m : good) {
    const bool near = others < most && m->median() <= within * good.front()->median();
    if (!near && !is_choice(tuned, m->config)) continue;
    out.push_back(m->config);
    ++others;
  }
  return out;
}

bool TuneSession::done() const { return std::ranges::all_of(cases, &TuneCase::done); }

bool is_denied(const TuneSession& session, const Config& config, DataType input_type) {
  return std::ranges::any_of(session.cases, [&](const TuneCase& tuned) {
    const Measured* known = tuned.problem.input_type == input_type ? tuned.find(config) : nullptr;
    return known != nullptr &&
           (known->outcome == TuneOutcome::wrong || known->outcome == TuneOutcome::failed);
  });
}

std::string says::device(const std::string& name, const std::string& driver,
                         const std::string& architecture) {
  return json_text(
      {{"says", "device"}, {"name", name}, {"driver", driver}, {"architecture", architecture}});
}

std::string says::fatal(const std::string& reason) {
  return json_text({{"says", "fatal"}, {"reason", reason}});
}

std::string says::begins(std::size_t index) {
  return json_text({{"says", "begins"}, {"case", index}});
}

std::string says::searches(std::size_t index, const std::vector<NamedConfig>& choices,
                           std::size_t candidates, std::size_t legal) {
  return json_text({{"says", "searches"},
                    {"case", index},
                    {"candidates", candidates},
                    {"legal", legal},
                    {"choices", choices_json(choices)}});
}

std::string says::tries(std::size_t index, const Config& config) {
  return json_text({{"says", "tries"}, {"case", index}, {"config", to_string(config)}});
}

std::string says::found(std::size_t index, const Measured& m) {
  return json_text({{"says", "found"},
                    {"case", index},
                    {"config", to_string(m.config)},
                    {"outcome", vkgemm::name_of(outcome_names, m.outcome)},
                    {"reason", m.reason},
                    {"eligible", m.eligible},
                    {"round", m.round},
                    {"us", m.microseconds}});
}

std::string says::done(std::size_t index, const std::string& error) {
  return json_text({{"says", "done"}, {"case", index}, {"error", error}});
}

std::string says::lost() { return json_text({{"says", "lost"}}); }

std::string says::died(const std::string& reason) {
  return json_text({{"says", "died"}, {"reason", reason}});
}

bool take_in(TuneSession& session, std::string_view text) {
  try {
    apply_message(session, Json::parse(text));
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void blame(TuneSession& session, const std::string& reason) {
  const std::optional<std::size_t> at = session.at;
  const std::optional<Config> trying = session.trying;
  at_nothing(session);
  if (!at) return;
  if (session.builders() != 0) {
    session.alone = at;
    return;
  }
  TuneCase& tuned = session.cases[*at];
  if (trying) {
    Measured& known = tuned.entry(*trying);
    known.outcome = TuneOutcome::failed;
    known.reason = reason;
  } else {
    if (++tuned.deaths <= most_deaths) return;
    tuned.done = true;
    tuned.error = reason;
  }
  session.alone.reset();
}

std::string to_table(const TuneSession& session, const TuningTable* before,
                     const std::string& provenance) {
  TuningTable out{
      .architecture = session.architecture, .device = session.device, .driver = session.driver};
  const auto deny = [&](const DeniedConfig& d) {
    const auto same = [&](const DeniedConfig& other) {
      return other.config == d.config && other.input_type == d.input_type && other.wrong == d.wrong;
    };
    if (std::ranges::none_of(out.denied, same)) out.denied.push_back(d);
  };
  for (const TuneCase& tuned : session.cases) {
    for (const Measured& m : tuned.measured) {
      if (m.outcome != TuneOutcome::wrong && m.outcome != TuneOutcome::failed) continue;
      deny({.config = m.config,
            .reason = provenance + ", " + tuned.arguments + ": " +
                      std::string(vkgemm::name_of(outcome_names, m.outcome)) + ": " + m.reason,
            .input_type = tuned.problem.input_type,
            .wrong = m.outcome == TuneOutcome::wrong});
    }
  }
  if (before != nullptr) std::ranges::for_each(before->denied, deny);
  const auto shape_of = [](const TuningTable& table, const std::string& arguments) {
    const auto it = std::ranges::find(table.tuned, arguments, &TunedShape::arguments);
    return it == table.tuned.end() ? nullptr : &*it;
  };
  for (const TuneCase& tuned : session.cases) {
    const Measured* best = fastest(tuned);
    if (best == nullptr) continue;
    const TunedShape shape = tuned_shape(tuned, *best, provenance);
    const TunedShape* old = before != nullptr ? shape_of(*before, tuned.arguments) : nullptr;
    if (old != nullptr && !shape.complete && old->microseconds <= shape.microseconds) continue;
    out.tuned.push_back(shape);
  }
  for (const TunedShape& shape : before != nullptr ? before->tuned : std::vector<TunedShape>()) {
    if (shape_of(out, shape.arguments) == nullptr) out.tuned.push_back(shape);
  }
  return table_text(out);
}

bool is_complete(const TuningTable& table, std::string_view arguments) {
  return std::ranges::any_of(table.tuned, [&](const TunedShape& shape) {
    return shape.complete && shape.arguments == arguments;
  });
}

std::string label(const TunedProblem& p) {
  std::string text = std::to_string(p.m) + "x" + std::to_string(p.n) + "x" + std::to_string(p.k);
  if (p.count != 1) text = std::to_string(p.count) + "*" + text;
  const bool in_parts = p.f32_arithmetic != F32Arithmetic::ieee;
  text += " " + std::string(in_parts ? to_string(p.f32_arithmetic) : to_string(p.input_type));
  const auto packed = static_cast<unsigned>(p.packed);  // these have no layout
  if (p.a_layout != Layout::row_major && (packed & 1U) == 0) text += " A^T";
  if (p.b_layout != Layout::row_major && (packed & 2U) == 0) text += " B^T";
  if (p.family != "gemm") text += " " + p.family;
  if (p.epilogue != EpilogueWork::none) text += " " + std::string(to_string(p.epilogue));
  if (!p.aligned) text += " unaligned";
  if (p.packed != PackedOperands::none) text += " packed " + std::string(to_string(p.packed));
  return text;
}

std::string to_json(const TuneSession& session, const TuneCase& tuned, const std::string& commit,
                    const std::string& date) {
  const TunedProblem& p = tuned.problem;
  Json out = {{"device", session.device},
              {"driver", session.driver},
              {"commit", commit},
              {"date", date},
              {"list", tuned.list},
              {"label", label(p)},
              {"problem", tuned.arguments},
              {"family", p.family},
              {"type", to_string(p.input_type)},
              {"m", p.m},
              {"n", p.n},
              {"k", p.k},
              {"count", p.count}};
  if (!tuned.error.empty()) out["error"] = tuned.error;
  const Measured* best = fastest(tuned, true);
  const auto add = [&](const std::string& name, const Config& config, const Measured* m) {
    Json& entry = out[name];
    entry["config"] = to_string(config);
    if (m == nullptr || m->outcome != TuneOutcome::good || m->microseconds.empty()) {
      entry["error"] = m == nullptr ? "not measured" : m->reason;
      return;
    }
    entry["us"] = to_three_decimals(m->median());
    entry["tflops"] =
        to_three_decimals(report::tera_flops(tuned.multiply_adds, m->median() / 1000.0));
    entry["loss"] = to_three_decimals(m->median() / best->median() - 1.0);
  };
  for (const NamedConfig& choice : tuned.choices) {
    add(choice.name, choice.config, tuned.find(choice.config));
  }
  if (const Measured* chosen = fastest(tuned)) add("tuned", chosen->config, chosen);
  if (best != nullptr) add("best", best->config, best);
  out["candidates"] = tuned.candidates;
  out["legal"] = tuned.legal;
  out["measured"] = tuned.measured.size();
  for (std::size_t i = 0; i < outcome_names.size(); ++i) {
    out[std::string(outcome_names[i])] =
        std::ranges::count(tuned.measured, static_cast<TuneOutcome>(i), &Measured::outcome);
  }
  Json& timed = out["timed"] = Json::object();
  for (const Measured& m : tuned.measured) {
    if (m.outcome == TuneOutcome::good && !m.microseconds.empty()) {
      timed[to_string(m.config)] = to_three_decimals(m.median());
    }
  }
  return json_text(out);
}

}  // namespace vkgemm::tool
