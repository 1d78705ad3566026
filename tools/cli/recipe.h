// Commands that make an array of others: their options, and what they do, told by the library's recipes.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include <tessera/error.h>
#include <tessera/recipe.h>
#include <CLI/CLI.hpp>

#include "transfer.h"

namespace tessera::cli {

/// The error in the program's words: "by: …" becomes "--by: …", and any other about the only array names it.
[[nodiscard]] Error about_option(const Error& error, const Recipe& recipe);

/// Runs `body` with errors as about_option() words them.
template <class Body>
decltype(auto) about_recipe(const Recipe& recipe, Body&& body) {
    try {
        return std::forward<Body>(body)();
    } catch (const Error& e) {
        throw about_option(e, recipe);
    }
}

/// Declares the options of a recipe. The result reads what was typed into `made`, which must be the declared one.
template <class Made>
std::function<void()> declare_recipe(CLI::App& app, const std::shared_ptr<Made>& made) {
    auto reads = std::make_shared<std::vector<std::function<void()>>>();
    visit_options(*made, [&](const Option& option, auto& member) {
        if (option.typed.empty()) return;
        using Member = std::remove_reference_t<decltype(member)>;
        CLI::Option* declared = nullptr;
        if constexpr (std::is_same_v<Member, bool>) {
            declared = app.add_flag(std::string(option.typed), member, std::string(option.help));
        } else {
            auto text = std::make_shared<std::optional<std::string>>();
            declared = app.add_option(std::string(option.typed), *text, std::string(option.help))
                           ->option_text(std::string(option.value) + (option.required ? " (required)" : ""));
            // `made` keeps the member.
            reads->push_back([made, text, &member, typed = option.typed] {
                if (*text) in_context([&] { return typed; }, [&] { read_member(Value(**text), member); });
            });
        }
        if (option.required) declared->required();
    });
    return [reads] {
        for (const auto& read : *reads) read();
    };
}

/// Makes `out.destination`, or plans a job that does, and reports. `open` opens what the recipe names.
int make_recipe(Session& session, TransferOptions out, Recipe recipe, std::string_view done,
                const OpenIngredient& open = nullptr);

}  // namespace tessera::cli
