// What commands note in the log of what they change (.tessera/log).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <tessera/edit.h>

namespace CLI {
class App;
}

namespace tessera::cli {

/// A command, quoted for a shell: "tessera set grid.zarr '0:10, :' 5".
[[nodiscard]] std::string command_text(const std::vector<std::string>& words);

/// Where a command changes or makes something, as it was typed; nullopt if it changes nothing.
[[nodiscard]] std::optional<std::filesystem::path> changed_place(const CLI::App& command);

/// The directory that a command is about to change, and its log if that may be replaced with it.
class ChangeNote {
public:
    /// `command` is parsed, from `words`. Does nothing if the command changes no directory.
    ChangeNote(const CLI::App& command, std::vector<std::string> words);
    /// Notes the command in the log, once it has ended with an exit code. Never fails.
    void write(int code) const noexcept;

private:
    std::vector<std::string> words_;
    std::optional<std::filesystem::path> directory_;
    std::filesystem::path left_;   ///< the group that a node is moved out of; empty if none
    std::vector<LogLine> before_;  ///< the lines of the log so far, if the directory may be replaced
    bool removes_ = false;         ///< the command removes what is at `directory_`
    bool finishes_ = false;        ///< it changes something only where it ends with 0
};

}  // namespace tessera::cli
