// `tessera copy --package`.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "command.h"

namespace tessera::cli {

struct PackageCall {
    std::string size, parity;
    std::vector<const CLI::Option*> others;  ///< of which none may be given beside --package
};
/// Declares --package and its --parity, which take none of the options that were declared before.
std::shared_ptr<PackageCall> declare_package(CLI::App& app);
int make_packages_of(Session& session, const PackageCall& o, const std::string& source, const std::string& folder);

}  // namespace tessera::cli
