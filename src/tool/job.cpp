#include "tool/job.hpp"

#include <cstdio>
#include <utility>

#include "oracle/groups.hpp"
#include "problem/epilogue_steps.hpp"
#include "problem/fields.hpp"
#include "problem/inputs/input.hpp"
#include "problem/row_index.hpp"
#include "runtime/fingerprint.hpp"
#include "tool/tool.hpp"

namespace vkgemm::tool {
namespace {

// Sets a size that files say. An option may say the same.
void set_size(const JobOptions& options, std::string_view name, std::uint64_t& size,
              std::uint64_t found, const std::string& file) {
  if (options.product.has(name) && size != found) {
    usage("--" + std::string(name) + " is " + std::to_string(size) + ", but " + file +
          " makes it " + std::to_string(found));
  }
  size = found;
}

Matrix file_matrix(const LoadedMatrix& loaded, std::uint64_t batch, const MatrixOptions& options,
                   const std::string& name) {
  if (options.describe_a_file(loaded.type)) {
    usage("--" + name + ": " + loaded.file +
          " says its type and layout itself; --dtype, --layout, --ld and --batch-stride are for "
          "generated matrices");
  }
  if (loaded.packed && options.has("alignment")) {
    usage("--alignment-" + name + " is for plain matrices: " + loaded.file + " is packed");
  }
  Matrix matrix = options.matrix(loaded.type, loaded.layout);
  if (loaded.batch != batch) matrix.batch_stride = 0;  // one matrix for the whole batch
  return matrix;
}

// Sets the steps after the product, by options and by files of results.
void set_epilogue(const JobOptions& options, Problem& p) {
  p.epilogue = options.epilogue.values;
  p.row_reduction = row_reduction(options.rows);
  for (const OperandRow& row : operand_rows()) {
    const bool given = row.written && !options.files[row.id].empty();
    if (given && row.ask != nullptr) row.ask(p, p.a.type, false);
  }
}

void load_c(const JobOptions& options, std::uint64_t batch, Job& job) {
  const std::string& file = options.files[OperandId::c];
  Problem& p = job.problem;
  if (file.empty() || !row_of(OperandId::c).exists(p)) return;
  LoadedMatrix c = load_matrix(file, options.bf16);
  if (c.rows != p.m || c.cols != p.n) {
    usage("C must be M x N = " + std::to_string(p.m) + " x " + std::to_string(p.n) + ", but is " +
          c.describe());
  }
  p.c = file_matrix(c, batch, options.matrices[OperandId::c], "c");
  const MatrixOptions& d = options.matrices[OperandId::d];
  // One row or one column is both; else C decides how D and aux lie, since the three share a
  // layout.
  if ((p.m == 1 || p.n == 1) && d.has("layout")) p.c.layout = d.values.layout;
  if (d.has("layout") && d.values.layout != p.c.layout) {
    usage("--layout-d is " + std::string(to_string(d.values.layout)) + ", but " + c.file + " is " +
          std::string(to_string(p.c.layout)) + ": C, D and aux share one layout");
  }
  p.d.layout = p.c.layout;
  job.data[OperandId::c] = std::move(c.data);
}

// Vectors of a product: one, or one for each row, if rows have scales for groups of K.
std::uint64_t lines_of(const OperandShape& shape) { return shape.row_major() ? shape.rows : 1; }

void check_vector(const OperandRow& row, const LoadedMatrix& vector, const Problem& p) {
  const OperandShape shape = row.shape(p);
  const std::uint64_t length = shape.length(), lines = lines_of(shape), count = shape.count;
  const std::string option = option_name(row.option);
  if (vector.type != shape.matrix.type) {
    usage(option + " must be " + std::string(to_string(shape.matrix.type)) + ", but " +
          vector.file + " is " + std::string(to_string(vector.type)));
  }
  if (vector.cols != length) {
    const bool along_n = shape.row_major();
    usage(option + " must have " +
          (lines != 1      ? "for each row "
           : !along_n      ? "M = "
           : length == p.n ? "N = "
                           : "2N = ") +
          std::to_string(length) + " values, but is " + vector.describe() +
          (row.id == OperandId::bias && along_n && vector.cols == p.m
               ? " (did you mean --bias-mode along_m?)"
               : ""));
  }
  if (vector.batch != lines && vector.batch != lines * count) {
    usage(
        option +
        (lines != 1 ? " must have M = " + std::to_string(lines) + " rows" : " must be one vector") +
        (count != 1 ? " or " + std::to_string(count) + ", as there are products" : "") +
        ", but is " + vector.describe());
  }
}

// Loads the vectors that files hold, and adds them to the problem.
void load_vectors(const JobOptions& options, Job& job) {
  Problem& p = job.problem;
  for (const OperandRow& row : operand_rows()) {
    const std::string& file = options.files[row.id];
    if (file.empty() || row.matrix != nullptr || row.is_written(p)) continue;
    const bool is_off = row.id == OperandId::bias && options.epilogue.has("bias") && !row.exists(p);
    LoadedMatrix vector = tool::load_vectors(file, options.bf16);
    if (!is_off) row.ask(p, vector.type, vector.batch != lines_of(row.shape(p)));
    if (row.exists(p)) check_vector(row, vector, p);
    job.data[row.id] = std::move(vector.data);
  }
}

// Describes the tensors of steps, and loads those that no step stores. A file says the type; a
// matrix's file the layout, too.
void load_tensors(const JobOptions& options, Job& job) {
  Problem& p = job.problem;
  for (std::size_t i = 0; i < most_tensors; ++i) {
    const OperandRow& row = tensor_row(i);
    if (!row.exists(p)) continue;
    Matrix& matrix = p.*row.matrix;
    const MatrixOptions& described = options.matrices[row.id];
    matrix = described.matrix(usual_type(p.epilogue, i, p.d.type), p.d.layout);
    const std::string& file = options.files[row.id];
    if (file.empty() || row.is_written(p)) continue;
    const bool is_matrix = has_elements(p.epilogue.tensors[i]);
    LoadedMatrix loaded =
        is_matrix ? load_matrix(file, options.bf16) : tool::load_vectors(file, options.bf16);
    const OperandShape shape = row.shape(p);
    const std::uint64_t rows = is_matrix ? shape.rows : 1;
    const std::uint64_t columns = is_matrix ? shape.cols : shape.length();
    const bool fits = loaded.rows == rows && loaded.cols == columns &&
                      (loaded.batch == 1 || loaded.batch == shape.count);
    if (!fits) {
      usage(option_name(row.option) + " is " + std::string(to_string(p.epilogue.tensors[i])) +
            ": it must be " + (is_matrix ? std::to_string(rows) + " x " : "") +
            std::to_string(columns) +
            (shape.count != 1 ? ", or " + std::to_string(shape.count) + " of them" : "") +
            ", but is " + loaded.describe());
    }
    matrix = file_matrix(loaded, shape.count, described, std::string(row.name));
    if (!is_matrix) matrix.batch_stride = loaded.batch == 1 ? 0 : columns;
    job.data[row.id] = std::move(loaded.data);
  }
}

// Codes have elements of the type that they are multiplied as.
void take_type_of_codes(LoadedMatrix& b, DataType multiplied) {
  if (b.quantisation && multiplies_codes(multiplied)) b.type = multiplied;
}

// The elements of B or of its right half, and the blocks that they are from, if there are any.
void take_elements(Job& job, OperandId id, LoadedMatrix& matrix) {
  if (matrix.quantisation) {
    job.data[id] = elements_of_blocks(matrix);
    job.blocks[id] = std::move(matrix.data);
  } else {
    job.data[id] = std::move(matrix.data);
  }
}

// Loads the right half of B if it has a file of its own, as large as `b`. Returns the columns of
// `b` for each column of D.
std::uint64_t load_b_right(const std::optional<Gated>& gated, const std::string& file, bool bf16,
                           const LoadedMatrix& b, Job& job) {
  const bool separate = gated && gated->b == GatedB::separate;
  if (separate == file.empty()) {
    usage("--b-right and --gated …:separate belong together: only one is given");
  }
  if (!separate) {
    if (gated && b.cols % 2 != 0) {
      usage("--gated: B has two halves, but " + b.describe() + " has " + std::to_string(b.cols) +
            " columns");
    }
    return gated ? 2 : 1;
  }
  LoadedMatrix matrix = load_operand(file, bf16, PackedOperand::b);
  name_bytes(matrix, b.type);
  take_type_of_codes(matrix, b.type);
  if (matrix.rows != b.rows || matrix.cols != b.cols || matrix.batch != b.batch ||
      matrix.type != b.type || matrix.layout != b.layout ||
      matrix.packed.has_value() != b.packed.has_value() || matrix.quantisation != b.quantisation) {
    usage("both halves of B must have one shape, type, order and packing, but there are " +
          b.describe() + " and " + matrix.describe());
  }
  if (matrix.packed && matrix.packed->fingerprint != b.packed->fingerprint) {
    usage(file + " is not packed as " + b.file +
          " is: " + difference(matrix.packed->fingerprint, b.packed->fingerprint));
  }
  take_elements(job, OperandId::b_right, matrix);
  return 1;
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
  Job job{.problem = options.product.values};
  Problem& p = job.problem;
  if (p.outer_batch != 1) usage("--outer-batch is for generated operands");
  const bool halves = p.gated && p.gated->b != GatedB::separate;
  LoadedMatrix a = load_operand(options.files[OperandId::a], options.bf16, PackedOperand::a);
  LoadedMatrix b =
      load_operand(options.files[OperandId::b], options.bf16, PackedOperand::b, halves ? 2 : 1);
  const MatrixOptions& of_b = options.matrices[OperandId::b];
  name_bytes(a, options.type);
  name_bytes(b, of_b.has("type") ? std::optional(of_b.values.type) : options.type);
  take_type_of_codes(b, p.multiply_as.value_or(a.type));
  check_packed(options.packs.a != Packing::plain, "--packed-a", a);
  check_packed(options.packs.b != Packing::plain, "--packed-b", b);
  check_packed(options.packs.codes.has_value(), "--quantised-b", b);
  if (options.packs.codes && b.quantisation) {
    usage("--quantised-b is for elements: " + b.describe() + " holds codes, " +
          to_string(*b.quantisation));
  }
  if (a.cols != b.rows) {
    usage("A is M x K, B is K x N, but " + a.describe() + " has " + std::to_string(a.cols) +
          " columns and " + b.describe() + " has " + std::to_string(b.rows) + " rows");
  }
  if (a.type != b.type && !p.multiply_as && !is_float8(a.type) && !is_float8(b.type)) {
    usage("without --multiply-as A and B must have one type, but " + a.file + " is " +
          std::string(to_string(a.type)) + " and " + b.file + " is " +
          std::string(to_string(b.type)));
  }
  // A's rows are not M if they are gathered.
  const bool gathers = options.groups.indices.values.a_rows != 0;
  if (gathers && options.groups.along != GroupAlong::m) usage("--a-rows needs --group-along m");
  if (!gathers) set_size(options, "m", p.m, a.rows, a.file);
  const std::uint64_t n =
      b.cols / load_b_right(p.gated, options.files[OperandId::b_right], options.bf16, b, job);
  set_size(options, "n", p.n, n, b.file);
  set_size(options, "k", p.k, a.cols, a.file);
  if (options.type && *options.type != a.type) {
    usage("--dtype is " + std::string(to_string(*options.type)) + ", but " + a.file + " is " +
          std::string(to_string(a.type)));
  }

  std::optional<std::uint64_t> m = a.rows, k = a.cols;
  if (gathers) m.reset();
  if (gathers && options.product.has("m")) m = p.m;
  job.groups = options.groups.groups(m, k);
  p.m = *m;
  p.grouping = job.groups.grouping;
  if (gathers && p.grouping && p.grouping->a_rows != a.rows) {
    usage("--a-rows is " + std::to_string(p.grouping->a_rows) + ", but " + a.describe() + " has " +
          std::to_string(a.rows) + " rows");
  }
  if (p.grouping) {
    const std::uint64_t needed = row_of(OperandId::b).shape(p).count;
    if (a.batch != 1 || b.batch != needed) {
      usage("with these groups A is one matrix and B " + std::to_string(needed) +
            ", but there are " + a.describe() + " and " + b.describe());
    }
  } else {
    if (a.batch != 1 && b.batch != 1 && a.batch != b.batch) {
      usage(a.describe() + " is a batch of " + std::to_string(a.batch) + ", " + b.describe() +
            " one of " + std::to_string(b.batch));
    }
    p.batch = a.batch != 1 ? a.batch : b.batch;
  }
  const auto count = [&p](OperandId id) { return row_of(id).shape(p).count; };
  p.a = file_matrix(a, count(OperandId::a), options.matrices[OperandId::a], "a");
  p.b = file_matrix(b, count(OperandId::b), options.matrices[OperandId::b], "b");
  refuse_generated(options.epilogue);
  refuse_generated(options.rows);
  set_epilogue(options, p);
  load_vectors(options, job);
  const bool has_codes =
      b.quantisation || options.packs.codes || (b.packed && quantisation_of(b.packed->fingerprint));
  p.d = options.matrices[OperandId::d].matrix(default_result(p, has_codes), Layout::row_major);
  load_c(options, count(OperandId::c), job);
  load_tensors(options, job);
  job.packed[OperandId::a] = std::move(a.packed);
  if (!job.data[OperandId::b_right].empty()) job.packed[OperandId::b_right] = b.packed;
  job.packed[OperandId::b] = std::move(b.packed);
  job.data[OperandId::a] = std::move(a.data);
  take_elements(job, OperandId::b, b);
  job.blocks_of = b.quantisation;
  return job;
}

Job generated_job(const JobOptions& options) {
  const Problem asked{.epilogue = options.epilogue.values};
  for (const OperandRow& row : operand_rows()) {
    if (row.is_written(asked) || row.id == OperandId::a || row.id == OperandId::b) continue;
    if (options.files[row.id].empty()) continue;
    usage(option_name(row.option) + " needs --a and --b: all operands are from files, or none");
  }
  Job job{.problem = options.product.values};
  Problem& p = job.problem;
  std::optional<std::uint64_t> m, k;
  if (options.product.has("m")) m = p.m;
  if (options.product.has("k")) k = p.k;
  job.groups = options.groups.groups(m, k);
  if (!m || !options.product.has("n") || !k) {
    usage("give --a and --b, or --m, --n and --k to generate them");
  }
  p.grouping = job.groups.grouping;
  p.m = *m;
  p.k = *k;
  const DataType type = options.type.value_or(DataType::f16);
  p.a = options.matrices[OperandId::a].matrix(type, Layout::row_major);
  p.b = options.matrices[OperandId::b].matrix(type, Layout::row_major);
  set_epilogue(options, p);
  p.d = options.matrices[OperandId::d].matrix(default_result(p, options.packs.codes.has_value()),
                                              Layout::row_major);
  p.c = options.matrices[OperandId::c].matrix(p.d.type, p.d.layout);
  load_tensors(options, job);
  return job;
}

// Refuses files of operands that the problem doesn't have, and operands without a file.
void check_files(const JobOptions& options, const Problem& p) {
  for (const OperandRow& row : operand_rows()) {
    if (row.option == nullptr) continue;
    const bool given = !options.files[row.id].empty(), exists = row.exists(p);
    const std::string option = option_name(row.option);
    if (given && !exists) usage(option + " needs " + row.needs);
    if (exists && !given && !row.is_written(p) && options.from_files()) {
      usage(std::string(row.name) + " has no file: give " + option);
    }
  }
}

}  // namespace

void JobOptions::add(CLI::App& app) {
  app.option_defaults()->group("Files");
  for (const OperandRow& row : operand_rows()) {
    if (row.option == nullptr) continue;  // offsets are an option of groups
    app.add_option(row.option, files[row.id], row.help)->type_name("FILE");
  }
  app.add_flag("--bf16", bf16, "uint16 files hold the bits of bf16 values");
  add_problem(app);
}

void JobOptions::add_problem(CLI::App& app) {
  app.option_defaults()->group("Generated operands");
  tool::add(app, product,
            {"m", "n", "k", "batch", "outer_batch", "sum_batch", "f32_arithmetic", "multiply_as",
             "a_group_k"});
  add_type(app, "--dtype", type, "Element type of A and B (default f16)", is_element);
  add_fill(app, fill);
  add_size(app, "--seed", seed, "Other seeds give other values", UINT64_MAX >> 1);

  app.option_defaults()->group("Groups");
  groups.add(app);

  app.option_defaults()->group("Epilogue");
  tool::add(app, epilogue);
  tool::add(app, product, {"gated"});
  app.option_defaults()->group("Row reduction");
  tool::add(app, rows);
  app.option_defaults()->group("Types and layouts");
  for (const OperandRow& row : operand_rows()) {
    if (row.matrix == nullptr || row.id == OperandId::b_right) continue;  // it lies as B does
    matrices[row.id].add(app, row.name);
  }
  packs.add(app);
}

void JobOptions::add_plan(CLI::App& app) {
  tool::add(app, product, {"split_k", "max_dispatch_ms", "estimate_scale"});
}

Job make_job(const JobOptions& options) {
  Job job = options.from_files() ? job_from_files(options) : generated_job(options);
  Problem& p = job.problem;
  const bool has_codes = p.row_reduction && p.row_reduction->op == RowOp::quantise;
  p.aux = options.matrices[OperandId::aux].matrix(has_codes ? DataType::f32 : p.d.type, p.d.layout);
  check_files(options, p);
  for (const OperandRow& row : operand_rows()) {
    if (row.is_integer) job.data[row.id] = integers_of(row.id, p, job.groups.offsets);
  }
  job.source = p;
  const auto& packed_b = job.packed[OperandId::b];
  PackOptions packs = options.packs;
  if (const auto& packed_a = job.packed[OperandId::a]) packs.a = packing_of(packed_a->fingerprint);
  if (packed_b) {
    packs.b = packing_of(packed_b->fingerprint);
    packs.codes = quantisation_of(packed_b->fingerprint);
  }
  if (job.blocks_of) packs.codes = job.blocks_of;
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
    if (row.is_written(p) || row.is_integer || !row.exists(p)) continue;
    job.data[row.id] = generate(row.id, p, options.fill, options.seed);
  }
}

}  // namespace vkgemm::tool
