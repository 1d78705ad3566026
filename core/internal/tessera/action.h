// How advice (error.h) becomes a text. The program says it in options and commands, Python in keywords and functions:
// each has one table of names.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/error.h>

namespace tessera {

/// The name that an interface has for an action, without its value and with it ("{}").
struct ActionName {
    Action action;
    std::string_view name;
    std::string_view with_value = {};
};

/// "; NAME EFFECT, NAME EFFECT", to stand after a message; empty without advice. Actions that `names` lacks are left
/// out.
[[nodiscard]] std::string advice_text(const std::vector<Advice>& advice, std::span<const ActionName> names);

}  // namespace tessera
