// The journal of a batch of edits, in an array. No fuzzer guesses a SHA-256: the input is tried as it is, and with the
// right one at its end. What decodes is encoded again, to the same journal.
#include <tessera/dialect.h>
#include <tessera/error.h>

#include <cstring>

#include "fuzz.h"
#include "journal.h"
#include "journal_check.h"
#include "sha256.h"

using namespace tessera;

namespace {

constexpr const char* metadata = R"({"zarr_format": 2, "shape": [6, 4], "chunks": [2, 2], "dtype": "<i4",
    "compressor": null, "fill_value": 0, "filters": null, "order": "C"})";

void decode(ByteSpan input) {
    const Journal journal = decode_journal(input, "the journal");
    const Journal again = decode_journal(encode_journal(journal), "the journal");
    if (again.entries.size() != journal.entries.size() || again.id != journal.id) __builtin_trap();
    (void)changes_text(journal);
    const auto store = memory_store();
    store->put(".zarray", std::as_bytes(std::span(metadata, std::strlen(metadata))));
    for (const std::string& name : {std::string("0"), staged_name(1, 0)}) {
        store->put(".tessera/batch/" + name, std::as_bytes(std::span("0123456789abcdef", 16)));
    }
    require_applicable(*store, ".tessera/batch", journal, "the journal");
    for (const Journal::Entry& entry : journal.entries) {
        if (entry.key.find("..") != std::string::npos || entry.key.starts_with(".tessera")) __builtin_trap();
        if (entry.kind == Journal::Entry::Kind::erase && entry.key == ".zarray") __builtin_trap();
    }
}

}  // namespace

void fuzz_one(ByteSpan input) {
    try {
        decode(input);
    } catch (const Error&) {
        // Almost always because of its SHA-256.
    }
    Hasher hasher;
    hasher.add(input.data(), input.size());
    const Sha256 hash = hasher.finish();
    Buffer whole(input);
    whole.append(std::as_bytes(std::span(hash)));
    decode(whole);
}
