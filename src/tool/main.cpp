// vkgemm: the command line tool.
#include <cstdio>
#include <exception>
#include <new>

#include "commit.hpp"
#include "tool/process.hpp"
#include "tool/tool.hpp"
#include "vkgemm/version.hpp"

namespace vkgemm::tool {
namespace {

constexpr const char* kFooter = R"(exit codes:
  0  done, and verified where verification was asked for
  1  computed, but the result is not the reference's; a self-test failed
  2  usage or input: options, files, shapes, problems that cannot be computed as asked
  3  no Vulkan loader, no device, or a driver's failure
  4  bench: slower than its --baseline
  130  tune was interrupted; what it measured is kept

environment:
  VKGEMM_LOG=stderr|<file>  messages of the library
  VKGEMM_VALIDATION=1       validation layers with synchronization validation
  VKGEMM_TUNING=<file>      tuning table, as `vkgemm tune` writes them; comes before all others
  VKGEMM_DEVICE_BARRIER=0   no dispatches whose workgroups wait for one another
  VKGEMM_DENY_LIST=0        use drivers that are known to be bad

example:
  vkgemm make a.npy --shape 512x256 --seed 1
  vkgemm make b.npy --shape 256x384 --seed 2
  vkgemm run --a a.npy --b b.npy --alpha 1.25 --activation gelu_erf --out d.npy)";

int run_tool(int argc, char** argv) {
  CLI::App app("Fused matrix products on Vulkan cooperative matrices.", "vkgemm");
  app.footer(kFooter);
  app.require_subcommand(1);
  app.set_version_flag("--version", std::to_string(VKGEMM_VERSION_MAJOR) + "." +
                                        std::to_string(VKGEMM_VERSION_MINOR) + "." +
                                        std::to_string(VKGEMM_VERSION_PATCH) + " (" +
                                        VKGEMM_COMMIT + ")");
  int exit_code = success;
  add_info(app, exit_code);
  add_run(app, exit_code);
  add_make(app);
  add_bench(app, exit_code);
  add_tune(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? success : usage_error;
  } catch (const Failure& failure) {
    std::fprintf(stderr, "vkgemm: %s\n", failure.what());
    return failure.code();
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "vkgemm: no host memory\n");
    return usage_error;
  }
  return exit_code;
}

}  // namespace
}  // namespace vkgemm::tool

int main(int argc, char** argv) {
  try {
    vkgemm::tool::remember_command_line(argc, argv);
    return vkgemm::tool::run_tool(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "vkgemm: %s\n", error.what());
  } catch (...) {
    std::fprintf(stderr, "vkgemm: unknown exception\n");
  }
  return vkgemm::tool::usage_error;
}
