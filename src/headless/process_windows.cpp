#ifdef _WIN32

#include <fcntl.h>
#include <io.h>
#include <windows.h>

#include <shellapi.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <thread>
#include <utility>

#include "base/paths.hpp"
#include "headless/process.hpp"

namespace vkgemm::headless {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto time_to_die = std::chrono::seconds(5);
constexpr auto between_looks = std::chrono::milliseconds(2);
constexpr DWORD pipe_bytes = 1 << 16;

Error failure(const char* what) {
  const std::error_code error(static_cast<int>(GetLastError()), std::system_category());
  return Error{Status::io_error, std::string(what) + ": " + error.message()};
}

class Handle {
 public:
  Handle() = default;
  explicit Handle(HANDLE handle) noexcept : handle_(handle) {}
  Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Handle() {
    if (handle_ != nullptr) CloseHandle(handle_);
  }
  HANDLE get() const noexcept { return handle_; }

 private:
  HANDLE handle_ = nullptr;
};

// As programs take a command line apart: quotes around each argument, backslashes before a quote
// twice.
std::wstring as_argument(std::wstring_view argument) {
  std::wstring text = L"\"";
  std::size_t backslashes = 0;
  for (const wchar_t c : argument) {
    if (c == L'"') text.append(backslashes + 1, L'\\');
    backslashes = c == L'\\' ? backslashes + 1 : 0;
    text += c;
  }
  return text.append(backslashes, L'\\') + L"\"";
}

std::wstring own_program() {
  std::wstring path(32768, L'\0');  // the longest that there is
  path.resize(GetModuleFileNameW(nullptr, path.data(), static_cast<DWORD>(path.size())));
  return path;
}

ProcessEnd describe(DWORD code) {
  if (code == 0) return {};
  constexpr DWORD exceptions = 0xC0000000;
  if (code < exceptions) return {ProcessEnd::How::bad, "exit code " + std::to_string(code)};
  std::array<char, 8> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), code, 16).ptr;
  return {code == static_cast<DWORD>(STATUS_CONTROL_C_EXIT) ? ProcessEnd::How::interrupted
                                                            : ProcessEnd::How::crashed,
          "exception 0x" + std::string(digits.data(), end)};
}

// The handles that a process inherits, and no others, which another thread may just have made.
class Inherited {
 public:
  explicit Inherited(std::vector<HANDLE> handles) : handles_(std::move(handles)) {
    std::erase_if(handles_, [](HANDLE handle) {
      return handle == nullptr || handle == INVALID_HANDLE_VALUE ||
             !SetHandleInformation(handle, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT);
    });
    SIZE_T bytes = 0;
    InitializeProcThreadAttributeList(nullptr, 1, 0, &bytes);
    memory_.resize(bytes);
    InitializeProcThreadAttributeList(list(), 1, 0, &bytes);
    UpdateProcThreadAttribute(list(), 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, handles_.data(),
                              handles_.size() * sizeof(HANDLE), nullptr, nullptr);
  }
  Inherited(const Inherited&) = delete;
  Inherited& operator=(const Inherited&) = delete;
  ~Inherited() { DeleteProcThreadAttributeList(list()); }

  LPPROC_THREAD_ATTRIBUTE_LIST list() {
    return reinterpret_cast<LPPROC_THREAD_ATTRIBUTE_LIST>(memory_.data());
  }

 private:
  std::vector<HANDLE> handles_;
  std::vector<std::byte> memory_;
};

}  // namespace

struct Process::Impl {
  Handle input, output, process;  // ends of pipes
  std::string unsent = {};        // of the input
  DWORD id = 0;
  std::optional<ProcessEnd> ended = {};
  bool gave_up = false;

  void send_input() {
    if (unsent.empty()) return;
    DWORD written = 0;
    const auto bytes = static_cast<DWORD>(std::min<std::size_t>(unsent.size(), pipe_bytes / 2));
    if (!WriteFile(input.get(), unsent.data(), bytes, &written, nullptr)) {
      unsent.clear();  // nobody reads it
    }
    unsent.erase(0, written);
  }
};

Process::Process(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Process::Process(Process&&) noexcept = default;
Process::~Process() {
  if (impl_ != nullptr) end();
}

// In argv they are in the code page of the system, which may not have all characters.
const std::vector<std::string>& own_arguments() {
  static const std::vector<std::string> arguments = [] {
    std::vector<std::string> all;
    int count = 0;
    wchar_t** const words = CommandLineToArgvW(GetCommandLineW(), &count);
    for (int i = 1; i < count; ++i) all.push_back(utf8(words[i]));
    LocalFree(static_cast<void*>(words));
    return all;
  }();
  return arguments;
}

void remember_command_line(int, char**) {
  // A crash is to be told of here, not in a window. The programs that are started inherit this.
  SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX);
}

Result<Process> Process::start(const std::vector<std::string>& arguments, std::string input) {
  HANDLE ends[4] = {};
  if (!CreatePipe(&ends[0], &ends[1], nullptr, pipe_bytes)) return failure("CreatePipe");
  const Handle childs_input(ends[0]);
  auto impl = std::make_unique<Impl>();
  impl->input = Handle(ends[1]);
  if (!CreatePipe(&ends[2], &ends[3], nullptr, pipe_bytes)) return failure("CreatePipe");
  impl->output = Handle(ends[2]);
  const Handle childs_output(ends[3]);
  DWORD without_waiting = PIPE_READMODE_BYTE | PIPE_NOWAIT;
  if (!SetNamedPipeHandleState(impl->input.get(), &without_waiting, nullptr, nullptr)) {
    return failure("SetNamedPipeHandleState");
  }

  std::wstring program = own_program();
  std::wstring line = as_argument(program);
  for (const std::string& argument : arguments)
    line += L" " + as_argument(path_of(argument).native());
  const HANDLE error = GetStdHandle(STD_ERROR_HANDLE);
  Inherited inherited({childs_input.get(), childs_output.get(), error});
  STARTUPINFOEXW info{};
  info.StartupInfo.cb = sizeof info;
  info.StartupInfo.dwFlags = STARTF_USESTDHANDLES;
  info.StartupInfo.hStdInput = childs_input.get();
  info.StartupInfo.hStdOutput = childs_output.get();
  info.StartupInfo.hStdError = error;
  info.lpAttributeList = inherited.list();
  PROCESS_INFORMATION started{};
  if (!CreateProcessW(program.c_str(), line.data(), nullptr, nullptr, TRUE,
                      EXTENDED_STARTUPINFO_PRESENT, nullptr, nullptr, &info.StartupInfo,
                      &started)) {
    return failure("CreateProcess");
  }
  CloseHandle(started.hThread);
  impl->process = Handle(started.hProcess);
  impl->id = started.dwProcessId;
  impl->unsent = std::move(input);
  return Process(std::move(impl));
}

long Process::id() const noexcept { return static_cast<long>(impl_->id); }

// Pipes cannot be waited for, so they are looked at.
std::optional<std::string> Process::read(std::chrono::milliseconds patience) {
  const auto over = Clock::now() + patience;
  for (;;) {
    impl_->send_input();
    DWORD bytes = 0;
    if (!PeekNamedPipe(impl_->output.get(), nullptr, 0, nullptr, &bytes, nullptr)) {
      return std::string();
    }
    if (bytes != 0) {
      std::string text(std::min(bytes, pipe_bytes), '\0');
      if (!ReadFile(impl_->output.get(), text.data(), static_cast<DWORD>(text.size()), &bytes,
                    nullptr)) {
        return std::string();
      }
      text.resize(bytes);
      return text;
    }
    if (Clock::now() >= over) return std::nullopt;
    std::this_thread::sleep_for(between_looks);
  }
}

std::optional<ProcessEnd> Process::wait(std::chrono::duration<double> patience) {
  if (impl_->ended) return impl_->ended;
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(patience);
  DWORD code = 0;
  if (WaitForSingleObject(impl_->process.get(), static_cast<DWORD>(milliseconds.count())) ==
          WAIT_OBJECT_0 &&
      GetExitCodeProcess(impl_->process.get(), &code)) {
    impl_->ended = describe(code);
  }
  return impl_->ended;
}

bool Process::end() {
  if (impl_->gave_up) return false;
  if (wait(std::chrono::seconds(0))) return true;
  TerminateProcess(impl_->process.get(), 1);
  impl_->gave_up = !wait(time_to_die).has_value();
  return !impl_->gave_up;
}

os::File take_output() {
  std::fflush(stdout);
  const int copy = _dup(_fileno(stdout));
  _dup2(_fileno(stderr), _fileno(stdout));
  if (copy >= 0) _setmode(copy, _O_BINARY);
  return os::File(copy >= 0 ? _fdopen(copy, "wb") : nullptr);
}

}  // namespace vkgemm::headless

#endif
