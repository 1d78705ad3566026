// tessera bug-report
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <link.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <tessera/file_system.h>
#include <tessera/secrets.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "command.h"
#include "report.h"
#include "settings.h"

namespace tessera::cli {

namespace {

namespace fs = std::filesystem;

/// What is told under one heading.
struct Told {
    std::string key;
    std::vector<std::string> lines;
};

/// The shared libraries of this process by their files' whole names, which have the versions.
std::vector<std::string> loaded_libraries() {
    std::vector<std::string> names;
    const auto take = [](dl_phdr_info* info, std::size_t, void* to) {
        std::error_code ignored;
        const fs::path file = fs::canonical(info->dlpi_name, ignored);
        if (!ignored && info->dlpi_name[0] != '\0') {
            static_cast<std::vector<std::string>*>(to)->push_back(file.filename().string());
        }
        return 0;
    };
    dl_iterate_phdr(take, &names);
    std::ranges::sort(names);
    return names;
}

std::string distribution() {
    std::ifstream file("/etc/os-release");
    for (std::string line; std::getline(file, line);) {
        constexpr std::string_view key = "PRETTY_NAME=";
        if (line.starts_with(key)) {
            std::erase(line, '"');
            return line.substr(key.size());
        }
    }
    return "a system that does not tell its name";
}

std::string system_text() {
    utsname name{};
    (void)::uname(&name);
    return fmt::format("{}; {} {}, {}", distribution(), name.sysname, name.release, name.machine);
}

std::string machine_text() {
    const auto pages = static_cast<std::uint64_t>(std::max(::sysconf(_SC_PHYS_PAGES), 0L));
    const auto page = static_cast<std::uint64_t>(std::max(::sysconf(_SC_PAGESIZE), 0L));
    return fmt::format("{}, {} of memory", count_text(std::thread::hardware_concurrency(), "thread"),
                       bytes_text(pages * page));
}

/// The kind of the file system that holds a path, its room, and what it does not keep.
std::string file_system_text(const fs::path& path) {
    const FileSystem system = file_system_of(path);
    std::string text = system.type.empty() ? "not known" : system.type;
    struct statvfs space {};
    if (::statvfs(path.c_str(), &space) == 0) {
        text += fmt::format(", {} free of {}", bytes_text(std::uint64_t{space.f_bavail} * space.f_frsize),
                            bytes_text(std::uint64_t{space.f_blocks} * space.f_frsize));
    }
    for (const std::string& limit : system.limits) text += "; " + limit;
    return text;
}

/// Each with its value and its origin; secrets in URLs are left out.
std::vector<std::string> settings_told() {
    std::vector<std::string> lines;
    for (const std::string_view name : setting_names()) {
        try {
            const auto found = setting(name);
            if (found) lines.push_back(fmt::format("{} = {} ({})", name, without_secrets(found->value), found->from));
        } catch (const Error& e) {  // of the file: it is the same for all names
            return {e.what()};
        }
    }
    return lines;
}

/// The names alone of variables that change what Tessera does: the values may be secrets.
std::vector<std::string> variables_told() {
    constexpr std::string_view beginnings[] = {"TESSERA_", "AWS_",     "GOOGLE_", "http_proxy", "https_proxy",
                                               "no_proxy", "SSL_CERT", "LD_",     "PYTHONPATH", "XDG_CONFIG_HOME"};
    std::vector<std::string> names;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string text = *variable;
        if (std::ranges::any_of(beginnings, [&](std::string_view b) { return text.starts_with(b); })) {
            names.push_back(text.substr(0, text.find('=')));
        }
    }
    std::ranges::sort(names);
    return names;
}

std::vector<Told> report() {
    std::error_code ignored;
    return {
        {"tessera", {TESSERA_VERSION TESSERA_LEFT_OUT}},
        {"program", {fs::read_symlink("/proc/self/exe", ignored).string()}},
        {"compiler", {__VERSION__}},
        {"system", {system_text()}},
        {"machine", {machine_text()}},
        {"libraries", loaded_libraries()},
        {"settings", settings_told()},
        {"variables", variables_told()},
    };
}

int bug_report(Session& session, const std::vector<std::string>& paths) {
    if (session.options().json) {
        Value value = Value::object();
        for (const Told& told : report()) {
            Value lines = Value::array();
            for (const std::string& line : told.lines) lines.push_back(path_value(line));
            value.set(told.key, std::move(lines));
        }
        Value systems = Value::array();
        for (const std::string& path : paths) {
            systems.push_back(Value{{"path", path_value(path)}, {"file_system", path_value(file_system_text(path))}});
        }
        value.set("paths", std::move(systems));
        print_json(value);
        return exit_done;
    }
    Facts facts;
    for (const Told& told : report()) {
        facts.add(told.key, told.lines.empty() ? "none" : fmt::format("{}", fmt::join(told.lines, ", ")));
    }
    for (const std::string& path : paths) facts.add("file system", fmt::format("{}: {}", path, file_system_text(path)));
    facts.print();
    return exit_done;
}

}  // namespace

Run declare_bug_report(CLI::App& app) {
    auto paths = std::make_shared<std::vector<std::string>>(1, ".");
    app.add_option("PATH", *paths, "places whose file systems are told (default: the current folder)")
        ->option_text(" ");
    return [paths](Session& session) { return bug_report(session, *paths); };
}

}  // namespace tessera::cli
