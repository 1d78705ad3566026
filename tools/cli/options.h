// Parsing option values that several commands share. Every error names the option and the allowed values.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/array_file.h>
#include <tessera/dtype.h>
#include <tessera/error.h>
#include <tessera/option.h>
#include <tessera/quantities.h>
#include <tessera/shape.h>
#include <tessera/value.h>
#include <CLI/CLI.hpp>

namespace tessera::cli {

/// Runs `body`. If the message of an error does not begin with `path`, prepends it.
template <class Body>
decltype(auto) about_path(const std::string& path, Body&& body) {
    try {
        return std::forward<Body>(body)();
    } catch (const Error& e) {
        const std::string file = split_array_path(path).path.string();  // without a member
        if (e.code() == ErrorCode::cancelled || std::string_view(e.what()).starts_with(file)) throw;
        throw e.within(path);
    }
}

/// Runs `body`. An error about one of these settings, "axes: …", becomes one about the option: "--axes: …".
template <class Body>
decltype(auto) about_options(std::initializer_list<std::string_view> settings, Body&& body) {
    try {
        return std::forward<Body>(body)();
    } catch (const Error& e) {
        const std::string_view text = e.what();
        for (const std::string_view name : settings) {
            if (!text.starts_with(name) || !text.substr(name.size()).starts_with(": ")) continue;
            throw e.reworded(e.code(), "--" + std::string(text));
        }
        throw;
    }
}

/// Declares an option; `read` gets its value, or each of them if there may be several. `help` may name formats as in
/// result_options.h.
void declare_option(CLI::App& app, const Option& option, bool several, std::function<void(const Value&)> read);
[[nodiscard]] std::string help_text(std::string_view help);

/// Which options a command has.
using Choose = std::function<bool(const Option&)>;
/// Those of these names.
[[nodiscard]] Choose only_named(std::vector<std::string_view> names);
/// Those that do not apply to something of these alone: bits of Only.
[[nodiscard]] Choose without(unsigned only);

/// Declares the options of a value that has some (option.h), which must outlive the parse.
template <class Told>
void declare_options(CLI::App& app, Told& told, const Choose& choose = without(0)) {
    visit_options(told, [&](const Option& option, auto& member) {
        if (option.typed.empty() || !choose(option)) return;
        using Member = std::remove_reference_t<decltype(member)>;
        if constexpr (std::is_same_v<Member, bool>) {
            app.add_flag(std::string(option.typed), member, help_text(option.help));
        } else {
            declare_option(app, option, std::is_same_v<Member, std::vector<Value>>,
                           [&member](const Value& value) { read_member(value, member); });
        }
    });
}

/// What a selection may look like, for help texts.
inline constexpr const char* selection_forms = "'10:20, ::2, 5, ...' or 'time=2020-01:2020-06, lat~45'";

/// The help text of --raw.
inline constexpr const char* raw_text = "the stored codes, not what they stand for";

/// A whole number from `least` to `most`.
[[nodiscard]] int parse_number(std::string_view option, std::string_view text, int least, int most);
[[nodiscard]] Shape parse_shape_option(std::string_view option, std::string_view text);
/// The object given by --attrs; an empty one for "".
[[nodiscard]] Value parse_attributes_option(std::string_view text);
/// "zmeta, v1, v2 or v3": all formats, for help texts.
[[nodiscard]] std::string format_choices();

}  // namespace tessera::cli
