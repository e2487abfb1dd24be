#include "tool/job.hpp"

#include <cstdio>
#include <utility>

#include "oracle/groups.hpp"
#include "runtime/fingerprint.hpp"
#include "tool/gated.hpp"
#include "tool/tool.hpp"

namespace vkgemm::tool {
namespace {

struct FileOption {
  OperandId id;
  const char* names;
  const char* help;
};

// In the order of --help. Offsets are an option of groups.
constexpr FileOption file_options[] = {
    {OperandId::a, "--a", "A, M x K; or .vkp, as `vkgemm pack` writes it"},
    {OperandId::b, "--b", "B, K x N; or .vkp"},
    {OperandId::b_right, "--b-right", "Right half of B, see --gated"},
    {OperandId::c, "--c", "C, M x N"},
    {OperandId::bias, "--bias", "Bias, N values (or M, see --bias-mode)"},
    {OperandId::row_scales, "--row-scales",
     "Factors of the rows of A*B, f32: M values, or batch x M"},
    {OperandId::column_scales, "--column-scales",
     "Factors of its columns, f32: N values, or batch x N; of groups along m groups x N"},
    {OperandId::d, "--out,--d", "Write D"},
    {OperandId::aux, "--aux", "Write aux, the value before the activation"},
    {OperandId::gamma, "--row-gamma",
     "gamma of --row-op rms_norm and layer_norm: factors, N values"},
    {OperandId::beta, "--row-beta", "beta of the same, added: N values"},
    {OperandId::row_values, "--row-values",
     "Write the rows' numbers that --row-op logsumexp … variance gives"},
};

std::string option_of(OperandId id) {
  for (const FileOption& option : file_options) {
    if (option.id == id) return option.names;
  }
  return {};
}

void check_size(const char* option, const std::optional<std::uint64_t>& asked, std::uint64_t found,
                const std::string& file) {
  if (asked && *asked != found) {
    usage(std::string(option) + " is " + std::to_string(*asked) + ", but " + file + " makes it " +
          std::to_string(found));
  }
}

// The batch of the product, of which every file has one matrix or all.
std::uint64_t common_batch(const std::vector<std::pair<std::string, std::uint64_t>>& batches) {
  const std::pair<std::string, std::uint64_t>* first = nullptr;
  for (const auto& entry : batches) {
    if (entry.second == 1) continue;
    if (first != nullptr && first->second != entry.second) {
      usage(first->first + " is a batch of " + std::to_string(first->second) + ", " + entry.first +
            " one of " + std::to_string(entry.second));
    }
    first = &entry;
  }
  return first != nullptr ? first->second : 1;
}

Matrix file_matrix(const LoadedMatrix& loaded, std::uint64_t batch, const MatrixOptions& options,
                   const std::string& name) {
  if (options.type || options.layout || options.ld || options.batch_stride) {
    usage("--" + name + ": " + loaded.file +
          " says its type and layout itself; --dtype, --layout, --ld and --batch-stride are for "
          "generated matrices");
  }
  if (loaded.packed && options.alignment) {
    usage("--alignment-" + name + " is for plain matrices: " + loaded.file + " is packed");
  }
  Matrix matrix = options.matrix(loaded.type, loaded.layout);
  if (loaded.batch != batch) matrix.batch_stride = 0;  // one matrix for the whole batch
  return matrix;
}

// The epilogue, with what files say of their operands at its default.
Epilogue epilogue_of_files(const JobOptions& options) {
  const Epilogue plain;
  Epilogue out = options.epilogue.values;
  out.aux = out.aux || !options.files[OperandId::aux].empty();
  out.bias = plain.bias;
  out.bias_type = plain.bias_type;
  out.bias_batch_stride = plain.bias_batch_stride;
  out.row_scales = out.column_scales = Scales::none;
  return out;
}

void load_c(const JobOptions& options, std::uint64_t batch, Job& job) {
  Problem& p = job.problem;
  if (options.files[OperandId::c].empty()) {
    if (options.epilogue.values.beta != 0.0f)
      usage("--beta needs a matrix C: give --c, or --beta 0");
    return;
  }
  if (options.epilogue.values.beta == 0.0f)
    usage("--c is given, but --beta is 0: C would not be read");
  LoadedMatrix c = load_matrix(options.files[OperandId::c], options.bf16);
  if (c.rows != p.m || c.cols != p.n) {
    usage("C must be M x N = " + std::to_string(p.m) + " x " + std::to_string(p.n) + ", but is " +
          c.describe());
  }
  p.c = file_matrix(c, batch, options.matrices[OperandId::c], "c");
  // One row or one column is both; else C decides how D and aux lie, since the three share a
  // layout.
  if (p.m == 1 || p.n == 1) p.c.layout = options.matrices[OperandId::d].layout.value_or(p.c.layout);
  if (options.matrices[OperandId::d].layout &&
      *options.matrices[OperandId::d].layout != p.c.layout) {
    usage("--layout-d is " + std::string(to_string(*options.matrices[OperandId::d].layout)) +
          ", but " + c.file + " is " + std::string(to_string(p.c.layout)) +
          ": C, D and aux share one layout");
  }
  p.d.layout = p.c.layout;
  job.data[OperandId::c] = std::move(c.data);
}

void load_bias_file(const JobOptions& options, Job& job) {
  Problem& p = job.problem;
  const Epilogue& given = options.epilogue.values;
  const bool says_mode = options.epilogue.has("bias");
  if (options.epilogue.has("bias_type")) {
    usage("--dtype-bias is for generated matrices: one from a file says its type itself");
  }
  if (given.bias_batch_stride != 0) {
    usage("--batch-stride-bias is for generated matrices: a file's shape says how many there are");
  }
  if (options.files[OperandId::bias].empty()) {
    if (given.bias != Bias::none) usage("--bias-mode needs a bias: give --bias");
    return;
  }
  LoadedBias bias = load_bias(options.files[OperandId::bias], options.bf16);
  p.epilogue.bias = says_mode ? given.bias : Bias::along_n;
  if (p.epilogue.bias == Bias::none) usage("--bias is given, but --bias-mode is none");
  const bool along_n = p.epilogue.bias == Bias::along_n;
  const std::uint64_t needed = along_n ? product_columns(p) : p.m;
  if (bias.length != needed) {
    usage("the bias must have " +
          std::string(!along_n  ? "M = "
                      : p.gated ? "2N = "
                                : "N = ") +
          std::to_string(needed) + " values, but is " + bias.describe() +
          (along_n && bias.length == p.m ? " (did you mean --bias-mode along_m?)" : ""));
  }
  const std::uint64_t count = p.grouping ? p.grouping->groups : p.batch;
  if (bias.batch != 1 && bias.batch != count) {
    usage(bias.describe() + " has " + std::to_string(bias.batch) + " biases, there are " +
          std::to_string(count) + (p.grouping ? " groups" : " products"));
  }
  p.epilogue.bias_type = bias.type;
  p.epilogue.bias_batch_stride = bias.batch == 1 ? 0 : bias.length;
  job.data[OperandId::bias] = std::move(bias.data);
}

// Factors of the rows or the columns of a product, one vector or one for each of `count`.
std::vector<std::byte> load_factors(const std::string& option, const std::string& file,
                                    Scales given, std::uint64_t length, std::uint64_t count,
                                    Scales& scales) {
  if (given != Scales::none) {
    usage(option + "-mode is for generated matrices: a file's shape says how many there are");
  }
  if (file.empty()) return {};
  LoadedBias factors = load_bias(file, false);
  if (factors.type != DataType::f32 || factors.length != length ||
      (factors.batch != 1 && factors.batch != count)) {
    usage(option + " must be f32, " + std::to_string(length) + " values or " +
          std::to_string(count) + " x " + std::to_string(length) + ", but " + factors.describe() +
          " is " + std::string(to_string(factors.type)));
  }
  scales = factors.batch == 1 ? Scales::shared : Scales::per_matrix;
  return std::move(factors.data);
}

void load_scales(const JobOptions& options, Job& job) {
  Problem& p = job.problem;
  const Epilogue& given = options.epilogue.values;
  const std::uint64_t groups = p.grouping ? p.grouping->groups : p.batch;
  const bool by_rows = p.grouping && p.grouping->along == GroupAlong::m;
  job.data[OperandId::row_scales] =
      load_factors("--row-scales", options.files[OperandId::row_scales], given.row_scales, p.m,
                   by_rows ? 1 : groups, p.epilogue.row_scales);
  job.data[OperandId::column_scales] =
      load_factors("--column-scales", options.files[OperandId::column_scales], given.column_scales,
                   product_columns(p), groups, p.epilogue.column_scales);
}

// gamma or beta of a row reduction. The first one's type is that of both.
std::vector<std::byte> load_row_vector(const std::string& name, const std::string& file,
                                       const JobOptions& options, const Problem& p,
                                       RowReduction& rows, bool& given) {
  if (given) usage("--with-row-" + name + " is for generated matrices: give --row-" + name);
  if (file.empty()) return {};
  LoadedBias vector = load_bias(file, options.bf16);
  if (vector.batch != 1 || vector.length != p.n) {
    usage("--row-" + name + " must have N = " + std::to_string(p.n) + " values, but is " +
          vector.describe() + (vector.batch != 1 ? ": one vector is for all rows" : ""));
  }
  if (rows.gamma && vector.type != rows.vector_type) {
    usage("--row-gamma and --row-beta must have one type, but " + file + " is " +
          std::string(to_string(vector.type)) + " and " + options.files[OperandId::gamma] + " is " +
          std::string(to_string(rows.vector_type)));
  }
  rows.vector_type = vector.type;
  given = true;
  return std::move(vector.data);
}

void load_row_vectors(const JobOptions& options, Job& job) {
  Problem& p = job.problem;
  if (!p.row_reduction) {
    if (options.files[OperandId::gamma].empty() && options.files[OperandId::beta].empty()) return;
    usage("--row-gamma and --row-beta need --row-op rms_norm or layer_norm");
  }
  RowReduction& rows = *p.row_reduction;
  job.data[OperandId::gamma] =
      load_row_vector("gamma", options.files[OperandId::gamma], options, p, rows, rows.gamma);
  job.data[OperandId::beta] =
      load_row_vector("beta", options.files[OperandId::beta], options, p, rows, rows.beta);
}

void check_packed(bool wanted, const std::string& option, const LoadedMatrix& loaded) {
  if (!wanted || !loaded.packed) return;
  usage(option + " is for plain matrices: " + loaded.file + " is packed already");
}

Job job_from_files(const JobOptions& options) {
  if (options.files[OperandId::a].empty() || options.files[OperandId::b].empty()) {
    usage("--a and --b belong together: only " +
          (options.files[OperandId::a].empty() ? "--b " + options.files[OperandId::b]
                                               : "--a " + options.files[OperandId::a]) +
          " is given");
  }
  const bool halves = options.gated && options.gated->b != GatedB::separate;
  LoadedMatrix a = load_operand(options.files[OperandId::a], options.bf16, PackedOperand::a);
  LoadedMatrix b =
      load_operand(options.files[OperandId::b], options.bf16, PackedOperand::b, halves ? 2 : 1);
  check_packed(options.packs.a, "--packed-a", a);
  check_packed(options.packs.b, "--packed-b", b);
  check_packed(options.packs.codes.has_value(), "--quantised-b", b);
  if (a.cols != b.rows) {
    usage("A is M x K, B is K x N, but " + a.describe() + " has " + std::to_string(a.cols) +
          " columns and " + b.describe() + " has " + std::to_string(b.rows) + " rows");
  }
  if (a.type != b.type) {
    usage("A and B must have one type, but " + a.file + " is " + std::string(to_string(a.type)) +
          " and " + b.file + " is " + std::string(to_string(b.type)));
  }
  check_size("--m", options.m, a.rows, a.file);
  Job job;
  const std::uint64_t n = b.cols / load_b_right(options.gated, options.files[OperandId::b_right],
                                                options.bf16, b, job.data[OperandId::b_right]);
  check_size("--n", options.n, n, b.file);
  check_size("--k", options.k, a.cols, a.file);
  if (options.type && *options.type != a.type) {
    usage("--dtype is " + std::string(to_string(*options.type)) + ", but " + a.file + " is " +
          std::string(to_string(a.type)));
  }

  Problem& p = job.problem;
  p.gated = options.gated;
  p.m = a.rows;
  p.n = n;
  p.k = a.cols;
  std::optional<std::uint64_t> m = a.rows, k = a.cols;
  job.groups = options.groups.groups(m, k);
  p.grouping = job.groups.grouping;
  if (p.grouping) {
    const std::uint64_t needed = row_of(OperandId::b).shape(p).count;
    if (a.batch != 1 || b.batch != needed) {
      usage("with these groups A is one matrix and B " + std::to_string(needed) +
            ", but there are " + a.describe() + " and " + b.describe());
    }
  } else {
    p.batch = common_batch({{a.describe(), a.batch}, {b.describe(), b.batch}});
  }
  const auto count = [&p](OperandId id) { return row_of(id).shape(p).count; };
  p.a = file_matrix(a, count(OperandId::a), options.matrices[OperandId::a], "a");
  p.b = file_matrix(b, count(OperandId::b), options.matrices[OperandId::b], "b");
  p.epilogue = epilogue_of_files(options);
  p.row_reduction = options.rows.reduction();
  load_bias_file(options, job);
  load_scales(options, job);
  p.d = options.matrices[OperandId::d].matrix(default_result(p), Layout::row_major);
  load_c(options, count(OperandId::c), job);
  load_row_vectors(options, job);
  job.packed[OperandId::a] = std::move(a.packed);
  if (!job.data[OperandId::b_right].empty()) job.packed[OperandId::b_right] = b.packed;
  job.packed[OperandId::b] = std::move(b.packed);
  job.data[OperandId::a] = std::move(a.data);
  job.data[OperandId::b] = std::move(b.data);
  return job;
}

Job generated_job(const JobOptions& options) {
  for (const OperandRow& row : operand_rows()) {
    if (row.written || row.id == OperandId::a || row.id == OperandId::b) continue;
    if (options.files[row.id].empty()) continue;
    usage(option_of(row.id) + " needs --a and --b: all operands are from files, or none");
  }
  Job job;
  std::optional<std::uint64_t> m = options.m, k = options.k;
  job.groups = options.groups.groups(m, k);
  if (!m || !options.n || !k) usage("give --a and --b, or --m, --n and --k to generate them");
  Problem& p = job.problem;
  p.grouping = job.groups.grouping;
  p.m = *m;
  p.n = *options.n;
  p.gated = options.gated;
  p.k = *k;
  p.batch = options.batch;
  const DataType type = options.type.value_or(DataType::f16);
  p.a = options.matrices[OperandId::a].matrix(type, Layout::row_major);
  p.b = options.matrices[OperandId::b].matrix(type, Layout::row_major);
  p.epilogue = options.epilogue.values;
  p.epilogue.aux = p.epilogue.aux || !options.files[OperandId::aux].empty();
  p.row_reduction = options.rows.reduction();
  p.d = options.matrices[OperandId::d].matrix(default_result(p), Layout::row_major);
  p.c = options.matrices[OperandId::c].matrix(p.d.type, p.d.layout);
  return job;
}

// Files to write what there is not.
void check_results(const JobOptions& options, const Problem& p) {
  const RowReduction rows = p.row_reduction.value_or(RowReduction{});
  if (!options.files[OperandId::row_values].empty() && !is_scalar(rows.op)) {
    usage("--row-values needs --row-op " + std::string(scalar_row_ops));
  }
  if (!options.files[OperandId::d].empty() && !rows.store_d) {
    usage("--out is given, but with --without-d there is no D to write");
  }
}

}  // namespace

void JobOptions::add(CLI::App& app) {
  app.option_defaults()->group("Files");
  for (const FileOption& option : file_options) {
    app.add_option(option.names, files[option.id], option.help)->type_name("FILE");
  }
  app.add_flag("--bf16", bf16, "uint16 files hold the bits of bf16 values");
  add_problem(app);
}

void JobOptions::add_problem(CLI::App& app) {
  app.option_defaults()->group("Generated operands");
  add_size(app, "--m", m, "Rows of A and D");
  add_size(app, "--n", n, "Columns of B and D");
  add_size(app, "--k", k, "Columns of A, rows of B");
  add_size(app, "--batch", batch, "Number of products");
  add_type(app, "--dtype", type, "Element type of A and B (default f16)");
  add_f32_arithmetic(app, f32_arithmetic);
  add_fill(app, fill);
  add_size(app, "--seed", seed, "Other seeds give other values", UINT64_MAX >> 1);

  app.option_defaults()->group("Groups");
  groups.add(app);

  app.option_defaults()->group("Epilogue");
  tool::add(app, epilogue);
  add_gated(app, gated);
  app.option_defaults()->group("Row reduction");
  tool::add(app, rows);
  app.option_defaults()->group("Types and layouts");
  for (const OperandRow& row : operand_rows()) {
    if (row.matrix == nullptr || row.id == OperandId::b_right) continue;  // it lies as B does
    matrices[row.id].add(app, std::string(row.name));
  }
  packs.add(app);
}

Job make_job(const JobOptions& options) {
  Job job = options.from_files() ? job_from_files(options) : generated_job(options);
  Problem& p = job.problem;
  p.f32_arithmetic = options.f32_arithmetic;
  p.aux = options.matrices[OperandId::aux].matrix(p.d.type, p.d.layout);
  check_results(options, p);
  job.data[OperandId::offsets] = job.groups.encoded();
  job.source = p;
  const auto& packed_b = job.packed[OperandId::b];
  PackOptions packs{.a = options.packs.a || job.packed[OperandId::a],
                    .b = options.packs.b || packed_b};
  packs.codes = packed_b ? quantisation_of(packed_b->fingerprint) : options.packs.codes;
  p = packs.packed(job.source);
  return job;
}

oracle::HostOperands Job::operands() const {
  oracle::HostOperands out;
  for (const OperandRow& row : operand_rows()) out[row.id] = data[row.id].data();
  return out;
}

void generate_operands(const JobOptions& options, Job& job) {
  if (options.from_files()) return;
  const Problem& p = job.source;
  std::fprintf(stderr, "generating operands …\n");
  for (const OperandRow& row : operand_rows()) {
    // Offsets are the groups'.
    if (row.written || row.id == OperandId::offsets || !row.exists(p)) continue;
    job.data[row.id] = generate(row.id, p, options.fill, options.seed);
  }
}

}  // namespace vkgemm::tool
