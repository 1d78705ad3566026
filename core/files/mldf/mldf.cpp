// MLDF as a format of array files.
#include <tessera/mldf.h>

#include <fmt/format.h>

#include "array_file_row.h"

namespace tessera {

namespace {

bool mldf_recognise(ByteSpan first) {
    return starts_with(first, "\x89MLDF");  // the reader reports damage in the rest of the magic
}

std::vector<std::string> mldf_list(const ArrayPath& path) {
    return MldfReader(path.bytes()).arrays();
}

std::unique_ptr<ArraySource> mldf_open(const ArrayPath& path, const ArrayFileOptions&) {
    const MldfReader reader(path.bytes());
    return reader.open(chosen_member(path, reader.arrays()));
}

std::unique_ptr<ArraySink> mldf_create(const ArrayPath& path, const DType& dtype, const Shape& shape,
                                       const ArrayFileOptions& options) {
    return create_mldf(path.path, path.member.value_or("data"), dtype, shape, {.durable = options.durable});
}

/// The header's facts, and the damage that shows without reading the data.
Value mldf_describe(const ArrayPath& path) {
    const std::shared_ptr<const ByteSource> file = path.bytes();
    Value facts = mldf_summary(MldfReader(file));
    const MldfReport report = validate_mldf(file, {.payloads = false, .limit = 20});
    facts.set("format", "mldf");
    facts.set("problem_count", report.finding_count);
    facts.set("problems", Value::Array(report.findings.begin(), report.findings.end()));
    return facts;
}

/// Reports all damage, also in payloads. Intact arrays need no reading of their elements.
void mldf_check(const ArrayPath& path, ArrayFileChecker& checker) {
    const MldfReport found = validate_mldf(path.path);
    for (const std::string& text : found.findings) checker.damage(text);
    if (found.finding_count > found.findings.size()) {
        checker.damage(fmt::format("and {} more", found.finding_count - found.findings.size()));
    }
    if (found.findings.empty()) checker.count_arrays(std::ssize(MldfReader(path.bytes()).arrays()));
}

void mldf_bundle(const std::filesystem::path& path, const ArrayBundle& bundle, const ArrayFileOptions& options,
                 const IoOptions& io) {
    std::vector<std::unique_ptr<ArraySource>> sources;
    std::vector<MldfColumn> columns;
    for (const std::string& name : bundle.names) {
        sources.push_back(bundle.open(name));
        bundle.made(name, sources.back()->info());
        columns.push_back({.name = name, .source = sources.back().get()});
    }
    write_mldf(path, columns, {.durable = options.durable}, io);
}

}  // namespace

extern constinit const ArrayFileFormat mldf_format{
    .name = "mldf",
    .extension = ".mldf",
    .about = "MLDF data set, one array for each field",
    .recognise = mldf_recognise,
    .members = mldf_list,
    .open = mldf_open,
    .create = mldf_create,
    .describe = mldf_describe,
    .check = mldf_check,
    .bundle = mldf_bundle,
};

}  // namespace tessera
