#include "transfer_report.h"

#include <fmt/format.h>

#include <tessera/convert.h>
#include <tessera/key_value_store.h>
#include <utility>

#include "advice.h"
#include "report.h"
#include "tree.h"

namespace tessera::cli {

namespace {

std::string place_of(const TransferOptions& o, const PlannedCopy& job) {
    return job.node.empty() ? o.destination : join_key(o.destination, job.node);
}

Value made_value(const CopiedArray& made) {
    Value value = Value::object();
    value.set("path", path_value(made.path));
    if (!made.format.empty()) value.set("format", made.format);
    value.set("dtype", made.dtype.to_string());
    value.set("shape", shape_value(made.shape));
    if (made.chunk_shape) {
        value.set("chunks", shape_value(*made.chunk_shape));
        const bool sharded = !made.shard_shape.empty();
        value.set("chunks_stored", sharded ? Value() : Value(made.chunks));
        value.set("shards_stored", sharded ? Value(made.chunks) : Value());
        value.set("shards", sharded ? shape_value(made.shard_shape) : Value());
    }
    value.set("logical_bytes", made.logical());
    if (made.bytes) {
        value.set("stored_bytes", *made.bytes);
        value.set("ratio", ratio(made.logical(), *made.bytes));
    }
    return value;
}

std::string made_text(const CopiedArray& made, std::string_view done) {
    const std::uint64_t bytes = made.bytes.value_or(0);
    std::string chunks;
    if (made.chunk_shape && made.shard_shape.empty()) {
        chunks = fmt::format("{} of {}, ", count_text(made.chunks, "chunk"), shape_text(*made.chunk_shape));
    } else if (made.chunk_shape) {
        chunks = fmt::format("{} of {} with chunks of {}, ", count_text(made.chunks, "shard"),
                             shape_text(made.shard_shape), shape_text(*made.chunk_shape));
    }
    return fmt::format("{} {} {}, {} → {} ({}{}{}{}, ratio {})", done, shape_text(made.shape), made.dtype.to_string(),
                       bytes_text(made.logical()), made.path, made.format, made.format.empty() ? "" : ", ", chunks,
                       bytes_text(bytes), ratio_text(made.logical(), bytes));
}

Value planned_value(const TransferOptions& o, const PlannedCopy& job) {
    const ArrayMetadata& m = job.plan.metadata;
    const ChunkLayout layout = chunk_layout(m);
    Value value = Value::object();
    value.set("source", path_value(job.source));
    value.set("path", path_value(place_of(o, job)));
    value.set("format", job.plan.dialect->name);
    value.set("dtype", m.dtype.to_string());
    value.set("shape", shape_value(m.shape));
    value.set("chunks", shape_value(layout.chunks));
    if (!layout.shards.empty()) value.set("shards", shape_value(layout.shards));
    if (!layout.edges.empty()) {
        value.set(layout.shards.empty() ? "chunk_lengths" : "shard_lengths", lengths_text(layout.edges));
    }
    value.set("codec", codecs_text(layout.codecs));
    value.set("chunks_copied_as_they_are", !job.plan.recode);
    value.set("because", job.plan.recode ? Value(*job.plan.recode) : Value());
    Value changes = Value::array();
    for (const Note& change : job.plan.changes) changes.push_back(advised(change.text, change.advice));
    value.set("changes", std::move(changes));
    return value;
}

std::string planned_text(const TransferOptions& o, const PlannedCopy& job) {
    const ArrayMetadata& m = job.plan.metadata;
    const ChunkLayout layout = chunk_layout(m);
    std::string text = printable(fmt::format("{} → {}: {} {}, {}, {}, {}", job.source, place_of(o, job),
                                             shape_text(m.shape), m.dtype.to_string(), job.plan.dialect->name,
                                             layout_text(layout), codecs_text(layout.codecs)));
    text += "\n";
    text += job.plan.recode ? printable(fmt::format("  chunks are encoded anew: {}", *job.plan.recode))
                            : fmt::format("  chunk files are {} as they are", o.result.link ? "linked" : "copied");
    for (const Note& change : job.plan.changes) text += "\n" + printable("  " + advised(change.text, change.advice));
    return text + "\n";
}

/// The report of a transfer for --json: one array or several, directories or a file.
Value transfer_value(const TransferOptions& o, const std::string& path, Value arrays,
                     const std::vector<LeftOut>& lacking) {
    Value left_out = Value::array();
    for (const LeftOut& array : lacking) {
        Value one = Value::object();
        one.set("source", path_value(array.source));
        one.set("because", array.why);
        left_out.push_back(std::move(one));
    }
    Value value = Value::object();
    value.set("path", path_value(path));
    value.set("dry_run", o.result.dry_run);
    value.set("arrays", std::move(arrays));
    value.set("left_out", std::move(left_out));
    return value;
}

/// Everything that the copy lacks: unreadable arrays, and folders that the walk did not enter.
std::vector<LeftOut> lacking(const TransferOptions& o, const CopiedHierarchy& copied) {
    std::vector<LeftOut> all = copied.left_out;
    for (const PassedFolder& folder : copied.passed) {
        all.push_back({folder.path, join_key(o.source, folder.path), passed_text(folder)});
    }
    return all;
}

}  // namespace

void note_lacking(Session& session, const TransferOptions& o, const CopiedHierarchy& copied) {
    if (copied.path != o.destination) {
        session.note(fmt::format(
            "{} was not replaced, because the copy lacks {}; the copy is in {}; --skip-bad replaces it anyway",
            o.destination, count_text(std::ssize(copied.left_out), "array"), copied.path));
    }
    for (const LeftOut& one : lacking(o, copied)) {
        session.note(fmt::format("{} is left out: {}", one.source, one.why));
    }
}

void report_plan(Session& session, const TransferOptions& o, const CopiedHierarchy& copied) {
    if (session.options().json) {
        Value list = Value::array();
        for (const PlannedCopy& job : copied.planned) list.push_back(planned_value(o, job));
        for (const CopiedArray& one : copied.made) list.push_back(made_value(one));
        print_json(transfer_value(o, o.destination, std::move(list), copied.left_out));
        return;
    }
    for (const PlannedCopy& job : copied.planned) print(planned_text(o, job));
    for (const CopiedArray& one : copied.made) {
        print(printable(fmt::format("{} would hold {} {} ({})", one.path, shape_text(one.shape), one.dtype.to_string(),
                                    bytes_text(one.logical()))) +
              "\n");
    }
}

void report_copied(Session& session, const TransferOptions& o, const CopiedHierarchy& copied, std::string_view done) {
    if (session.options().json) {
        Value list = Value::array();
        for (const CopiedArray& one : copied.made) list.push_back(made_value(one));
        Value value = transfer_value(o, copied.path, std::move(list), lacking(o, copied));
        value.set("stored_bytes", copied.bytes);
        print_json(value);
    } else if (copied.one_file && !session.options().quiet) {
        print(printable(fmt::format("{} {} → {} ({})", done, count_text(std::ssize(copied.made), "array"), copied.path,
                                    bytes_text(copied.bytes))) +
              "\n");
    } else if (!session.options().quiet) {
        for (const CopiedArray& one : copied.made) print(printable(made_text(one, done)) + "\n");
    }
}

}  // namespace tessera::cli
