// `tessera copy --package`.
#pragma once

#include <memory>
#include <string>

#include "command.h"

namespace tessera::cli {

struct PackageCall {
    std::string size, parity;
};
/// Declares --package and its --parity, which exclude all options that were declared before.
std::shared_ptr<PackageCall> declare_package(CLI::App& app);
int make_packages_of(Session& session, const PackageCall& o, const std::string& source, const std::string& folder);

}  // namespace tessera::cli
