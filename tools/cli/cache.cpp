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

int cache(Session& session, const CacheOptions& o) {
    constexpr std::array<std::string_view, 3> actions{"ls", "rm", "verify"};
    if (std::ranges::find(actions, o.action) == actions.end()) {
        throw invalid_argument("cache: expected ls, rm or verify, found '{}'", o.action);
    }
    const std::filesystem::path folder = remote_options()->cache;
    if (folder.empty()) throw invalid_argument("cache: no folder is named: --cache DIR, or TESSERA_CACHE");
    const std::string_view below = std::string_view(o.path).substr(0, o.path.find_last_not_of('/') + 1);
    const auto is_below = [&](const CachedValue& value) {
        return below.empty() || value.name == below ||
               (value.name.starts_with(below) && value.name[below.size()] == '/');
    };
    std::int64_t count = 0;
    std::uint64_t bytes = 0;
    std::int64_t removed = 0;
    Value values = Value::array();
    if (o.action == "ls") {
        for_each_cached(folder, false, [&](const CachedValue& value) {
            if (!is_below(value)) return;
            ++count;
            bytes += value.bytes;
            if (!session.options().json) return print(printable(text_of(value)) + "\n");
            Value item = Value::object();
            item.set("name", path_value(value.name));
            item.set("part", value.part);
            item.set("bytes", value.bytes);
            values.push_back(std::move(item));
        });
    } else {
        const bool verifies = o.action == "verify";
        removed = static_cast<std::int64_t>(remove_cached(folder, verifies, [&](const CachedValue& value) {
            const bool meant = verifies ? value.damaged || is_below(value) : is_below(value);
            if (meant) ++count;
            if (meant) bytes += value.bytes;
            return verifies ? value.damaged : meant;
        }));
    }
    session.clear_progress();
    Value value = Value::object();
    value.set("folder", path_value(folder.string()));
    value.set("entries", count);
    value.set("bytes", bytes);
    value.set(o.action == "ls"   ? "values"
              : o.action == "rm" ? "removed"
                                 : "damaged",
              o.action == "ls" ? std::move(values) : Value(removed));
    const std::string entries =
        count == 1 ? "1 entry" : fmt::format("{} entries", grouped(static_cast<std::uint64_t>(count)));
    if (o.action == "verify") {
        report(session, value,
               removed == 0 ? fmt::format("{}, {}, none damaged", entries, bytes_text(bytes))
                            : fmt::format("{}, {}; {} damaged, and removed", entries, bytes_text(bytes), removed));
        return removed == 0 ? exit_done : exit_differences;
    }
    report(session, value, fmt::format("{}{}, {}", o.action == "rm" ? "removed " : "", entries, bytes_text(bytes)));
    return exit_done;
}

}  // namespace

Run declare_cache(CLI::App& app) {
    auto o = std::make_shared<CacheOptions>();
    app.add_option("ACTION", o->action, "ls, rm or verify")->required()->option_text(" ");
    app.add_option("PATH", o->path, "only what is at and below this, such as s3://bucket/a.zarr")->option_text(" ");
    return [o](Session& session) { return cache(session, *o); };
}

}  // namespace tessera::cli
