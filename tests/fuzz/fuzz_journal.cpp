// The journal of a batch of edits, in an array. No fuzzer guesses a SHA-256: the input is tried as it is, and with the
// right last line. What is read is written again, to the same journal.
#include <tessera/dialect.h>
#include <tessera/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "fuzz.h"
#include "journal.h"
#include "journal_check.h"
#include "sha256.h"

using namespace tessera;

namespace {

constexpr const char* metadata = R"({"zarr_format": 2, "shape": [6, 4], "chunks": [2, 2], "dtype": "<i4",
    "compressor": null, "fill_value": 0, "filters": null, "order": "C"})";

Journal read_back(KeyValueStore& store, ByteSpan bytes) {
    constexpr const char* key = ".tessera/batch/journal";
    store.put(key, bytes);
    return read_journal(*store.open(key), "the journal");
}

void decode(ByteSpan input) {
    const auto store = memory_store();
    const Journal journal = read_back(*store, input);
    const Buffer first = encode_journal(journal);
    const Buffer second = encode_journal(read_back(*store, first.span()));
    if (!std::ranges::equal(first.span(), second.span())) __builtin_trap();
    (void)changes_text(journal);
    store->put(".zarray", std::as_bytes(std::span(metadata, std::strlen(metadata))));
    store->put(".tessera/batch/" + value_name(1, 0), std::as_bytes(std::span("0123456789abcdef", 16)));
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
    const std::string last = fmt::format("{{\"committed\":{},\"sha256\":\"{}\"}}\n",
                                         std::ranges::count(input, std::byte{'\n'}) - 1, hex(hasher.finish()));
    Buffer whole(input);
    whole.append(std::as_bytes(std::span(last)));
    decode(whole);
}
