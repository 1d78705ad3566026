#include "package.h"

#include <fmt/format.h>
#include <tessera/error_text.h>
#include <tessera/packages.h>
#include <tessera/place.h>
#include <tessera/quantities.h>
#include <tessera/report_values.h>
#include <tessera/seal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>

#include "hierarchy.h"
#include "report.h"

namespace tessera::cli {

std::shared_ptr<PackageCall> declare_package(CLI::App& app) {
    auto o = std::make_shared<PackageCall>();
    const auto before = app.get_options([](const CLI::Option* option) { return option->nonpositional(); });
    CLI::Option* const package =
        app.add_option(
               "--package", o->size,
               "make DST a folder of zips of at most this size, as a tape takes them, with an index that opens as\n"
               "the whole; chunks stay as they are")
            ->option_text("10G");
    app.add_option("--parity", o->parity,
                   "parity of the packages, from which `repair DST` restores lost ones: 10%, "
                   "or how many")
        ->option_text("HOW-MUCH")
        ->needs(package);
    // Help is declared anew later.
    std::ranges::copy_if(before, std::back_inserter(o->others),
                         [&](const CLI::Option* option) { return option != app.get_help_ptr(); });
    return o;
}

int make_packages_of(Session& session, const PackageCall& o, const std::string& source, const std::string& folder) {
    if (session.planning) throw invalid_argument("--package: packages are made at once, and not by a job");
    for (const CLI::Option* const option : o.others) {
        if (option->count() == 0) continue;
        throw invalid_argument("{}: is not of --package, which copies files as they are", option->get_name());
    }
    PackageOptions how{.size = parse_bytes("--package", o.size), .io = session.io(), .store = session.store()};
    if (!o.parity.empty()) how.parity = parse_redundancy(o.parity);
    const StoreOptions reading = options_to_copy(source, session.store());
    const Packaged made =
        at_place(source, reading, [&](const Place& place) { return make_packages(place, folder, how); });
    session.clear_progress();
    std::string text =
        fmt::format("packaged {} → {} ({}, {} in {}", source, folder, count_text(made.packages, "package"),
                    bytes_text(made.bytes), count_text(made.files, "file"));
    if (made.parity_bytes > 0) text += fmt::format(", and parity of {}", bytes_text(made.parity_bytes));
    report(session, packaged_value(source, folder, made), text + ")");
    return exit_done;
}

}  // namespace tessera::cli
