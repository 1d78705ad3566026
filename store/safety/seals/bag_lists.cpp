#include "bag_lists.h"

#include <fmt/format.h>
#include <tessera/byte_io.h>
#include <tessera/error_text.h>
#include <tessera/unicode.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "keys.h"
#include "lines.h"
#include "sums.h"

namespace tessera {

Sha256 folded_sum(std::span<const unsigned char> sum) {
    Hasher hasher;
    hasher.add(sum.data(), sum.size());
    return hasher.finish();
}

std::string bag_path(std::string_view path) {
    std::string text;
    for (const char c : path) {
        if (c == '\n' || c == '\r' || c == '%') {
            fmt::format_to(std::back_inserter(text), "%{:02X}", static_cast<unsigned char>(c));
        } else {
            text += c;
        }
    }
    return text;
}

namespace {

/// The path that one in a list stands for. Before version 1.0 '%' was not escaped.
std::string path_in_bag(std::string_view text, bool strict) {
    std::string path;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const std::string_view three = text.substr(i, 3);
        const bool line_feed = three == "%0A" || three == "%0a";
        const bool percent = strict && three == "%25";
        const bool escaped = line_feed || percent || three == "%0D" || three == "%0d";
        path += !escaped ? text[i] : percent ? '%' : line_feed ? '\n' : '\r';
        if (escaped) i += 2;
    }
    return path;
}

/// Text of UTF-16 as UTF-8. Without a mark the high byte of each unit comes first.
std::string utf16_to_utf8(std::string_view bytes) {
    const bool little = bytes.starts_with("\xff\xfe");
    if (little || bytes.starts_with("\xfe\xff")) bytes.remove_prefix(2);
    std::string text;
    char32_t high = 0;  // the first half of a pair
    for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
        const auto first = static_cast<unsigned char>(bytes[i]);
        const auto second = static_cast<unsigned char>(bytes[i + 1]);
        const char32_t unit =
            little ? static_cast<char32_t>(second << 8U | first) : static_cast<char32_t>(first << 8U | second);
        if (unit >= 0xd800 && unit < 0xdc00) {
            high = unit;
        } else if (unit >= 0xdc00 && unit < 0xe000 && high != 0) {
            append_utf8(text, 0x10000 + ((high - 0xd800) << 10U) + (unit - 0xdc00));
            high = 0;
        } else {
            append_utf8(text, unit);
        }
    }
    return text;
}

/// "Payload-Oxum: BYTES.FILES", whatever the case of the label; nullopt for another line.
std::optional<std::pair<std::uint64_t, std::uint64_t>> parse_oxum(std::string_view line) {
    constexpr std::string_view label = "payload-oxum:";
    const auto same = [](char c, char of) { return (c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c) == of; };
    if (!std::ranges::equal(line.substr(0, label.size()), label, same)) return std::nullopt;
    line.remove_prefix(std::min(line.find_first_not_of(" \t", label.size()), line.size()));
    std::pair<std::uint64_t, std::uint64_t> oxum;
    const char* const end = line.data() + line.size();
    const auto bytes = std::from_chars(line.data(), end, oxum.first);
    if (bytes.ec != std::errc() || bytes.ptr == end || *bytes.ptr != '.') return std::nullopt;
    const auto files = std::from_chars(bytes.ptr + 1, end, oxum.second);
    return files.ec == std::errc() ? std::optional(oxum) : std::nullopt;
}

class ListReader {
public:
    ListReader(const PlaceView& place, PackageState& state)
        : place_(place), state_(state), files_(spool_folder(place.store)) {}

    BagLists read() {
        const Listing names = place_.store.list(place_.prefix);
        in_list(bag_declaration, [&] { read_declaration(); });
        std::string unknown;
        bool any = false;
        for (const std::string& name : names.keys) {
            const bool tags = is_bag_tag_manifest(name);
            if (!tags && (!name.starts_with("manifest-") || !name.ends_with(".txt"))) continue;
            any = true;
            lists_.has_tags = lists_.has_tags || tags;
            if (!read_manifest(name, tags)) unknown = name;
        }
        require_payload_list(names, unknown, any);
        if (std::ranges::binary_search(names.keys, "fetch.txt")) in_list("fetch.txt", [&] { read_fetch(); });
        if (lists_.readable && std::ranges::binary_search(names.keys, bag_info_name)) read_oxum();
        lists_.lines = files_.sort();
        return std::move(lists_);
    }

private:
    void require_payload_list(const Listing& names, const std::string& unknown, bool any) {
        if (lists_.payload != 0 || !lists_.readable) return;
        const std::string name = place_.name_of(bag_manifest);
        if (!unknown.empty()) {
            throw unsupported("{}: is missing, and Tessera does not compute the sums of {}", name, unknown);
        }
        if (std::ranges::binary_search(names.prefixes, bag_manifest)) {
            throw corrupt("{}: is a directory, where a manifest is expected", name);
        }
        throw corrupt("{}: is missing, and so {}nothing says whether the files of the bag are as they were", name,
                      any ? "but for its tag files " : "");
    }

    /// Runs `read` for a list; what is wrong with it is a remark.
    template <class Read>
    void in_list(std::string_view name, const Read& read) {
        try {
            read();
        } catch (const Error& e) {
            if (e.code() == ErrorCode::cancelled || e.code() == ErrorCode::budget) throw;
            state_.wrong.push_back({std::string(name), e.what()});
            if (name != bag_declaration) lists_.readable = false;
        }
    }

    [[nodiscard]] std::unique_ptr<ByteSource> text_of(std::string_view name) const {
        const std::string key = place_.key(name);
        auto text = place_.store.open(key);
        if (text == nullptr) throw corrupt("{}: is gone", place_.store.name_of(key));
        if (encoding_ == "UTF-8") return text;
        constexpr std::uint64_t most = std::uint64_t{16} << 20;
        if (text->size() > most) throw unsupported("{}: more than 16 MiB, and not UTF-8", text->name());
        const Buffer bytes = read_all(*text);
        const std::string_view raw(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        const std::string decoded = encoding_ == "UTF-16" ? utf16_to_utf8(raw) : latin1_to_utf8(raw);
        Buffer out(decoded.size());
        std::memcpy(out.data(), decoded.data(), decoded.size());
        return memory_source(std::move(out), text->name());
    }

    /// Calls each(line, its number) for each that is not empty; lines may end as Windows ends them.
    template <class Each>
    void each_line(std::string_view name, std::string_view form, const Each& each) {
        const auto one = [&](std::string_view line, std::size_t number) {
            if (line.ends_with('\r')) line.remove_suffix(1);
            return line.empty() || each(line, number);
        };
        for_each_line(*text_of(name), form, one, LastLine::may_lack_end);
    }

    void read_declaration() {
        if (!is_there(place_.store, place_.key(bag_declaration))) {
            state_.files.missing.emplace_back(bag_declaration);
            return;
        }
        std::vector<std::string> lines;
        each_line(bag_declaration, "at most two short ones", [&](std::string_view line, std::size_t number) {
            lines.emplace_back(line.substr(0, 100));
            return number <= 2;
        });
        constexpr std::string_view version = "BagIt-Version: ";
        constexpr std::string_view encoding = "Tag-File-Character-Encoding: ";
        if (lines.size() != 2 || !lines[0].starts_with(version) || !lines[1].starts_with(encoding)) {
            throw corrupt("is not the two lines \"{}M.N\" and \"{}NAME\"", version, encoding);
        }
        read_version(lines[0].substr(version.size()));
        encoding_ = lines[1].substr(encoding.size());
        std::ranges::transform(encoding_, encoding_.begin(),
                               [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
        if (encoding_ == "US-ASCII" || encoding_ == "ASCII") encoding_ = "UTF-8";
        if (encoding_ == "UTF-8" || encoding_ == "UTF-16" || encoding_ == "ISO-8859-1") return;
        lists_.readable = false;
        throw unsupported("the tag files are {}, which Tessera does not read: UTF-8, UTF-16 and ISO-8859-1", encoding_);
    }

    void read_version(std::string_view text) {
        const auto is_number = [](std::string_view part) {
            return !part.empty() && part.size() <= 4 && part.find_first_not_of("0123456789") == part.npos;
        };
        const std::size_t dot = text.find('.');
        if (dot == text.npos || !is_number(text.substr(0, dot)) || !is_number(text.substr(dot + 1))) {
            throw corrupt("\"{}\" is no version, such as 1.0", text);
        }
        lists_.strict = text.substr(0, dot) != "0";
    }

    /// Returns false if the sums are unknown ones.
    bool read_manifest(const std::string& name, bool tags) {
        const std::size_t begin = name.find('-') + 1;
        const std::string_view sums = std::string_view(name).substr(begin, name.size() - begin - 4);
        const auto* const algorithm = std::ranges::find(bag_algorithms, sums, &BagAlgorithm::name);
        if (algorithm == bag_algorithms.end()) {
            state_.notes.push_back({name, "has sums that Tessera does not compute, and does not count"});
            return false;
        }
        const auto number = static_cast<std::uint32_t>(algorithm - bag_algorithms.begin());
        if (!tags) lists_.payload |= 1U << number;
        in_list(name, [&] { read_manifest(name, number, tags); });
        return true;
    }

    void read_manifest(const std::string& name, std::uint32_t number, bool tags) {
        const std::size_t bytes = bag_algorithms[number].bytes;
        const std::string form = fmt::format("\"{} digits, space, a path in the bag\"", 2 * bytes);
        unsigned noted = 0;
        const auto note = [&](unsigned what, std::size_t line, std::string_view text) {
            if ((noted & what) == 0) state_.notes.push_back({name, fmt::format("line {}: {}", line, text)});
            noted |= what;
        };
        each_line(name, form, [&](std::string_view line, std::size_t at) {
            std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
            const auto digits = std::span(sum).first(bytes);
            if (line.size() <= 2 * bytes || !parse_hex(line, digits)) return false;
            const std::size_t begin = line.find_first_not_of(" \t", 2 * bytes);
            if (begin == line.npos || begin == 2 * bytes) return false;
            line.remove_prefix(begin);
            if (line.starts_with('*')) {
                note(1, at, "the asterisk before the name is that of md5sum and its kin");
                line.remove_prefix(1);
            }
            if (line.starts_with("./")) {
                note(2, at, "a name begins with \"./\"");
                line.remove_prefix(2);
            }
            add({.path = path_in_bag(line, lists_.strict), .sum = folded_sum(digits), .segment = number, .origin = at},
                tags);
            return true;
        });
    }

    void read_fetch() {
        each_line("fetch.txt", "\"URL, length or -, a path in the bag\"", [&](std::string_view line, std::size_t at) {
            const std::size_t url = line.find_first_of(" \t");
            const std::size_t length = line.find_first_not_of(" \t", url);
            const std::size_t end = line.find_first_of(" \t", length);
            const std::size_t path = line.find_first_not_of(" \t", end);
            if (url == 0 || path == line.npos) return false;
            const std::string_view size = line.substr(length, end - length);
            if (size != "-" && size.find_first_not_of("0123456789") != size.npos) return false;
            line.remove_prefix(path);
            if (line.starts_with("./")) line.remove_prefix(2);
            add({.path = path_in_bag(line, lists_.strict), .segment = fetch_line, .origin = at}, false);
            return true;
        });
    }

    /// Labels of other programs are as they are: only a wrong Payload-Oxum makes a bag invalid.
    void read_oxum() {
        try {
            each_line(bag_info_name, "short enough", [&](std::string_view line, std::size_t) {
                if (const auto oxum = parse_oxum(line)) lists_.oxum = oxum;
                return true;
            });
        } catch (const Error& e) {
            if (e.code() == ErrorCode::cancelled || e.code() == ErrorCode::budget) throw;
            state_.notes.push_back({std::string(bag_info_name), e.what()});
        }
    }

    void add(const ListedFile& file, bool tags) {
        const bool payload = file.path.starts_with("data/");
        bool inside = payload != tags && !file.path.starts_with('~');
        try {
            require_key(file.path);
        } catch (const Error&) {
            inside = false;
        }
        if (!inside) {
            throw corrupt("line {}: {} is {}, and is not looked at", file.origin, file.path,
                          tags ? "no tag file of the bag" : "outside of the bag's payload, data/");
        }
        files_.add(file);
    }

    const PlaceView& place_;
    PackageState& state_;
    FileSorter files_;
    std::string encoding_ = "UTF-8";
    BagLists lists_{.lines = FileList("")};
};

}  // namespace

BagLists read_bag_lists(const PlaceView& place, PackageState& state) {
    return ListReader(place, state).read();
}

}  // namespace tessera
