// Another program, run to its end. Private to the store module.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tessera {

struct ProgramEnd {
    int code = 0;        ///< its exit code, or 128 and the number of the signal that ended it
    std::string output;  ///< what it printed, errors too; at most 64 KiB
};
enum class ProgramOutput : std::uint8_t {
    kept,   ///< in ProgramEnd
    shown,  ///< on this process's standard error, with what the program asks
};
/// Runs words[0], found in PATH, with the others as they are: no shell sees them. Its standard input is the file
/// `input`, or if empty this process's own, with which it may ask for a passphrase. Its output goes through a file in
/// `folder`. Throws unsupported if it is not installed, io, and cancelled, after which it is ended.
[[nodiscard]] ProgramEnd run_program(const std::vector<std::string>& words, const std::filesystem::path& input,
                                     const std::filesystem::path& folder, ProgramOutput shown = ProgramOutput::kept);

}  // namespace tessera
