#include <tessera/action.h>

#include <algorithm>
#include <memory>

#include <fmt/format.h>

namespace tessera {

std::string advice_text(const std::vector<Advice>& advice, std::span<const ActionName> names) {
    std::string text;
    for (const Advice& one : advice) {
        const auto* const row = std::to_address(std::ranges::find(names, one.action, &ActionName::action));
        if (row == names.data() + names.size()) continue;
        text += text.empty() ? "; " : ", ";
        if (one.effect.empty()) text += "give ";
        text += one.value.empty() ? std::string(row->name) : fmt::format(fmt::runtime(row->with_value), one.value);
        if (!one.effect.empty()) text += " " + one.effect;
    }
    return text;
}

}  // namespace tessera
