#include <tessera/quantities.h>

#include <tessera/error_text.h>

#include <charconv>
#include <limits>
#include <optional>
#include <string>

namespace tessera {

namespace {

/// The bytes of a unit: K, k, KiB (1024), kB, KB (1000) and so on, B and nothing (1); nullopt for another word.
std::optional<std::uint64_t> unit_factor(std::string_view unit) {
    if (unit.empty() || unit == "B") return 1;
    constexpr std::string_view letters = "KMGT";
    const char upper = unit[0] >= 'a' ? static_cast<char>(unit[0] - 'a' + 'A') : unit[0];
    const std::size_t power = letters.find(upper);
    if (power == std::string_view::npos) return std::nullopt;
    const std::string_view rest = unit.substr(1);
    if (!rest.empty() && rest != "iB" && rest != "B") return std::nullopt;
    std::uint64_t factor = 1;
    for (std::size_t i = 0; i <= power; ++i) factor *= rest == "B" ? 1000 : 1024;
    return factor;
}

}  // namespace

std::uint64_t parse_bytes(std::string_view what, std::string_view text) {
    const auto bad = [&](std::string_view why) {
        return invalid_argument(
            "{}: expected a number of bytes above 0 such as 512M (K M G T or KiB MiB …: units of 1024; kB MB …: of "
            "1000), found '{}'{}",
            what, text, why);
    };
    std::uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc::result_out_of_range) throw bad(", which is too large");
    if (error != std::errc{}) throw bad("");
    const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
    const auto factor = unit_factor(unit);
    if (!factor) throw bad("");
    if (number == 0) throw bad("");
    if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / *factor) {
        throw bad(", which is too large");
    }
    return number * *factor;
}

std::chrono::milliseconds parse_duration(std::string_view what, std::string_view text) {
    std::int64_t number = -1;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
    std::int64_t factor = 0;
    if (unit == "ms") factor = 1;
    if (unit.empty() || unit == "s") factor = 1'000;
    if (unit == "m") factor = 60'000;
    if (unit == "h") factor = 3'600'000;
    if (unit == "d") factor = 86'400'000;
    constexpr std::int64_t most = std::int64_t{100} * 366 * 86'400'000;
    if (error != std::errc{} || number < 0 || factor == 0 || number > most / factor) {
        throw invalid_argument("{}: expected a time such as 500ms, 90s, 15m, 6h or 7d, found '{}'", what, text);
    }
    return std::chrono::milliseconds(number * factor);
}

}  // namespace tessera
