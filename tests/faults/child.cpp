#include "child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <tessera/byte_io.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace tessera::faults {

namespace fs = std::filesystem;

namespace {

/// What a hostile or careless sender leaves and no command refuses: files and a link in `.tessera`. (A chunk that is a
/// link out of its array is refused.)
void add_foreign(const fs::path& array, const fs::path& outside) {
    fs::create_directories(array / ".tessera/foreign");
    std::ofstream(array / ".tessera/foreign/journal") << "not ours";
    fs::create_directory_symlink(outside, array / ".tessera/elsewhere");
}

/// The names and bytes of the files in a folder.
std::string contents(const fs::path& folder) {
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(folder)) {
        files.push_back(entry.path().filename().string() + ' ' + text_of(entry.path()));
    }
    std::ranges::sort(files);
    return fmt::format("{}", fmt::join(files, "\n"));
}

}  // namespace

Folder::Folder() {
    // In memory where nothing else is asked for: no test here depends on a disk, and all are slow on a busy one.
    const bool memory = std::getenv("TMPDIR") == nullptr && ::access("/dev/shm", W_OK | X_OK) == 0;
    std::string name = ((memory ? fs::path("/dev/shm") : fs::temp_directory_path()) / "tessera-faults-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path_ = fs::canonical(name);
    fs::create_directory(data());
}

void Folder::start_afresh(const fs::path& to) {
    fs::remove_all(data());
    fs::create_directory(data());
    fs::copy(path_ / "first", to, fs::copy_options::recursive);
    if (std::getenv("TESSERA_FAULTS_FOREIGN") == nullptr) return;
    const fs::path outside = path_ / "outside";
    fs::remove_all(outside);
    fs::create_directory(outside);
    std::ofstream(outside / "file") << "somebody else's";
    if (to != data()) {
        add_foreign(to, outside);
    } else {
        for (const auto& entry : fs::directory_iterator(to)) {
            if (entry.is_directory()) add_foreign(entry.path(), outside);
        }
    }
    outside_ = contents(outside);
}

bool Folder::is_outside_untouched() const {
    return outside_.empty() || contents(path_ / "outside") == outside_;
}

Folder::~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

std::string Ended::to_string() const {
    return fmt::format("code {}, signal {}, fault at: {}\n{}{}", code, signal, fired, out, error);
}

std::string text_of(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

Child::Child(const Folder& folder, std::vector<std::string> words, const std::optional<Fault>& fault,
             std::string_view name)
    : logs_(folder / name) {
    fs::remove_all(logs_);
    fs::create_directory(logs_);
    std::vector<std::string> settings;
    if (fault) {
        settings = {"LD_PRELOAD=" TESSERA_FAULTS_INTERPOSE,
                    "FAULTS_BELOW=" + folder.data().string(),
                    "FAULTS_CALLS=" + fault->calls,
                    "FAULTS_AT=" + std::to_string(fault->at),
                    "FAULTS_DO=" + fault->action,
                    "FAULTS_STICKY=" + std::string(fault->sticky ? "1" : "0"),
                    "FAULTS_FIRED=" + (logs_ / "fired").string(),
                    "FAULTS_ACKS=" + (logs_ / "out").string()};
        if (fault->trace) settings.push_back("FAULTS_TRACE=" + (logs_ / "trace").string());
    }
    std::vector<char*> environment;
    for (std::string& setting : settings) environment.push_back(setting.data());
    for (char** variable = environ; *variable != nullptr; ++variable) environment.push_back(*variable);
    environment.push_back(nullptr);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);

    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    constexpr int flags = O_WRONLY | O_CREAT | O_TRUNC;
    ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, (logs_ / "out").c_str(), flags, 0666);
    ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, (logs_ / "error").c_str(), flags, 0666);
    const int error = ::posix_spawn(&pid_, arguments[0], &files, nullptr, arguments.data(), environment.data());
    ::posix_spawn_file_actions_destroy(&files);
    if (error != 0) throw std::runtime_error("cannot run " + words[0]);
}

Child::~Child() {
    if (pid_ > 0) (void)wait();
}

void Child::kill() const {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
}

Ended Child::wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    Ended ended;
    if (WIFEXITED(status)) ended.code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
    ended.out = text_of(logs_ / "out");
    ended.error = text_of(logs_ / "error");
    ended.fired = text_of(logs_ / "fired");
    return ended;
}

Ended run(const Folder& folder, std::vector<std::string> words, const std::optional<Fault>& fault) {
    Ended ended = Child(folder, std::move(words), fault).wait();
    EXPECT_TRUE(folder.is_outside_untouched()) << ended.to_string();
    return ended;
}

std::map<std::string, std::string> files_of(const fs::path& root) {
    std::map<std::string, std::string> files;
    if (!fs::is_directory(root)) return files;
    for (auto entry = fs::recursive_directory_iterator(root); entry != fs::recursive_directory_iterator(); ++entry) {
        if (entry->path().filename() == ".tessera") {
            entry.disable_recursion_pending();
        } else if (const std::string name = entry->path().filename(); entry->is_regular_file() &&
                                                                      !name.starts_with(temporary_prefix) &&
                                                                      !name.ends_with(".tessera-lock")) {
            files.emplace(entry->path().lexically_relative(root), text_of(entry->path()));
        }
    }
    return files;
}

std::string worker() {
    return TESSERA_FAULTS_WORKER;
}

std::string program() {
    return TESSERA_FAULTS_PROGRAM;
}

int rounds(int few, int most) {
    return std::getenv("TESSERA_FAULTS_FULL") == nullptr ? few : most;
}

}  // namespace tessera::faults
