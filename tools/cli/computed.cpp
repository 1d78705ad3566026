#include "computed.h"

#include <algorithm>
#include <utility>

#include <tessera/copy.h>

#include "hierarchy.h"
#include "job.h"
#include "options.h"
#include "transfer_report.h"

namespace tessera::cli {

std::int64_t computing_memory(const Session& session) {
    return tessera::computing_memory(
        {.threads = session.options().threads, .max_memory = session.options().max_memory});
}

int write_computed(Session& session, const TransferOptions& o, const ArraySource& source, const ComputedFrom& from,
                   std::string_view done) {
    const bool to_file = names_array_file(o.destination);
    require_fitting_options(o, to_file);
    require_distinct_dims(o.dimensions);
    if (!to_file) require_no_other_file(o.destination);
    if (session.planning) return plan_transfer(session, o);
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
