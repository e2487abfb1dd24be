// vkgemm: the command line tool.
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/system.hpp"
#include "commit.hpp"
#include "headless/process.hpp"
#include "tool/options.hpp"
#include "tool/tool.hpp"
#include "vkgemm/version.h"

namespace vkgemm::tool {
namespace {

constexpr const char* kFooter = R"(exit codes:
  0  done, and verified where verification was asked for
  1  computed, but the result is not the reference's; a self-test failed
  2  usage or input: options, files, shapes, problems that cannot be computed as asked
  3  no Vulkan loader, no device, no memory, or a driver's failure
  4  bench: slower than its --baseline
  130  tune was interrupted; what it measured is kept

environment:
  VKGEMM_LOG=stderr|<file>  messages of the library
  VKGEMM_VALIDATION=1       validation layers; they see no access by device address
  VKGEMM_TUNING=<file>|0    tuning table, as `vkgemm tune` writes them; comes before all others.
                            0: without the table of `vkgemm tune --default-table`
  VKGEMM_DEVICE_BARRIER=0   no dispatches whose workgroups wait for one another
  VKGEMM_DENY_LIST=0        use drivers that are known to be bad

example:
  vkgemm make a.npy --shape 512x256 --seed 1
  vkgemm make b.npy --shape 256x384 --seed 2
  vkgemm run --a a.npy --b b.npy --alpha 1.25 --activation gelu_erf --out d.npy)";

// CLI11 would only say that a command is missing.
void check_command(const CLI::App& app, std::string_view word) {
  if (word.starts_with('-')) return;
  std::vector<std::string> names;
  std::string all;
  for (const CLI::App* command : app.get_subcommands({})) {
    names.push_back(command->get_name());
    if (names.back() == word) return;
    all += (all.empty() ? "" : ", ") + names.back();
  }
  const std::string meant = nearest(word, names);
  throw Failure(usage_error, "'" + std::string(word) + "' is no command: " +
                                 (meant.empty() ? "" : "did you mean " + meant + "? ") +
                                 "There are " + all);
}

// CLI11 would only say that the arguments were not expected.
std::string unknown_argument(const CLI::App& app) {
  const CLI::App& command = *app.get_subcommands().front();
  const std::string word = app.remaining(true).front();
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  const std::string name = "vkgemm " + command.get_name();
  if (!word.starts_with('-')) {
    return "'" + word + "' is no argument of " + name + ": its options begin with --. See " + name +
           " --help";
  }
  const std::string meant = nearest(word.substr(0, word.find('=')), names);
  return "'" + word + "' is no option of " + name + ": " +
         (meant.empty() ? "see " : "did you mean " + meant + "? See ") + name + " --help";
}

int no_host_memory() {
  std::fprintf(stderr, "vkgemm: no host memory\n");
  return device_error;
}

int run_tool(const std::vector<std::string>& arguments) {
  CLI::App app("Fused matrix products on Vulkan cooperative matrices.", "vkgemm");
  app.footer(kFooter);
  app.require_subcommand(1);
  app.allow_windows_style_options(false);  // "/" begins a path, on every system
  app.set_version_flag("--version", std::to_string(VKGEMM_VERSION_MAJOR) + "." +
                                        std::to_string(VKGEMM_VERSION_MINOR) + "." +
                                        std::to_string(VKGEMM_VERSION_PATCH) + " (" +
                                        VKGEMM_COMMIT + ")");
  int exit_code = success;
  add_info(app, exit_code);
  add_run(app, exit_code);
  add_pack(app);
  add_quantise(app);
  add_quantise_rows(app);
  add_make(app);
  add_bench(app, exit_code);
  add_tune(app, exit_code);
  try {
    if (!arguments.empty()) check_command(app, arguments.front());
    app.parse(
        std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // as CLI11 wants them
  } catch (const CLI::ParseError& error) {
    // An argument too many tells more than the option that is missing instead.
    const bool may_be_unknown = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr ||
                                dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
    if (may_be_unknown && !app.get_subcommands().empty() && app.remaining_size(true) != 0) {
      std::fprintf(stderr, "vkgemm: %s\n", unknown_argument(app).c_str());
      return usage_error;
    }
    return app.exit(error) == 0 ? success : usage_error;
  } catch (const Failure& failure) {
    std::fprintf(stderr, "vkgemm: %s\n", failure.what());
    return failure.code();
  } catch (const std::bad_alloc&) {
    return no_host_memory();
  } catch (const std::length_error&) {  // more than any vector holds
    return no_host_memory();
  }
  return exit_code;
}

}  // namespace
}  // namespace vkgemm::tool

int main(int argc, char** argv) {
  vkgemm::os::prepare_output();
  try {
    vkgemm::headless::remember_command_line(argc, argv);
    return vkgemm::tool::run_tool(vkgemm::headless::own_arguments());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "vkgemm: %s\n", error.what());
  } catch (...) {
    std::fprintf(stderr, "vkgemm: unknown exception\n");
  }
  return vkgemm::tool::usage_error;
}
