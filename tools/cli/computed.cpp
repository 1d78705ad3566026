#include "computed.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include <tessera/array.h>
#include <tessera/cast.h>
#include <tessera/copy_hierarchy.h>
#include <tessera/error.h>

#include "hierarchy.h"
#include "options.h"
#include "overlap.h"
#include "transfer_report.h"

namespace tessera::cli {

namespace {

std::string names_text(const std::vector<std::optional<std::string>>& names) {
    std::string text;
    for (std::size_t d = 0; d < names.size(); ++d) {
        if (d > 0) text += ',';
        text += names[d].value_or("");
    }
    return text;
}

std::string shape_option(const Shape& shape) {
    std::string text;
    for (const std::int64_t n : shape) text += fmt::format("{}{}", text.empty() ? "" : ",", n);
    return text;
}

/// Completes unset options from the source.
TransferOptions completed(const TransferOptions& given, const ArraySource& source, const ComputedFrom& from) {
    TransferOptions o = given;
    if (!o.format) {
        const Dialect* above = format_above(o.destination);
        const auto* cast = dynamic_cast<const CastSource*>(from.like);
        const auto* like = dynamic_cast<const Array*>(cast != nullptr ? &cast->array() : from.like);
        if (above != nullptr) {
            o.format = above->name;
        } else if (like != nullptr) {
            o.like_format = like->dialect().name;
        }
    }
    const int rank = source.info().shape.rank();
    if (!o.chunks && rank > 0 && from.chunks.rank() == rank) o.chunks = shape_option(from.chunks);
    if (!o.dimensions && rank > 0 && std::cmp_equal(from.dimension_names.size(), rank)) {
        o.dimensions = names_text(from.dimension_names);
    }
    return o;
}

}  // namespace

std::int64_t computing_memory(const Session& session) {
    const int threads = thread_count({.threads = session.options().threads});
    constexpr std::int64_t least = std::int64_t{1} << 18;
    return std::max(least, static_cast<std::int64_t>(session.options().max_memory) / 4 / threads);
}

int write_computed(Session& session, const TransferOptions& given, const ArraySource& source, const ComputedFrom& from,
                   std::string_view done) {
    const bool to_file = names_array_file(given.destination);
    require_fitting_options(given, to_file);
    require_distinct_dims(given.dimensions);
    if (!to_file) require_no_other_file(given.destination);
    require_apart(from.paths, given.destination);
    const TransferOptions o = to_file ? given : completed(given, source, from);
    HierarchyOptions options = hierarchy_options(session, o, to_file);
    options.view = nullptr;  // the source is converted already
    const CopiedHierarchy copied = copy_hierarchy(source, o.destination, options);
    session.clear_progress();
    if (o.dry_run) {
        report_plan(session, o, copied);
    } else {
        report_copied(session, o, copied, done);
    }
    return exit_done;
}

}  // namespace tessera::cli
