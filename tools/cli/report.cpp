#include "report.h"

#include <fmt/format.h>

#include <tessera/error.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

namespace tessera::cli {

namespace {

[[noreturn]] void throw_output_error(int error_number) {
    if (error_number == EPIPE) throw ClosedPipe{};
    throw io_error("writing", "standard output", error_number);
}

/// Bytes of the UTF-8 character that the text begins with; 0 for what is none.
std::size_t character_length(std::string_view text) {
    const auto first = static_cast<unsigned char>(text[0]);
    if (first < 0x80) return 1;
    const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i) {
        if ((static_cast<unsigned char>(text[i]) & 0xc0U) != 0x80) return 0;
    }
    return length;
}

/// Whether the text begins with U+0000 to U+001F or U+007F to U+009F.
bool is_control(std::string_view text) {
    const auto first = static_cast<unsigned char>(text[0]);
    return first < 0x20 || first == 0x7f || (first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0);
}

/// The text with what is no UTF-8, and unless `keep_controls` control characters, as \xNN.
std::string escaped(std::string_view text, bool keep_controls) {
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
        const std::size_t length = character_length(text.substr(i));
        if (length > 0 && (keep_controls || !is_control(text.substr(i)))) {
            out += text.substr(i, length);
            i += length;
        } else {
            out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i++]));
        }
    }
    return out;
}

}  // namespace

void print(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) throw_output_error(errno);
}

void flush_output() {
    if (std::fflush(stdout) != 0) throw_output_error(errno);
}

void print_json(const Value& value) {
    print(value.dump({.indent = 2}));
    print("\n");
}

std::string bytes_text(std::uint64_t bytes) {
    constexpr std::array units{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) return fmt::format("{} bytes", bytes);
    double number = static_cast<double>(bytes) / 1024;
    std::size_t unit = 0;
    // 1023.96 would be rounded to "1024.0".
    while (number >= 1023.95 && unit + 1 < units.size()) {
        number /= 1024;
        ++unit;
    }
    return fmt::format("{:.1f} {}", number, units[unit]);
}

std::string bytes_exactly(std::uint64_t bytes) {
    return bytes < 1024 ? bytes_text(bytes) : fmt::format("{} ({} bytes)", bytes_text(bytes), grouped(bytes));
}

std::string grouped(std::uint64_t number) {
    std::string text = fmt::format("{}", number);
    for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, 1, ',');
    return text;
}

std::string shape_text(const Shape& shape) {
    return shape.empty() ? "0-d" : fmt::format("{}", fmt::join(shape.begin(), shape.end(), "×"));
}

Value shape_value(const Shape& shape) {
    Value list = Value::array();
    for (const std::int64_t n : shape) list.push_back(n);
    return list;
}

double ratio(std::uint64_t logical, std::uint64_t stored) {
    return stored == 0 ? 0.0 : static_cast<double>(logical) / static_cast<double>(stored);
}

std::string ratio_text(std::uint64_t logical, std::uint64_t stored) {
    if (stored == 0) return "–";
    const double r = ratio(logical, stored);
    return r >= 0.1 ? fmt::format("{:.1f}", r) : fmt::format("{:.2g}", r);
}

std::string count_text(std::int64_t n, std::string_view singular) {
    return fmt::format("{} {}{}", grouped(static_cast<std::uint64_t>(n)), singular, n == 1 ? "" : "s");
}

std::string printable(std::string_view text) {
    return escaped(text, false);
}

Value path_value(std::string_view path) {
    return escaped(path, true);
}

std::string codecs_text(const std::vector<CodecConfig>& codecs) {
    std::string text;
    for (const CodecConfig& codec : codecs) {
        if (codec.name == "bytes") continue;  // only lays the elements out: nothing that a person chose
        text += (text.empty() ? "" : " + ") + codec_text(codec);
    }
    return text.empty() ? "none" : text;
}

void Facts::add(std::string_view key, std::string_view value) {
    lines_.emplace_back(key, value);
}

void Facts::print() const {
    std::size_t width = 0;
    for (const auto& [key, value] : lines_) width = std::max(width, key.size());
    for (const auto& [key, value] : lines_) {
        cli::print(fmt::format("{:<{}}  {}\n", printable(key), width, printable(value)));
    }
}

}  // namespace tessera::cli
