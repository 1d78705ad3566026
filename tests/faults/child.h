// Running a program with interpose.cpp before its libc.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace tessera::faults {

/// A directory of the test's own: below it `data` is what faults are about, beside it the logs.
class Folder {
public:
    Folder();
    ~Folder();
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    [[nodiscard]] std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
    [[nodiscard]] std::filesystem::path data() const { return path_ / "data"; }
    /// Empties `data` and copies what lies in `first` to `to`. With TESSERA_FAULTS_FOREIGN set each array there also
    /// has links that lead out of `data`, and a `.tessera` with files of somebody else: see is_outside_untouched().
    void start_afresh(const std::filesystem::path& to);
    /// Whether what those links lead to is as it was. Asked after each child, too.
    [[nodiscard]] bool is_outside_untouched() const;

private:
    std::filesystem::path path_;
    std::string outside_;  ///< what lies there, when anything does
};

/// What is to happen to one of a program's system calls: see interpose.cpp.
struct Fault {
    std::string calls = {};   ///< the kinds that count; empty: all
    long at = 0;              ///< 0: nothing happens
    std::string action = {};  ///< "kill", "tear", "short", an errno
    bool sticky = false;
    bool trace = false;
};

struct Ended {
    int code = -1;  ///< what it returned; -1 when a signal ended it
    int signal = 0;
    std::string out;
    std::string error;
    std::string fired;  ///< the call at which the fault happened; empty: it ran untouched
    [[nodiscard]] std::string to_string() const;
};

/// A program that runs. Destruction waits for it.
class Child {
public:
    /// `words` is the program and its arguments. Without a fault the program runs as it is.
    Child(const Folder& folder, std::vector<std::string> words, const std::optional<Fault>& fault,
          std::string_view name = "child");
    ~Child();
    Child(Child&& o) noexcept : pid_(std::exchange(o.pid_, 0)), logs_(std::move(o.logs_)) {}
    Child& operator=(Child&&) = delete;
    void kill() const;
    [[nodiscard]] Ended wait();

private:
    pid_t pid_ = 0;
    std::filesystem::path logs_;
};

[[nodiscard]] Ended run(const Folder& folder, std::vector<std::string> words, const std::optional<Fault>& fault = {});

[[nodiscard]] std::string text_of(const std::filesystem::path& path);
/// The content of all files below a directory by their names, but for what is Tessera's own, and for locks and
/// temporary files, which a killed writer leaves and every listing skips. Empty if there is no such directory.
[[nodiscard]] std::map<std::string, std::string> files_of(const std::filesystem::path& root);

/// Of worker.cpp, and of the tessera program.
[[nodiscard]] std::string worker();
[[nodiscard]] std::string program();

/// How many of `most` are enough here: all in tests/soak, which sets TESSERA_FAULTS_FULL, else `few`.
[[nodiscard]] int rounds(int few, int most);
/// How far apart the calls are at which something happens: in tests/soak every one has its turn.
[[nodiscard]] inline long stride() {
    return rounds(5, 1);
}

}  // namespace tessera::faults
