// system.hpp: what is asked of the operating system and has no word in C++. Each function has two
// bodies, in system_posix.cpp and system_windows.cpp. Processes: headless/process.hpp.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

namespace vkgemm::os {

// True in a process that has more rights than whoever started it (set-user-ID, file capabilities).
// Windows has no such programs.
bool has_more_rights() noexcept;

// The variable of the environment, empty if there is none.
std::string environment(const char* name);

// A path that ends in a symbolic link is followed or refused. Links before its end are followed.
enum class Links { follow, refuse };

struct CloseFile {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

// Each gives null and an error if the file cannot be opened. No other program that is started
// meanwhile inherits it, and others may replace it.

// With Links::refuse only a regular file is opened.
File open_to_read(const std::filesystem::path& path, Links links, std::error_code& error);
// Anything that is there. Nothing is cut off.
File open_to_write(const std::filesystem::path& path, std::error_code& error);
// Made where there is none.
File open_to_append(const std::filesystem::path& path, std::error_code& error);
// A new file: whatever is there already, a link too, is an error. Others may read it, as far as
// the system's defaults go, unless it is the owner's only.
File create_file(const std::filesystem::path& path, bool owner_only, std::error_code& error);

// The file takes the other one's name and place at once.
std::error_code replace_file(const std::filesystem::path& from, const std::filesystem::path& to);

// Makes the folder and those above it, as far as they are missing, for the owner alone.
std::error_code create_private_folders(const std::filesystem::path& folder);

// A file whose bytes are locked, made where there is none. A lock excludes all other handles,
// those of this process, too, and ends with its handle, so with the process.
using LockHandle = std::intptr_t;
inline constexpr LockHandle no_lock_handle = -1;
LockHandle open_lock_file(const std::filesystem::path& path, std::error_code& error);
void close_lock_file(LockHandle file) noexcept;
enum class Locked { yes, no, busy };
Locked lock_byte(LockHandle file, std::uint64_t byte) noexcept;
void unlock_byte(LockHandle file, std::uint64_t byte) noexcept;
// True if another handle holds it, or if that cannot be told. This one must not.
bool is_locked_elsewhere(LockHandle file, std::uint64_t byte) noexcept;

// True if it is a terminal that understands the escape sequences of ECMA-48.
bool is_terminal(std::FILE* stream) noexcept;

// Before anything is printed: terminals take it for UTF-8, and in a pipe, too, lines stand in the
// order in which they were printed, those of standard error among them.
void prepare_output() noexcept;

}  // namespace vkgemm::os
