#include "tool/options.hpp"

#include <charconv>
#include <cstddef>
#include <limits>
#include <system_error>
#include <vector>

#include "base/file.hpp"
#include "base/paths.hpp"
#include "tool/tool.hpp"

namespace vkgemm::tool {

std::uint64_t parse_size(const std::string& option, const std::string& text, std::uint64_t limit) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || stop != end || value > limit) {
    throw CLI::ValidationError(option + " is '" + text + "': a whole number from 0 to " +
                               std::to_string(limit) + " is needed");
  }
  return value;
}

std::string read_file(const std::string& option, const std::string& file) {
  const auto bytes = vkgemm::read_file(path_of(file), std::numeric_limits<std::uint64_t>::max());
  if (!bytes) throw Failure(usage_error, option + ": " + bytes.error().message);
  if (bytes->empty()) {
    throw Failure(usage_error, option + ": " + file + " cannot be read, or is empty");
  }
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

std::vector<std::uint64_t> parse_sizes(const std::string& option, const std::string& text) {
  std::vector<std::uint64_t> sizes;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = text.find('x', begin);
    sizes.push_back(parse_size(option, text.substr(begin, end - begin), kMaxSize));
    if (end == std::string::npos) return sizes;
    begin = end + 1;
  }
}

CLI::Option* add_size(CLI::App& app, const std::string& names, std::uint64_t& value,
                      const std::string& help, std::uint64_t limit) {
  const auto parse = [&value, names, limit](const std::string& text) {
    value = parse_size(names, text, limit);
  };
  return app.add_option_function<std::string>(names, parse, help)->type_name("SIZE");
}

CLI::Option* add_size(CLI::App& app, const std::string& names, std::optional<std::uint64_t>& value,
                      const std::string& help, std::uint64_t limit) {
  const auto parse = [&value, names, limit](const std::string& text) {
    value = parse_size(names, text, limit);
  };
  return app.add_option_function<std::string>(names, parse, help)->type_name("SIZE");
}

CLI::Option* add_type(CLI::App& app, const std::string& names, std::optional<DataType>& value,
                      const std::string& help) {
  return add_named(app, names, value, help, names_of<DataType>(), parse_data_type);
}

CLI::Option* add_layout(CLI::App& app, const std::string& names, std::optional<Layout>& value,
                        const std::string& help) {
  return add_named(app, names, value, help, names_of<Layout>(), parse_layout);
}

CLI::Option* add_f32_arithmetic(CLI::App& app, F32Arithmetic& value) {
  return add_named(
      app, "--f32", value,
      "How f32 is multiplied: by f32 arithmetic, or in parts of 16 bits on matrix units, "
      "whose number of products is the name's",
      names_of<F32Arithmetic>(), parse_f32_arithmetic);
}

CLI::Option* add_fill(CLI::App& app, Fill& value) {
  return add_named(app, "--fill", value,
                   "Values of generated matrices: random in [-1, 1), or integers from -2 to 2, "
                   "whose products are exact",
                   "random|integers", parse_fill);
}

CLI::Option* add_path(CLI::App& app, std::optional<Path>& value) {
  return add_named(app, "--path", value, "Only configurations of this path", names_of<Path>(),
                   parse_path);
}

void MatrixOptions::add(CLI::App& app, const std::string& suffix) {
  const std::string of = " of " + suffix;
  if (suffix != "a") {  // A's type is --dtype
    add_type(
        app,
        "--dtype-" + suffix + (suffix == "d" || suffix == "aux" ? ",--" + suffix + "-type" : ""),
        type, "Element type" + of);
  }
  add_layout(app, "--layout-" + suffix, layout, "Layout" + of);
  add_size(app, "--ld-" + suffix + ",--ld" + suffix, ld,
           "Leading dimension" + of + ", in elements");
  add_size(app, "--batch-stride-" + suffix, batch_stride,
           "Elements from one matrix of the batch to the next" + of, UINT64_MAX >> 8);
  add_size(app, "--alignment-" + suffix, alignment, "Promised alignment" + of + ", in bytes");
}

Matrix MatrixOptions::matrix(DataType default_type, Layout default_layout) const {
  Matrix matrix;
  matrix.type = type.value_or(default_type);
  matrix.layout = layout.value_or(default_layout);
  matrix.ld = ld;
  matrix.batch_stride = batch_stride;
  if (alignment) matrix.alignment = static_cast<std::uint32_t>(*alignment);
  return matrix;
}

DataType default_result(const Problem& problem) {
  if (problem.a.type != DataType::s8) return problem.a.type;
  const bool sums = problem.epilogue == Epilogue{} && !problem.gated && !problem.row_reduction;
  return sums ? DataType::s32 : DataType::f16;
}

void EpilogueOptions::add(CLI::App& app) {
  app.add_option("--alpha", alpha, "Factor of A*B")->capture_default_str();
  app.add_option("--beta", beta, "Factor of C; 0: there is no C")->capture_default_str();
  add_named(app, "--bias-mode,--bias-along", bias,
            "What the bias is added to: along_n (or n): N values, one a column; along_m (or m): M "
            "values, one a row",
            names_of<Bias>(), [](const std::string& text) -> std::optional<Bias> {
              if (text == "n") return Bias::along_n;
              if (text == "m") return Bias::along_m;
              return parse_bias(text);
            });
  add_type(app, "--dtype-bias", bias_type, "Element type of a generated bias");
  add_size(app, "--batch-stride-bias", bias_batch_stride,
           "Elements from one bias of the batch to the next; 0: one for all", UINT64_MAX >> 8);
  add_named(app, "--row-scales-mode", row_scales,
            "Generated factors of the rows of A*B, f32: shared by the batch, or per_matrix",
            names_of<Scales>(), parse_scales);
  add_named(app, "--column-scales-mode", column_scales, "The same of its columns",
            names_of<Scales>(), parse_scales);
  add_named(app, "--activation", activation, "Function applied before the cast",
            names_of<Activation>(), parse_activation);
  app.add_option("--clamp-min", clamp_min, "Lower bound of D");
  app.add_option("--clamp-max", clamp_max, "Upper bound of D");
  app.add_flag("--with-aux", with_aux, "Also compute aux, the value before the activation");
}

}  // namespace vkgemm::tool
