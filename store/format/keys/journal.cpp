// The record of changes, a text of lines of JSON:
//
//   {"tessera_changes": 1, "id": "ID", "keeps_old": true, "what": "WORDS"}          a batch; ID has 16 hex digits
//   {"tessera_changes": 1, "id": "ID", "boot": "B", "writer": "W", "what": "WORDS", "end": null}      or a command
//   {"n":0,"size":16,"modified":1,"inode":2,"old":OLD,"key":"c/0"}                  a value is put
//   {"n":1,"size":16,"content":"0123456789abcdef","old":false,"key":"c/1"}          one that its bytes identify
//   {"n":2,"old":OLD,"key":"c/2"}                                                   a key is erased
//   {"array":true,"key":"PATH"}                                                     of a group: an array that changes
//   {"committed":3,"sha256":"SUM"}                                                  the last line of a batch
//
// A batch is written as a whole before anything of it happens. Its last line has the number of its changes and the
// SHA-256 of all lines before it: without that line, or with another one, it is damaged. The header says, where it is
// so, that it reverts a batch that was given up (gives_up), lies in a group (of_group), or is a part of a batch over a
// group so many folders above (group_above).
//
// A command notes each change right before it (kept_changes.cpp). When it ends, the number of its changes takes the
// place of null, so that a record that is cut short is not taken for that of a command that was interrupted, whose last
// line may be cut. {"lost":"WHY"} says that not all of it can be taken back. Earlier versions wrote {"end":3} as the
// last line instead, and no "end" before.
//
// OLD is false if there was no value; or what identifies the kept one, {"size":16,"modified":1,"inode":2}, or with
// "content" as above; or only true.
//
// A key that is not UTF-8 stands in base64 as "key64".
#include "journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <tessera/action.h>
#include <tessera/descriptor.h>
#include <tessera/error_text.h>
#include <tessera/json.h>
#include <tessera/value.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <utility>

#include "base64.h"
#include "beneath.h"
#include "copy_bytes.h"
#include "keys.h"
#include "lines.h"
#include "sha256.h"
#include "versions.h"

namespace tessera {

namespace {

using Entry = Journal::Entry;

constexpr int record_version = 1;
constexpr std::uint64_t longest_line = std::uint64_t{64} << 10;
constexpr std::size_t usual_line = 192;    // bytes of a line of a batch, without its key
constexpr std::int64_t most_above = 1024;  // folders; a path has no more
constexpr std::string_view finish_elsewhere = "finish it with the program that began it";

/// Differs between two starts of the system; empty if the system does not tell.
std::string present_boot() {
    std::array<char, 64> text{};
    const Descriptor fd(open_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", O_RDONLY));
    const ssize_t n = fd ? ::read(fd.get(), text.data(), text.size()) : 0;
    const std::string_view id(text.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
    return std::string(id.substr(0, id.find('\n')));
}

/// Cut between characters of UTF-8, so that the first line of a record is no longer than readers take.
std::string shortened(const std::string& text) {
    constexpr std::size_t most = 4096;
    if (text.size() <= most) return text;
    std::size_t end = most;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
    return text.substr(0, end) + "…";
}

std::uint64_t hexadecimal_in(const Value& value) {
    const std::string& text = value.as_string();
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
    if (error != std::errc() || end != text.data() + text.size()) throw corrupt("not a hexadecimal number");
    return number;
}

std::string_view text_of(ByteSpan bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// As long for any number, so that it can take the place of another.
std::string end_text(std::string_view number) {
    return fmt::format("{:<20}", number);
}

std::string committed_line(std::uint64_t changes, const Sha256& sum) {
    return fmt::format("{{\"committed\":{},\"sha256\":\"{}\"}}\n", changes, hex(sum));
}

// ---- reading

Journal journal_of(const Value& header) {
    const Value& version = header.at("tessera_changes");
    if (!(version == Value(record_version))) {
        throw unsupported("the record of changes has version {}, this program knows version {}; {}", version.dump(),
                          record_version, finish_elsewhere);
    }
    const auto flag = [&](std::string_view name) {
        const Value* const found = header.find(name);
        return found != nullptr && found->as_bool();
    };
    Journal journal{.id = hexadecimal_in(header.at("id")),
                    .keeps_old = flag("keeps_old"),
                    .gives_up = flag("gives_up"),
                    .of_command = header.find("writer") != nullptr,
                    .of_group = flag("of_group"),
                    .what = header.at("what").as_string()};
    if (const Value* const above = header.find("group_above")) {
        const std::int64_t levels = above->as_int64();
        if (levels < 1 || levels > most_above) throw corrupt("{} folders above the array", levels);
        journal.group_above = static_cast<std::uint32_t>(levels);
    }
    return journal;
}

/// What the first line says. Throws corrupt, or unsupported for another version and the binary layout of old journals.
std::pair<Value, Journal> header_in(std::string_view text) {
    constexpr std::string_view binary = "\x89TSJ\r\n\x1a\n";
    if (text.starts_with(binary)) {
        throw unsupported("it has the binary layout of an earlier version, which this program does not read; {}",
                          finish_elsewhere);
    }
    try {
        Value header = Value::parse(text.substr(0, text.find('\n')));
        Journal journal = journal_of(header);
        return {std::move(header), std::move(journal)};
    } catch (const Error& e) {
        if (e.code() == ErrorCode::unsupported || e.code() == ErrorCode::budget) throw;
        throw corrupt("line 1 is not that of a record of changes: {}", e.what());
    }
}

/// The beginning of a file, with the first line of a record if it is one.
Buffer beginning_of(const ByteSource& file) {
    return read_range(file, 0, std::min(file.size(), longest_line));
}

/// The number of changes of a batch, whose record must be complete and as it was written. Takes little memory.
std::uint64_t require_committed(const ByteSource& file) {
    constexpr std::uint64_t longest = 128;
    if (file.size() > journal_limit) throw corrupt("{} bytes, at most {} are possible", file.size(), journal_limit);
    const std::uint64_t from = file.size() - std::min(file.size(), longest);
    const Buffer end = read_range(file, from, file.size() - from);
    std::string_view last = text_of(end);
    if (last.ends_with('\n')) last.remove_prefix(last.rfind('\n', last.size() - 2) + 1);
    if (!last.starts_with("{\"committed\":")) throw corrupt("its last line, which says that it is whole, is missing");
    Hasher hasher;
    std::uint64_t lines = 0;
    std::uint64_t left = file.size() - last.size();
    for_each_piece(file, [&](ByteSpan piece) {
        const std::string_view part = text_of(piece).substr(0, static_cast<std::size_t>(left));
        hasher.add(part.data(), part.size());
        lines += static_cast<std::uint64_t>(std::ranges::count(part, '\n'));
        left -= part.size();
    });
    const std::uint64_t changes = lines - 1;
    if (last != committed_line(changes, hasher.finish())) throw corrupt("its SHA-256 differs");
    return changes;
}

std::string key_in(const Value& line) {
    std::string key;
    if (const Value* const coded = line.find("key64")) {
        const auto bytes = base64_decode(coded->as_string());
        if (bytes) key = text_of(*bytes);
    } else {
        key = line.at("key").as_string();
    }
    require_key(key);
    return key;
}

ValueStamp stamp_in(const Value& members) {
    ValueStamp stamp{.size = members.at("size").as_uint64()};
    if (const Value* const content = members.find("content")) {
        stamp.by_content = true;
        stamp.id = hexadecimal_in(*content);
    } else {
        stamp.modified = members.at("modified").as_int64();
        stamp.id = members.at("inode").as_uint64();
    }
    return stamp;
}

Entry entry_in(const Value& line, bool of_group) {
    if ((line.find("array") != nullptr) != of_group) {
        throw corrupt(of_group ? "a value, where arrays of a group are expected"
                               : "an array, where values are expected");
    }
    Entry entry{.kind = of_group ? Entry::Kind::array : Entry::Kind::erase, .stamp = {}, .key = key_in(line)};
    if (of_group) return entry;
    const Value& old = line.at("old");
    entry.old_known = old.is_object();
    entry.had_old = entry.old_known || old.as_bool();
    if (entry.old_known) entry.old = stamp_in(old);
    entry.number = line.at("n").as_uint64();
    if (line.find("size") != nullptr) {
        entry.kind = Entry::Kind::put;
        entry.stamp = stamp_in(line);
    }
    return entry;
}

/// Why the record of a command without its last line cannot be taken back; empty if it can.
std::string why_incomplete(const Value& header) {
    if (header.at("boot").as_string() != present_boot() || header.at("boot").as_string().empty()) {
        return "it was interrupted, and the system was restarted since, so that the record may not be complete";
    }
    if (!temporary_writer_has_ended(header.at("writer").as_string())) return "it has not ended";
    return {};
}

/// For a command that has ended after `made` changes, or has not.
void require_all(const Journal& journal, const Value& made) {
    if (made.is_null() || made.as_uint64() == journal.entries.size()) return;
    throw corrupt("it has {} changes, and the command made {}: it was cut short", journal.entries.size(), made.dump());
}

Journal read(const ByteSource& file) {
    auto first = header_in(text_of(beginning_of(file)));
    const Value& header = first.first;
    Journal& journal = first.second;
    std::optional<std::uint64_t> count;  // of the changes, once it is known
    if (!journal.of_command) count = require_committed(file);
    journal.counted = Buffer(static_cast<std::size_t>(2 * file.size()));
    const Value* const end = journal.of_command ? header.find("end") : nullptr;
    bool ended = !journal.of_command || (end != nullptr && !end->is_null());
    const auto take = [&](const Value& line) {
        if (const Value* const why = journal.of_command ? line.find("lost") : nullptr) {
            journal.refusal = "not all that it changed could be kept: " + why->as_string();
        } else if (const Value* const last = journal.of_command ? line.find("end") : nullptr) {
            ended = last->as_uint64() == journal.entries.size();
            if (!ended) throw corrupt("another number of changes");
        } else {
            journal.entries.push_back(entry_in(line, journal.of_group));
        }
    };
    // A line of a command without an end was being written when it was killed: that change did not happen.
    const auto ending = journal.of_command ? LastLine::may_be_cut : LastLine::ends;
    for_each_line(
        file, "a line of a record of changes",
        [&](std::string_view line, std::size_t number) {
            if (number == 1 || (count && number > *count + 1)) return true;
            try {
                take(Value::parse(line));
            } catch (const Error& e) {
                if (e.code() == ErrorCode::budget) throw;
                throw corrupt("line {} is not one of a record of changes: {}", number, e.what());
            }
            return true;
        },
        ending);
    if (end != nullptr) require_all(journal, *end);
    if (!ended && journal.refusal.empty()) journal.refusal = why_incomplete(header);
    return std::move(journal);
}

}  // namespace

std::string value_name(std::uint64_t id, std::uint64_t number) {
    return fmt::format("{:016x}.{}", id, number);
}

bool may_be_recorded(const ValueStamp& recorded, const ValueStamp& found) {
    if (recorded.size != found.size) return false;
    if (recorded.by_content != found.by_content) return true;
    return recorded.by_content ? recorded.id == found.id : recorded.id != found.id || recorded == found;
}

std::string header_line(const Journal& journal) {
    Value header = Value::object();
    header.set("tessera_changes", record_version);
    header.set("id", fmt::format("{:016x}", journal.id));
    if (journal.of_command) {
        header.set("boot", present_boot());
        header.set("writer", temporary_name());
    } else {
        header.set("keeps_old", journal.keeps_old);
    }
    if (journal.gives_up) header.set("gives_up", true);
    if (journal.of_group) header.set("of_group", true);
    if (journal.group_above > 0) header.set("group_above", journal.group_above);
    header.set("what", shortened(journal.what));
    std::string line = header.dump({.ascii = true});
    if (journal.of_command) line.insert(line.size() - 1, fmt::format(", \"end\": {}", end_text("null")));
    return line + '\n';
}

void append_change(std::string& text, const Entry& entry) {
    text.reserve(text.size() + usual_line + entry.key.size());
    const auto out = std::back_inserter(text);
    if (entry.kind == Entry::Kind::array) {
        text += R"({"array":true,)";
    } else {
        fmt::format_to(out, R"({{"n":{},)", entry.number);
        const auto add_stamp = [&](const ValueStamp& stamp) {
            if (stamp.by_content) {
                fmt::format_to(out, R"("size":{},"content":"{:016x}")", stamp.size, stamp.id);
            } else {
                fmt::format_to(out, R"("size":{},"modified":{},"inode":{})", stamp.size, stamp.modified, stamp.id);
            }
        };
        if (entry.kind == Entry::Kind::put) {
            add_stamp(entry.stamp);
            text += ',';
        }
        if (entry.had_old && entry.old_known) {
            text += R"("old":{)";
            add_stamp(entry.old);
            text += "},";
        } else {
            fmt::format_to(out, R"("old":{},)", entry.had_old);
        }
    }
    const auto plain = [](char c) { return c >= ' ' && c < '\x7F' && c != '"' && c != '\\'; };
    if (std::ranges::all_of(entry.key, plain)) {  // nearly always, and quicker
        fmt::format_to(out, "\"key\":\"{}\"}}\n", entry.key);
    } else if (is_utf8(entry.key)) {
        fmt::format_to(out, "\"key\":{}}}\n", Value(entry.key).dump({.ascii = true}));
    } else {
        fmt::format_to(out, "\"key64\":\"{}\"}}\n", base64_encode(std::as_bytes(std::span(entry.key))));
    }
}

std::string lost_line(std::string_view why) {
    return Value{{"lost", why}}.dump({.ascii = true}) + '\n';
}

EndMark end_mark(std::size_t header, std::uint64_t changes) {
    std::string text = end_text(std::to_string(changes));
    const std::size_t at = header - text.size() - std::string_view("}\n").size();
    return {at, std::move(text)};
}

Buffer encode_journal(const Journal& journal) {
    std::size_t size = 4 * usual_line + journal.what.size();
    for (const Entry& entry : journal.entries) size += usual_line + entry.key.size();
    Buffer bytes(size);
    bytes.resize(0);
    const auto add = [&](const std::string& line) { bytes.append(std::as_bytes(std::span(line))); };
    add(header_line(journal));
    std::string line;
    for (const Entry& entry : journal.entries) {
        line.clear();
        append_change(line, entry);
        add(line);
    }
    Hasher hasher;
    hasher.add(bytes.data(), bytes.size());
    add(committed_line(journal.entries.size(), hasher.finish()));
    return bytes;
}

Journal read_record(const ByteSource& file, std::string_view name) {
    try {
        return read(file);
    } catch (const Error& e) {
        if (e.code() == ErrorCode::budget) throw e.within(std::string(name));
        if (e.code() != ErrorCode::corrupt && e.code() != ErrorCode::unsupported) throw;
        throw e.within(fmt::format("{}: the last change cannot be taken back", name));
    }
}

Journal read_journal(const ByteSource& file, std::string_view name) {
    try {
        Journal journal = read(file);
        if (journal.of_command) throw corrupt("it is that of a command");
        return journal;
    } catch (const Error& e) {
        if (e.code() == ErrorCode::budget) throw e.within(std::string(name));
        if (e.code() == ErrorCode::corrupt) {
            throw e.within(fmt::format("{}: the journal of a batch of edits is damaged", name))
                .advising(Action::repair, "sets the batch aside, and the array stays as it is");
        }
        if (e.code() != ErrorCode::unsupported) throw;
        throw e.within(fmt::format("{}: the journal of a batch of edits", name))
            .advising(Action::give_up_batches, "sets it aside");
    }
}

std::optional<Journal> header_of(std::string_view text) {
    try {
        return header_in(text).second;
    } catch (const Error&) {
        return {};
    }
}

std::optional<Journal> header_of(const ByteSource& file) {
    return header_of(text_of(beginning_of(file)));
}

}  // namespace tessera
