// A metadata document of any dialect: the first byte chooses it. What loads is saved again, and loads as the same.
#include <tessera/dialect.h>
#include <tessera/error.h>

#include <optional>

#include "fuzz.h"

using namespace tessera;

namespace {

/// Codecs aside, in which what was left out is written.
bool same(const ArrayMetadata& a, const ArrayMetadata& b) {
    return a.dtype == b.dtype && a.shape == b.shape && a.chunks == b.chunks && a.fill.bytes == b.fill.bytes &&
           a.fill.error == b.fill.error && a.keys == b.keys && a.dimension_names == b.dimension_names &&
           a.unknown == b.unknown && a.codecs.size() == b.codecs.size();
}

}  // namespace

void fuzz_one(ByteSpan input) {
    if (input.empty()) return;
    const auto dialects = dialect_table();
    const Dialect& dialect = *dialects[std::to_integer<std::size_t>(input.front()) % dialects.size()];
    const auto store = memory_store();
    store->put(dialect.metadata_key, input.subspan(1));
    if (dialect.metadata_key == "meta") store->put("attrs", std::as_bytes(std::span("{}", 2)));
    // The consolidated metadata of a group, which the same document is for some dialects.
    if (!dialect.consolidated_key.empty()) store->put(dialect.consolidated_key, input.subspan(1));
    try {
        (void)dialect.load_consolidated(*store);
    } catch (const Error&) {
        // It is no such document.
    }
    const ArrayMetadata loaded = load_metadata(dialect, *store);
    (void)dialect.remarks(loaded);
    (void)dialect.owns(loaded, "0.0");
    const auto copy = memory_store();
    const Value document = dialect.document(loaded);  // what has no codec that Tessera knows ends here
    dialect.save(*copy, loaded, nullptr);
    const ArrayMetadata again = load_metadata(dialect, *copy);
    if (!same(again, loaded) || !(dialect.document(again) == document)) __builtin_trap();
}
