#include "computed.h"

#include <algorithm>
#include <utility>

#include <tessera/copy_hierarchy.h>

#include "hierarchy.h"
#include "options.h"
#include "transfer_report.h"

namespace tessera::cli {

std::int64_t computing_memory(const Session& session) {
    const int threads = thread_count({.threads = session.options().threads});
    constexpr std::int64_t least = std::int64_t{1} << 18;
    return std::max(least, static_cast<std::int64_t>(session.options().max_memory) / 4 / threads);
}

int write_computed(Session& session, const TransferOptions& o, const ArraySource& source, const ComputedFrom& from,
                   std::string_view done) {
    const bool to_file = names_array_file(o.destination);
    require_fitting_options(o, to_file);
    require_distinct_dims(o.dimensions);
    if (!to_file) require_no_other_file(o.destination);
    HierarchyOptions options = hierarchy_options(session, o, to_file);
    options.view = nullptr;  // the source is converted already
    const CopiedHierarchy copied = tessera::write_computed(source, o.destination, from, std::move(options));
    session.clear_progress();
    if (o.dry_run) {
        report_plan(session, o, copied);
    } else {
        report_copied(session, o, copied, done);
    }
    return exit_done;
}

}  // namespace tessera::cli
