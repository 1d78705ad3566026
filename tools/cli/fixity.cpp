#include "fixity.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <tessera/error.h>
#include <tessera/fixity_log.h>
#include <tessera/quantities.h>
#include <chrono>
#include <ctime>
#include <utility>

#include "report.h"

namespace tessera::cli {

namespace {

std::string text_of(const Value& line, std::string_view name) {
    const Value* const value = line.find(name);
    if (value == nullptr) return "";
    return value->is_string() ? value->as_string() : value->dump();
}

/// "sample 5%, damage 2, chunks 40": how it was checked, and what is not 0 of the numbers.
std::string numbers_of(const Value& line) {
    std::string text = line.find("sample") == nullptr ? "" : "sample " + text_of(line, "sample");
    for (const std::string_view how : {"complete", "without_seals"}) {
        if (line.find(how) != nullptr) text += fmt::format("{}{}", text.empty() ? "" : ", ", how);
    }
    for (const auto& [key, value] : line.as_object()) {
        const std::string number = value.is_number() ? value.dump() : "0";
        if (number == "0") continue;
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", key, number);
    }
    return text;
}

void print_value(const FixityCall& o, const FixityLog& log) {
    Value value{{"path", path_value(o.path)}};
    if (!o.expect.empty()) value.set("expected_found", log.holds(o.expect));
    const Value told = fixity_value(log);
    for (const auto& [key, member] : told.as_object()) value.set(key, member);
    print_json(value);
}

void print_records(const FixityCall& o, const FixityLog& log) {
    for (const FixityRecord& record : log.records) {
        print(printable(fmt::format("{}  {}  {}  {}  {}", text_of(record.line, "time"), text_of(record.line, "who"),
                                    text_of(record.line, "what"),
                                    text_of(record.line, "sound") == "true" ? "sound" : "NOT SOUND",
                                    numbers_of(record.line))) +
              "\n");
    }
    if (log.broken_at) {
        print(
            fmt::format("line {} does not follow the line before: it, or what was before it, was changed or removed\n",
                        *log.broken_at));
    }
    if (!o.expect.empty() && !log.holds(o.expect)) {
        print(fmt::format("no line has the hash {}: the end of the log was cut off, or it is another log\n",
                          printable(o.expect)));
    }
    if (!log.records.empty()) print(fmt::format("last hash: {}\n", log.last()));
}

}  // namespace

std::string record_fixity(const std::string& path, std::string_view what, const Value& found) {
    return append_fixity(require_fixity_directory(path), what, TESSERA_VERSION, found);
}

void note_fixity(Session& session, const std::string& path, std::string_view what, const Value& found) {
    const std::string problem = tessera::note_fixity(path, what, TESSERA_VERSION, found);
    if (!problem.empty()) session.note(fmt::format("the fixity log has no line of this: {}", problem));
}

void require_fixity_log(const std::string& path) {
    (void)require_fixity_directory(path);
}

std::optional<std::string> checked_within(const std::string& path, std::string_view age, bool complete) {
    const auto within = std::chrono::duration_cast<std::chrono::seconds>(parse_duration("--due", age));
    const FixityLog log = read_fixity(require_fixity_directory(path));
    // Texts of this form are in the order of their times.
    const std::time_t first = std::time(nullptr) - within.count();
    const std::string since = fmt::format("{:%FT%TZ}", fmt::gmtime(first));
    if (log.broken_at || log.records.empty()) return {};
    for (auto record = log.records.rbegin(); record != log.records.rend(); ++record) {
        const bool whole = text_of(record->line, "what") == "verify" && record->line.find("sample") == nullptr &&
                           record->line.find("without_seals") == nullptr;
        if (!whole || (complete && text_of(record->line, "complete") != "true")) continue;
        std::string time = text_of(record->line, "time");
        if (text_of(record->line, "sound") != "true" || time < since) return {};
        return time;
    }
    return {};
}

std::int64_t samples_recorded(const std::string& path, std::string_view share) {
    std::int64_t count = 0;
    for (const FixityRecord& record : read_fixity(require_fixity_directory(path)).records) {
        count += text_of(record.line, "sample") == share ? 1 : 0;
    }
    return count;
}

int show_fixity(Session& session, const FixityCall& o) {
    const FixityLog log = read_fixity(require_fixity_directory(o.path));
    if (o.premis) {
        print(premis_events(log, o.path));
    } else if (session.options().json) {
        print_value(o, log);
    } else {
        print_records(o, log);
    }
    return log.broken_at || (!o.expect.empty() && !log.holds(o.expect)) ? exit_differences : exit_done;
}

}  // namespace tessera::cli
