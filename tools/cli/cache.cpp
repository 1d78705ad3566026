// tessera cache
#include <fmt/format.h>

#include <tessera/error_text.h>
#include <tessera/remote_options.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include "command.h"
#include "hierarchy.h"
#include "report.h"

namespace tessera::cli {

namespace {

struct CacheOptions {
    std::string action, path;
};

std::string text_of(const CachedValue& value) {
    return fmt::format("{:>10}  {:<20}  {}", bytes_text(value.bytes), value.part, value.name);
}

/// What of the cache was listed, removed or verified.
struct Counted {
    std::int64_t entries = 0;
    std::uint64_t bytes = 0;
    std::int64_t removed = 0;
    Value values = Value::array();  ///< for --json

    void add(const CachedValue& value) {
        ++entries;
        bytes += value.bytes;
    }
    [[nodiscard]] std::string text() const {
        return fmt::format(
            "{}, {}",
            entries == 1 ? "1 entry" : fmt::format("{} entries", grouped(static_cast<std::uint64_t>(entries))),
            bytes_text(bytes));
    }
};

bool is_below(const CachedValue& value, std::string_view path) {
    const std::string_view below = path.substr(0, path.find_last_not_of('/') + 1);
    return below.empty() || value.name == below || (value.name.starts_with(below) && value.name[below.size()] == '/');
}

void list_values(const Session& session, const std::filesystem::path& folder, const CacheOptions& o, Counted& counted) {
    for_each_cached(folder, false, [&](const CachedValue& value) {
        if (!is_below(value, o.path)) return;
        counted.add(value);
        if (!session.options().json) return print(printable(text_of(value)) + "\n");
        Value item = Value::object();
        item.set("name", path_value(value.name));
        item.set("part", value.part);
        item.set("bytes", value.bytes);
        counted.values.push_back(std::move(item));
    });
}

void remove_values(const std::filesystem::path& folder, const CacheOptions& o, Counted& counted) {
    const bool verifies = o.action == "verify";
    counted.removed = static_cast<std::int64_t>(remove_cached(folder, verifies, [&](const CachedValue& value) {
        const bool meant = (verifies && value.damaged) || is_below(value, o.path);
        if (meant) counted.add(value);
        return verifies ? value.damaged : meant;
    }));
}

int cache(Session& session, const CacheOptions& o) {
    constexpr std::array<std::string_view, 3> actions{"ls", "rm", "verify"};
    if (std::ranges::find(actions, o.action) == actions.end()) {
        throw invalid_argument("cache: expected ls, rm or verify, found '{}'", o.action);
    }
    const std::filesystem::path folder = remote_options()->cache;
    if (folder.empty()) throw invalid_argument("cache: no folder is named: --cache DIR, or TESSERA_CACHE");
    const bool lists = o.action == "ls";
    const bool verifies = o.action == "verify";
    Counted counted;
    if (lists) {
        list_values(session, folder, o, counted);
    } else {
        remove_values(folder, o, counted);
    }
    session.clear_progress();
    Value value = Value::object();
    value.set("folder", path_value(folder.string()));
    value.set("entries", counted.entries);
    value.set("bytes", counted.bytes);
    value.set(lists ? "values" : verifies ? "damaged" : "removed", lists ? counted.values : Value(counted.removed));
    if (!verifies) {
        report(session, value, (lists ? "" : "removed ") + counted.text());
        return exit_done;
    }
    report(session, value,
           counted.text() +
               (counted.removed == 0 ? ", none damaged" : fmt::format("; {} damaged, and removed", counted.removed)));
    return counted.removed == 0 ? exit_done : exit_differences;
}

}  // namespace

Run declare_cache(CLI::App& app) {
    auto o = std::make_shared<CacheOptions>();
    app.add_option("ACTION", o->action, "ls, rm or verify")->required()->option_text(" ");
    app.add_option("PATH", o->path, "only what is at and below this, such as s3://bucket/a.zarr")->option_text(" ");
    return [o](Session& session) { return cache(session, *o); };
}

}  // namespace tessera::cli
