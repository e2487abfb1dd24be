#ifdef _WIN32

#include <fcntl.h>
#include <io.h>
#include <windows.h>

#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "base/paths.hpp"
#include "base/system.hpp"

namespace vkgemm::os {
namespace {

namespace fs = std::filesystem;

std::error_code last_error() noexcept {
  return {static_cast<int>(GetLastError()), std::system_category()};
}

File open_file(const fs::path& path, DWORD access, DWORD how, DWORD flags, const char* mode,
               std::error_code& error) {
  constexpr DWORD share = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
  const HANDLE handle = CreateFileW(path.c_str(), access, share, nullptr, how, flags, nullptr);
  if (handle == INVALID_HANDLE_VALUE) {
    error = last_error();
    return nullptr;
  }
  FILE_ATTRIBUTE_TAG_INFO info{};
  if ((flags & FILE_FLAG_OPEN_REPARSE_POINT) != 0 &&
      (!GetFileInformationByHandleEx(handle, FileAttributeTagInfo, &info, sizeof info) ||
       (info.FileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0)) {
    error = std::make_error_code(std::errc::too_many_symbolic_link_levels);
    CloseHandle(handle);
    return nullptr;
  }
  const int descriptor = _open_osfhandle(reinterpret_cast<std::intptr_t>(handle), _O_BINARY);
  File file(descriptor >= 0 ? _fdopen(descriptor, mode) : nullptr);
  if (file) return file;
  error = {errno, std::generic_category()};
  if (descriptor >= 0) {
    _close(descriptor);
  } else {
    CloseHandle(handle);
  }
  return nullptr;
}

OVERLAPPED at(std::uint64_t byte) noexcept {
  OVERLAPPED overlapped{};
  overlapped.Offset = static_cast<DWORD>(byte);
  overlapped.OffsetHigh = static_cast<DWORD>(byte >> 32);
  return overlapped;
}

HANDLE handle_of(LockHandle file) noexcept { return reinterpret_cast<HANDLE>(file); }

}  // namespace

bool has_more_rights() noexcept { return false; }

std::string environment(const char* name) {
  const wchar_t* const value = _wgetenv(path_of(name).c_str());
  return value != nullptr ? utf8(value) : "";
}

File open_to_read(const fs::path& path, Links links, std::error_code& error) {
  const DWORD flags = links == Links::refuse ? FILE_FLAG_OPEN_REPARSE_POINT : FILE_ATTRIBUTE_NORMAL;
  return open_file(path, GENERIC_READ, OPEN_EXISTING, flags, "rb", error);
}

File open_to_write(const fs::path& path, std::error_code& error) {
  return open_file(path, GENERIC_WRITE, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, "wb", error);
}

File open_to_append(const fs::path& path, std::error_code& error) {
  return open_file(path, FILE_APPEND_DATA | SYNCHRONIZE, OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL, "ab",
                   error);
}

// The file's folder decides who may read it.
File create_file(const fs::path& path, bool, std::error_code& error) {
  return open_file(path, GENERIC_WRITE, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, "wb", error);
}

// While somebody reads the old file it may be that it cannot be replaced. Nobody here reads for
// long.
std::error_code replace_file(const fs::path& from, const fs::path& to) {
  constexpr std::chrono::seconds patience{2};
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!MoveFileExW(from.c_str(), to.c_str(), MOVEFILE_REPLACE_EXISTING)) {
    const DWORD code = GetLastError();
    const bool is_busy = code == ERROR_ACCESS_DENIED || code == ERROR_SHARING_VIOLATION;
    if (!is_busy || std::chrono::steady_clock::now() > end) {
      return {static_cast<int>(code), std::system_category()};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {};
}

// They get the rights of the folder that they are made in: in a user's profile, his alone.
std::error_code create_private_folders(const fs::path& folder) {
  std::error_code error;
  if (!folder.empty()) fs::create_directories(folder, error);
  return error;
}

LockHandle open_lock_file(const fs::path& path, std::error_code& error) {
  const HANDLE file =
      CreateFileW(path.c_str(), GENERIC_READ | GENERIC_WRITE,
                  FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr, OPEN_ALWAYS,
                  FILE_ATTRIBUTE_NORMAL | FILE_FLAG_OPEN_REPARSE_POINT, nullptr);
  if (file == INVALID_HANDLE_VALUE) error = last_error();
  return reinterpret_cast<LockHandle>(file);
}

void close_lock_file(LockHandle file) noexcept { CloseHandle(handle_of(file)); }

Locked lock_byte(LockHandle file, std::uint64_t byte) noexcept {
  OVERLAPPED where = at(byte);
  constexpr DWORD flags = LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY;
  if (LockFileEx(handle_of(file), flags, 0, 1, 0, &where)) return Locked::yes;
  const DWORD code = GetLastError();
  return code == ERROR_LOCK_VIOLATION || code == ERROR_IO_PENDING ? Locked::busy : Locked::no;
}

void unlock_byte(LockHandle file, std::uint64_t byte) noexcept {
  OVERLAPPED where = at(byte);
  UnlockFileEx(handle_of(file), 0, 1, 0, &where);
}

bool is_locked_elsewhere(LockHandle file, std::uint64_t byte) noexcept {
  if (lock_byte(file, byte) != Locked::yes) return true;
  unlock_byte(file, byte);
  return false;
}

bool is_terminal(std::FILE* stream) noexcept {
  const HANDLE handle = reinterpret_cast<HANDLE>(_get_osfhandle(_fileno(stream)));
  DWORD mode = 0;
  return GetConsoleMode(handle, &mode) != 0 &&
         SetConsoleMode(handle, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING) != 0;
}

void prepare_output() noexcept {
  std::setvbuf(stdout, nullptr, _IONBF, 0);  // there is nothing line by line
  static const UINT before = GetConsoleOutputCP();
  if (before == 0 || before == CP_UTF8) return;  // no console, or nothing to do
  SetConsoleOutputCP(CP_UTF8);
  std::atexit([] { SetConsoleOutputCP(before); });
}

}  // namespace vkgemm::os

#endif
