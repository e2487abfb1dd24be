#include "self_test/verdict_store.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "base/paths.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "vkgemm/self_test.hpp"

namespace vkgemm {
namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t writers_byte = 0;
// A change takes far less. Who waited this long goes on: a lost verdict is found again.
constexpr std::chrono::seconds writers_patience{2};

// Held while a file is changed, if it can be.
class WritersLock {
 public:
  explicit WritersLock(LockFile* file)
      : file_(file != nullptr && file->lock(writers_byte, writers_patience) ? file : nullptr) {}
  ~WritersLock() {
    if (file_ != nullptr) file_->unlock(writers_byte);
  }
  WritersLock(const WritersLock&) = delete;
  WritersLock& operator=(const WritersLock&) = delete;

 private:
  LockFile* file_;
};

// An offset in a file.
std::uint64_t random_owner() { return (random_number() >> 2) + 1; }

void make_folder_of(const std::filesystem::path& file) {
  // What is wrong with the folder shows when the file is written.
  (void)os::create_private_folders(file.parent_path());
}

Result<void> write(const std::filesystem::path& file, const VerdictFile& content,
                   const DeviceCaps& caps) {
  const std::string text = verdict_file_text(content, caps);
  const auto refused = [&](std::string_view why) {
    return invalid_argument(concat(utf8(file), ": these verdicts cannot be read again: ", why));
  };
  if (text.size() > most_bytes) {
    return refused(concat("they take ", text.size(), " bytes, at most ", most_bytes, " are read"));
  }
  if (const auto parsed = parse_verdict_file(text, caps); !parsed) {
    return refused(parsed.error().message);
  }
  return write_file(file, std::as_bytes(std::span(text)), os::Links::refuse);
}

}  // namespace

VerdictStore::VerdictStore(std::filesystem::path file, const DeviceCaps& caps)
    : file_(std::move(file)), caps_(caps) {}

LockFile* VerdictStore::lock_file() {
  if (!lock_file_ && has_lock_) {
    std::filesystem::path path = file_;
    path += ".lock";
    Result<LockFile> opened = LockFile::open(path);
    has_lock_ = opened.has_value();
    if (opened) lock_file_.emplace(std::move(*opened));
  }
  return lock_file_ ? &*lock_file_ : nullptr;
}

AttemptView VerdictStore::view() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return {.now = std::chrono::duration_cast<std::chrono::seconds>(since_1970).count(),
          .is_running = [this](std::uint64_t owner) {
            const LockFile* const lock = lock_file();
            return (owner_ != 0 && owner == owner_) || lock == nullptr ||
                   lock->is_held_by_another(owner);
          }};
}

Result<VerdictFile> VerdictStore::read_with(const AttemptView& view) {
  const Result<std::vector<std::byte>> bytes = read_file(file_, most_bytes, os::Links::refuse);
  if (!bytes) return bytes.error();
  if (bytes->empty()) return VerdictFile{};
  Result<VerdictFile> content =
      parse_verdict_file({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, caps_);
  if (!content) {
    return Error{content.error().status, concat(utf8(file_), ": ", content.error().message)};
  }
  if (!content->attempts.empty()) settle(*content, view);
  return content;
}

Result<VerdictFile> VerdictStore::read() {
  return without_exceptions([&] { return read_with(view()); });
}

template <class Change>
Result<void> VerdictStore::change(const Change& change) {
  return without_exceptions([&]() -> Result<void> {
    make_folder_of(file_);
    const WritersLock lock(lock_file());
    const AttemptView view = this->view();
    Result<VerdictFile> content = read_with(view);
    if (!content) return content.error();
    if (!content->other.empty()) *content = {};
    change(*content, view);
    return write(file_, *content, caps_);
  });
}

Result<void> VerdictStore::add(std::span<const Verdict> found) {
  return change([&](VerdictFile& content, const AttemptView&) { merge(content, found, owner_); });
}

Result<std::uint32_t> VerdictStore::begin_attempt(const KernelKind& kind) {
  std::uint32_t count = 1;
  const Result<void> changed = change([&](VerdictFile& content, const AttemptView& view) {
    // Without a lock nobody could ever say that it is over.
    if (lock_file() == nullptr) return;
    if (owner_ == 0) {
      const std::uint64_t owner = random_owner();
      if (!lock_file()->lock(owner)) return;
      owner_ = owner;
    }
    count = vkgemm::begin_attempt(content, kind, owner_, view).count;
  });
  if (!changed) return changed.error();
  return count;
}

Result<std::vector<Verdict>> load_verdicts(const std::filesystem::path& file,
                                           const DeviceCaps& caps) {
  return without_exceptions([&]() -> Result<std::vector<Verdict>> {
    Result<VerdictFile> content = VerdictStore(file, caps).read();
    if (!content) return content.error();
    if (!content->other.empty()) {
      return Error{Status::io_error, concat(utf8(file), ": ", content->other)};
    }
    return std::move(content->verdicts);
  });
}

Result<void> save_verdicts(const std::filesystem::path& file, const DeviceCaps& caps,
                           std::span<const Verdict> verdicts) {
  return without_exceptions([&]() -> Result<void> {
    make_folder_of(file);
    return write(file, {.verdicts = {verdicts.begin(), verdicts.end()}}, caps);
  });
}

}  // namespace vkgemm
