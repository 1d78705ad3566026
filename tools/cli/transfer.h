// import, export, copy, rechunk, and what other recipes make: one engine, copy_hierarchy, with one set of options.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <tessera/array_file.h>
#include <tessera/array_io.h>
#include <tessera/copy.h>
#include <tessera/divided_recipe.h>
#include <tessera/error.h>
#include <tessera/recipe.h>
#include <tessera/result_options.h>

#include "command.h"
#include "options.h"

namespace tessera::cli {

struct TransferOptions {
    std::string source, destination;
    Recipe recipe = {};  ///< what is made; by default a copy of `source`
    ResultOptions result = {};
    std::optional<std::string> as;  ///< the format of an array file that is a pipe
    /// Opens a source that is not at a path (several arrays in one). `source` is then its name, and `state` identifies
    /// its version.
    std::function<std::unique_ptr<ArraySource>()> open;
    std::string state;
    std::shared_ptr<const DividedRecipe> set;  ///< what is made in place of one array
    std::shared_ptr<const OpenedRecipe> made;  ///< what `open` gives, for the options that its result leaves open
};

/// Runs the transfer and prints a report, in which `done` is the verb: "imported".
int transfer(Session& session, TransferOptions options, std::string_view done);
/// Makes `options.destination` as `options.recipe` says, or plans a job that does, and reports.
int make_recipe(Session& session, TransferOptions options, std::string_view done);

/// The options for the whole copy. `session` must outlive it.
[[nodiscard]] HierarchyOptions hierarchy_options(Session& session, const TransferOptions& options);
/// What new arrays are wished to be, as the settings have it, too.
[[nodiscard]] ArrayWishes wishes_of(const TransferOptions& options);

/// Opens the source, which may be a pipe, as the recipe shows it.
[[nodiscard]] std::unique_ptr<ArraySource> open_given(Session& session, const TransferOptions& options);
[[nodiscard]] std::unique_ptr<ArraySource> open_given(Session& session, const TransferOptions& options,
                                                      const Located& source);

/// Declares SRC and DST.
void declare_places(CLI::App& app, TransferOptions& options,
                    const char* source = "an array, an array file or a member of one",
                    const char* destination = "a directory, or a .zip or array file by its extension");
/// Declares the options of the recipe and of the result.
void declare_transfer(CLI::App& app, TransferOptions& options, const Choose& choose);
/// The same for a recipe of which `Made` is the kind.
template <class Made>
std::shared_ptr<TransferOptions> declare_recipe(CLI::App& app) {
    auto o = std::make_shared<TransferOptions>();
    o->recipe.make = Made{};
    declare_places(app, *o);
    declare_transfer(app, *o, without(only_copies));
    return o;
}

/// Whether a path ends in an array file's extension, so that a file and not an array directory is meant.
[[nodiscard]] bool names_array_file(const std::string& path);

/// The error in the program's words: "by: …" becomes "--by: …", and any other about the only array names it.
[[nodiscard]] Error about_option(const Error& error, const TransferOptions& options);
/// Runs `body` with errors as about_option() words them.
template <class Body>
decltype(auto) about_recipe(const TransferOptions& options, Body&& body) {
    try {
        return std::forward<Body>(body)();
    } catch (const Error& e) {
        throw about_option(e, options);
    }
}

}  // namespace tessera::cli
