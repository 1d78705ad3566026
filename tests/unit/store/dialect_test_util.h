// Documents put into a store in memory, loaded by one dialect, and what it writes again.
#pragma once

#include <gtest/gtest.h>
#include <tessera/dialect.h>

#include <string>
#include <utility>
#include <vector>

#include "expect_error.h"
#include "metadata_json.h"

namespace tessera {

inline std::string get_text(const ReadableStore& store, std::string_view key) {
    Buffer bytes;
    return store.get(key, bytes) ? std::string(text_of(bytes)) : "(absent)";
}

inline void put_text(KeyValueStore& store, std::string_view key, std::string_view text) {
    store.put(key, std::as_bytes(std::span(text)));
}

using Changes = std::vector<std::pair<std::string, std::string>>;  ///< member to JSON; "" removes it

/// A dialect, and a document of it that others are made from.
struct DialectUnderTest {
    const Dialect& dialect;
    std::string document;

    [[nodiscard]] Value changed(const Changes& changes) const {
        Value meta = Value::parse(document);
        for (const auto& [name, json] : changes) {
            if (json.empty()) {
                meta.erase(name);
            } else {
                meta.set(name, Value::parse(json));
            }
        }
        return meta;
    }
    [[nodiscard]] ArrayMetadata load(const Changes& changes) const { return load_document(changed(changes)); }
    [[nodiscard]] ArrayMetadata load_document(const Value& meta) const {
        const auto store = memory_store();
        put_text(*store, dialect.metadata_key, meta.dump());
        return load_metadata(dialect, *store);
    }
    [[nodiscard]] Value saved(const ArrayMetadata& m) const {
        const auto store = memory_store();
        dialect.save(*store, m, nullptr);
        return Value::parse(get_text(*store, dialect.metadata_key));
    }
    /// That such a document is read, and written again with the same members.
    void kept(const Changes& changes) const {
        const Value meta = changed(changes);
        SCOPED_TRACE(meta.dump());
        EXPECT_EQ(saved(load_document(meta)), meta);
    }
    /// That a document with one member changed is refused.
    void wrong(const std::string& name, const std::string& json, std::string_view message,
               ErrorCode code = ErrorCode::corrupt) const {
        SCOPED_TRACE(name + ": " + json);
        expect_error(code, message, [&] { (void)load({{name, json}}); });
        expect_error(code, dialect.metadata_key, [&] { (void)load({{name, json}}); });
    }
    /// That metadata cannot be expressed.
    template <class Change>
    void refused(std::string_view message, Change&& change, ErrorCode code = ErrorCode::unsupported) const {
        ArrayMetadata m = load(Changes{});
        change(m);
        expect_error(code, message, [&] { dialect.require_expressible(m); });
        const auto store = memory_store();
        EXPECT_THROW(dialect.save(*store, m, nullptr), Error);
        EXPECT_TRUE(store->list("").keys.empty()) << "nothing is written then";
    }
};

/// The names of a chain's codecs.
inline std::vector<std::string> names_of(const ArrayMetadata& m) {
    std::vector<std::string> names;
    for (const CodecConfig& codec : m.codecs) names.push_back(codec.name);
    return names;
}

/// The fill as JSON.
inline Value fill_of(const ArrayMetadata& m) {
    const ElementBytes bytes = fill_element(m);
    if (m.dtype.is_variable()) return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return element_to_value(m.dtype, bytes.data());
}

}  // namespace tessera
