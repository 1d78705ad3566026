#include <tessera/report_values.h>

#include <optional>
#include <utility>

#include <tessera/json.h>
#include <tessera/node_facts.h>

namespace tessera {

namespace {

Value set_aside_value(const SetAside& files) {
    Value value = Value::object();
    value.set("files", files.files);
    value.set("bytes", files.bytes);
    return value;
}

Value mean_value(const Statistics& s) {
    if (s.mean_date) return *s.mean_date;
    return s.mean ? Value(*s.mean) : Value();
}

Value histogram_value(const std::optional<Histogram>& h) {
    if (!h) return {};
    Value value = Value::object();
    value.set("start", h->start);
    value.set("width", h->width);
    value.set("counts", Value::Array(h->counts.begin(), h->counts.end()));
    return value;
}

}  // namespace

Value finding_value(const Finding& finding, Advised advised) {
    Value value = Value::object();
    value.set("kind", kind_name(finding.kind));
    value.set("node", finding.node);
    value.set("key", finding.key);
    value.set("chunk", finding.chunk ? shape_value(*finding.chunk) : Value());
    if (finding.inner) value.set("inner", shape_value(*finding.inner));
    value.set("text", advised(finding.text, finding.advice));
    if (!finding.rule.empty()) value.set("rule", finding.rule);
    value.set("repairable", finding.remedy != Remedy::none);
    return value;
}

Value verified_counts(const VerifyReport& report) {
    Value value = Value::object();
    value.set("sound", report.sound());
    for (const FindingKind kind :
         {FindingKind::damage, FindingKind::changed, FindingKind::lost, FindingKind::absent, FindingKind::added,
          FindingKind::unchecked, FindingKind::leftover, FindingKind::note}) {
        value.set(kind_name(kind), kind == FindingKind::absent ? report.absent : report.count(kind));
    }
    value.set("arrays", report.arrays);
    value.set("groups", report.groups);
    value.set("chunks", report.chunks);
    value.set("missing", report.missing);
    value.set("bytes", report.bytes);
    value.set("seals", report.seals);
    value.set("files_as_sealed", report.sealed);
    return value;
}

Value repaired_counts(const RepairReport& report) {
    return {{"sound", report.mended()},
            {"done", report.done},
            {"lost_elements", report.lost()},
            {"remaining", std::ssize(report.remaining)}};
}

Value sealed_counts(const Sealed& sealed) {
    return {{"sound", true}, {"files", sealed.files}, {"bytes", sealed.bytes}, {"written", sealed.written}};
}

Value verified_value(const std::string& path, const VerifyReport& report, Advised advised) {
    Value value{{"path", path}};
    const Value counts = verified_counts(report);
    for (const auto& [key, count] : counts.as_object()) value.set(key, count);
    Value findings = Value::array();
    for (const Finding& finding : report.findings) findings.push_back(finding_value(finding, advised));
    value.set("findings", std::move(findings));
    return value;
}

Value repaired_value(const std::string& path, const RepairReport& report, bool dry_run, Advised advised) {
    Value value = Value::object();
    value.set("path", path);
    value.set("dry_run", dry_run);
    value.set("mended", report.mended());
    value.set("done", report.done);
    value.set("lost_elements", report.lost());
    Value actions = Value::array();
    for (const Repaired& one : report.actions) {
        Value action = finding_value(one.finding, advised);
        action.set("done", one.done);
        action.set("outcome", one.text);
        action.set("lost_elements", one.lost);
        actions.push_back(std::move(action));
    }
    value.set("actions", std::move(actions));
    Value remaining = Value::array();
    for (const Finding& finding : report.remaining) remaining.push_back(finding_value(finding, advised));
    value.set("remaining", std::move(remaining));
    value.set("set_aside", set_aside_value(report.set_aside));
    value.set("dropped", set_aside_value(report.dropped));
    return value;
}

Value sealed_value(const std::string& path, const std::string& manifest, const Sealed& sealed) {
    return Value{{"path", path},
                 {"manifest", manifest},
                 {"files", sealed.files},
                 {"bytes", sealed.bytes},
                 {"written", sealed.written},
                 {"parity_bytes", sealed.parity_bytes},
                 {"outside", sealed.outside}};
}

Value ocfl_value(const std::string& path, const std::string& id, const OcflVersionAdded& added) {
    return Value{{"path", path},
                 {"id", id},
                 {"version", added.version},
                 {"object", added.folder.string()},
                 {"files", added.files},
                 {"stored", added.stored},
                 {"bytes", added.bytes},
                 {"written", added.written},
                 {"outside", added.outside}};
}

Value snapshot_value(const SnapshotInfo& info) {
    Value value = Value::object();
    value.set("name", info.name);
    value.set("path", info.path.string());
    value.set("of", info.node);
    value.set("made", info.made);
    value.set("arrays", info.arrays);
    value.set("files", info.files);
    value.set("bytes", info.bytes);
    value.set("reflinked", info.reflinked);
    value.set("linked", info.linked);
    value.set("copied", info.copied);
    value.set("sums", info.sums);
    return value;
}

Value indexed_value(const std::string& path, const Indexed& made) {
    return Value{{"path", path},         {"chunks", made.chunks},       {"kept", made.kept},
                 {"read", made.counted}, {"unsettled", made.unsettled}, {"bytes", made.bytes}};
}

Value difference_value(const Difference& found) {
    Value value = Value::object();
    value.set("equal", found.none());
    Value structure = Value::array();
    for (const std::string& text : found.structure) structure.push_back(text);
    value.set("structure", std::move(structure));
    value.set("elements", found.elements);
    value.set("different", found.different);
    Value first = Value::array();
    for (const Difference::Place& place : found.first) {
        Value one = Value::object();
        one.set("index", shape_value(place.index));
        one.set("a", place.json_a);
        one.set("b", place.json_b);
        first.push_back(std::move(one));
    }
    value.set("first", std::move(first));
    value.set("largest", found.largest ? Value(*found.largest) : Value());
    value.set("largest_at", found.largest ? shape_value(found.largest_at) : Value());
    value.set("codes", found.codes.empty() ? Value() : Value(found.codes));
    return value;
}

Value seal_difference_value(const SealDifference& found) {
    const auto names = [](const std::vector<std::string>& paths) {
        Value list = Value::array();
        for (const std::string& path : paths) list.push_back(path);
        return list;
    };
    return {{"equal", found.none()},
            {"same", found.same},
            {"different", names(found.different)},
            {"only_in_a", names(found.only_in_a)},
            {"only_in_b", names(found.only_in_b)}};
}

Value packaged_value(const std::string& path, const std::string& folder, const Packaged& made) {
    return {{"path", path},        {"folder", folder},    {"packages", made.packages},
            {"files", made.files}, {"bytes", made.bytes}, {"parity_bytes", made.parity_bytes}};
}

void add_statistics(Value& value, const Statistics& s) {
    value.set("dtype", s.dtype.to_string());
    value.set("count", s.count);
    const bool integers = s.dtype.kind() == Kind::integer || s.dtype.kind() == Kind::unsigned_integer;
    value.set("nan", integers ? 0 : s.nans);
    value.set("missing", s.nans);
    value.set("fill", s.fills);
    value.set("min", s.min_json);
    value.set("max", s.max_json);
    value.set("mean", mean_value(s));
    value.set("deviation", s.deviation ? Value(*s.deviation) : Value());
    value.set("histogram", histogram_value(s.histogram));
}

}  // namespace tessera
