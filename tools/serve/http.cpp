#include "http.h"

#include <fmt/format.h>
#include <tessera/error_text.h>
#include <tessera/json.h>
#include <tessera/percent.h>

#include <charconv>
#include <cstring>
#include <utility>

namespace tessera::serve {

std::optional<std::string_view> HttpRequest::parameter(std::string_view name) const {
    const auto found = query.find(name);
    return found == query.end() ? std::nullopt : std::optional<std::string_view>(found->second);
}

const std::string& HttpRequest::required(std::string_view name) const {
    const auto found = query.find(name);
    if (found == query.end()) throw invalid_argument("the parameter {} is missing", name);
    return found->second;
}

std::int64_t HttpRequest::integer(std::string_view name, std::int64_t absent, std::int64_t least,
                                  std::int64_t most) const {
    const auto text = parameter(name);
    if (!text) return absent;
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
    if (error != std::errc() || end != text->data() + text->size() || number < least || number > most) {
        throw invalid_argument("{}: expected an integer from {} to {}", name, least, most);
    }
    return number;
}

HttpBody::HttpBody(Buffer bytes) : bytes_(std::move(bytes)), size_(bytes_.size()) {}
HttpBody::HttpBody(std::string_view text) : HttpBody(Buffer(std::as_bytes(std::span(text)))) {}
HttpBody::HttpBody(std::shared_ptr<const ByteSource> source, std::uint64_t offset, std::uint64_t size)
    : source_(std::move(source)), offset_(offset), size_(size) {}

HttpBody HttpBody::constant(ByteSpan bytes) {
    HttpBody body;
    body.constant_ = bytes;
    body.size_ = bytes.size();
    return body;
}

std::optional<ByteSpan> HttpBody::in_memory() const {
    if (source_) return std::nullopt;
    return constant_.empty() ? bytes_.span() : constant_;
}

void HttpBody::read(std::uint64_t offset, MutableByteSpan out) const {
    if (source_) {
        source_->read(offset_ + offset, out);
    } else if (!out.empty()) {
        std::memcpy(out.data(), in_memory()->data() + offset, out.size());
    }
}

HttpResponse json_response(const Value& value, int status) {
    // Text that came from file names may be anything; a JSON document is UTF-8.
    std::string text = standard_json(value).dump({.ascii = true});
    text += '\n';
    return {.status = status, .type = "application/json", .body = HttpBody(text)};
}

HttpResponse error_response(int status, std::string_view code, std::string_view message) {
    Value value = Value::object();
    value.set("error", code);
    value.set("message", utf8_text(message));
    HttpResponse response = json_response(value, status);
    response.cache_control = "no-store";
    return response;
}

HttpResponse not_found_response() {
    return error_response(404, "not_found", "nothing is here");
}

std::string utf8_text(std::string_view text) {
    if (is_utf8(text)) return std::string(text);
    std::string shown;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x80) {
            shown += c;
        } else {
            shown += fmt::format("\\x{:02x}", byte);
        }
    }
    return shown;
}

void set_path(Value& value, std::string_view path) {
    std::string text = utf8_text(path);
    if (text != path) value.set("encoded", percent_encoded(path));
    value.set("path", std::move(text));
}

std::string content_tag(ByteSpan content) {
    // FNV-1a with two offsets is enough: tags tell versions of one URL apart, and nobody gains by a collision.
    std::uint64_t a = 0xcbf29ce484222325U;
    std::uint64_t b = 0x84222325cbf29ce4U;
    for (const std::byte byte : content) {
        a = (a ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3U;
        b = (b ^ std::to_integer<std::uint64_t>(byte) ^ (a >> 32U)) * 0x100000001b3U;
    }
    return fmt::format("{:x}-{:016x}{:016x}", content.size(), a, b);
}

}  // namespace tessera::serve
