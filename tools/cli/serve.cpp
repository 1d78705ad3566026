// tessera serve
#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <server.h>
#include <tessera/error.h>
#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "command.h"
#include "options.h"
#include "report.h"

namespace tessera::cli {

namespace {

struct ServeOptions {
    std::vector<std::string> paths, hosts, origins;
    std::string port = "0", bind = "127.0.0.1";
    bool no_token = false;
    bool open = false;
};

/// A page that leads to a URL, in a file that only this user can read. The URL holds the token, and every user of the
/// machine can read command lines. Removed at the end.
class Signpost {
public:
    explicit Signpost(const std::string& url) {
        const char* const run = std::getenv("XDG_RUNTIME_DIR");
        std::error_code ignored;
        const bool private_folder = run != nullptr && std::filesystem::is_directory(run, ignored);
        path_ = (private_folder ? std::filesystem::path(run) : std::filesystem::temp_directory_path()) /
                "tessera-XXXXXX.html";
        const int fd = ::mkostemps(path_.data(), 5, O_CLOEXEC);
        if (fd < 0) throw io_error("making", path_, errno);
        const std::string page = fmt::format(
            "<!doctype html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0; url={0}\">"
            "<title>Tessera</title><a href=\"{0}\">Tessera</a>\n",
            url);
        const bool written = ::write(fd, page.data(), page.size()) == static_cast<ssize_t>(page.size());
        ::close(fd);
        if (!written) throw io_error("writing", path_, errno);
    }
    ~Signpost() { ::unlink(path_.c_str()); }
    Signpost(const Signpost&) = delete;
    Signpost& operator=(const Signpost&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    std::string path_;
};

/// Has the desktop open a file. The browser inherits neither descriptors nor blocked signals.
void open_in_browser(Session& session, const std::string& path) {
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
    }
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    std::string program = "xdg-open";
    std::string argument = path;
    const std::array<char*, 3> words{program.data(), argument.data(), nullptr};
    ::signal(SIGCHLD, SIG_IGN);  // it leaves no zombie
    const int error = ::posix_spawnp(nullptr, "xdg-open", &files, &attributes, words.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    if (error != 0) session.note("xdg-open was not found: open the URL yourself");
}

void tell(Session& session, const serve::Server& server, const ServeOptions& o) {
    if (session.options().json) {
        Value value = Value::object();
        value.set("url", server.url());
        value.set("urls", Value(Value::Array(server.urls().begin(), server.urls().end())));
        value.set("port", server.port());
        Value paths = Value::array();
        for (const std::string& path : o.paths) paths.push_back(path_value(path));
        value.set("paths", std::move(paths));
        print(json_text(value) + "\n");
    } else {
        for (const std::string& url : server.urls()) print(url + "\n");
    }
    flush_output();
    if (o.no_token) {
        session.note(server.is_loopback()
                         ? "without a token every user of this machine reads what is served"
                         : "without a token, anybody who can connect to this machine can read everything served");
    }
    if (server.is_loopback()) return;
    session.note(
        "data and token are sent over the network unencrypted; clients that use another name for this machine need "
        "--host NAME");
}

void wait_until_stopped(const std::stop_token& stop, std::optional<Signpost>& signpost) {
    std::mutex mutex;
    std::condition_variable_any changed;
    std::unique_lock lock(mutex);
    const auto never = [] { return false; };
    // After that time the browser has read the page, or nobody will.
    if (signpost) changed.wait_for(lock, stop, std::chrono::seconds(20), never);
    signpost.reset();
    changed.wait(lock, stop, never);
}

int serve_paths(Session& session, const ServeOptions& o) {
    const IoOptions io = session.io();
    const serve::ServedOptions served{.io = {.threads = session.options().threads},
                                      .max_memory = session.options().max_memory,
                                      .follow_links = session.options().follow_links};
    const serve::ServerOptions options{.bind = o.bind,
                                       .port = parse_number("--port", o.port, 0, 65535),
                                       .token = !o.no_token,
                                       .hosts = o.hosts,
                                       .origins = o.origins,
                                       .returns_memory = true};
    session.clear_progress();
#ifdef __GLIBC__
    // Each heap of the C library keeps freed memory, which is not counted; by default each thread has one.
    (void)::mallopt(M_ARENA_MAX, 2);
    (void)::mallopt(M_TRIM_THRESHOLD, 1 << 20);
#endif
    serve::Server server(o.paths, served, options);
    tell(session, server, o);
    std::optional<Signpost> signpost;
    if (o.open) {
        signpost.emplace(server.url());
        open_in_browser(session, signpost->path());
    }
    wait_until_stopped(io.stop, signpost);
    server.close();
    return exit_done;
}

}  // namespace

Run declare_serve(CLI::App& app) {
    auto o = std::make_shared<ServeOptions>();
    app.add_option("PATH", o->paths,
                   "arrays, groups, zips, array files, or directories of them; several appear below\ntheir names")
        ->required()
        ->option_text(" ");
    app.add_option("--port", o->port, "the port (default: a free one)")->option_text("N");
    app.add_flag("--open", o->open, "open the page in the browser");
    app.add_option("--bind", o->bind,
                   "the address to listen on (default 127.0.0.1: nobody reaches it from another machine)")
        ->option_text("ADDRESS");
    app.add_option("--host", o->hosts,
                   "another host name that clients use for this machine, as in http://NAME:PORT/ (repeatable)")
        ->option_text("NAME")
        ->allow_extra_args(false);
    app.add_option("--allow-origin", o->origins,
                   "let pages of this origin read, as https://viewer.example (repeatable)")
        ->option_text("ORIGIN")
        ->allow_extra_args(false);
    app.add_flag("--no-token", o->no_token, "URLs without a token: every user of this machine may read");
    return [o](Session& session) { return serve_paths(session, *o); };
}

}  // namespace tessera::cli
