#include "aws_signature.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include "sha256.h"

namespace tessera {

namespace {

std::string hmac(std::string_view key, std::string_view text) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> out{};
    unsigned int size = 0;
    ::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), out.data(), &size);
    return {reinterpret_cast<const char*>(out.data()), size};
}

std::string hex_text(std::string_view bytes) {
    std::string text;
    for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
    return text;
}

}  // namespace

std::string sha256_text(std::string_view text) {
    Hasher hasher;
    hasher.add(text.data(), text.size());
    return hex(hasher.finish());
}

std::vector<std::string> plain_lines(const HeaderLines& lines) {
    std::vector<std::string> headers;
    for (const auto& [name, value] : lines) headers.push_back(fmt::format("{}: {}", name, value));
    return headers;
}

namespace {

/// A time in UTC: 20260131T235959Z.
std::string stamp_of(std::time_t now) {
    std::tm utc{};
    ::gmtime_r(&now, &utc);
    std::array<char, 20> stamp{};
    const std::size_t length = std::strftime(stamp.data(), stamp.size(), "%Y%m%dT%H%M%SZ", &utc);
    return {stamp.data(), length};
}

}  // namespace

std::vector<std::string> signed_lines(const AwsScope& scope, const S3Credentials& credentials, std::string_view method,
                                      std::string_view path, std::string_view query, HeaderLines lines) {
    const std::string time = stamp_of(std::time(nullptr) + scope.clock);
    const std::string day = time.substr(0, 8);
    if (credentials.key_id.empty()) {
        std::vector<std::string> headers = plain_lines(lines);
        headers.push_back("Authorization: Bearer " + credentials.token);
        return headers;
    }
    const std::string_view vendor = scope.google ? "goog" : "amz";
    const std::string_view version = scope.google ? "GOOG4" : "AWS4";
    const std::string_view last = scope.google ? "goog4_request" : "aws4_request";
    lines["host"] = scope.authority;
    const std::string body =
        lines.try_emplace(fmt::format("x-{}-content-sha256", vendor), sha256_text("")).first->second;
    lines[fmt::format("x-{}-date", vendor)] = time;
    if (!credentials.token.empty() && !scope.google) lines["x-amz-security-token"] = credentials.token;
    std::string names;
    std::string text = fmt::format("{}\n{}\n{}\n", method, path, query);
    for (const auto& [name, value] : lines) {
        text += fmt::format("{}:{}\n", name, value);
        names += (names.empty() ? "" : ";") + name;
    }
    text += fmt::format("\n{}\n{}", names, body);
    const std::string where = fmt::format("{}/{}/{}/{}", day, scope.region, scope.service, last);
    const std::string to_sign = fmt::format("{}-HMAC-SHA256\n{}\n{}\n{}", version, time, where, sha256_text(text));
    std::string key = std::string(version) + credentials.secret;
    for (const std::string_view part :
         {std::string_view(day), std::string_view(scope.region), std::string_view(scope.service), last}) {
        key = hmac(key, part);
    }
    lines.erase("host");
    std::vector<std::string> headers = plain_lines(lines);
    headers.push_back(fmt::format("Authorization: {}-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={}",
                                  version, credentials.key_id, where, names, hex_text(hmac(key, to_sign))));
    return headers;
}

bool next_xml_element(std::string_view xml, std::string_view tag, std::size_t& at, std::string_view& text) {
    const std::string open = fmt::format("<{}>", tag);
    const std::string close = fmt::format("</{}>", tag);
    const std::size_t begin = xml.find(open, at);
    if (begin == std::string_view::npos) return false;
    const std::size_t end = xml.find(close, begin);
    if (end == std::string_view::npos) return false;
    at = end + close.size();
    text = xml.substr(begin + open.size(), end - begin - open.size());
    return true;
}

std::string xml_element(std::string_view xml, std::string_view tag) {
    constexpr std::array<std::pair<std::string_view, char>, 5> entities{
        {{"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}, {"&amp;", '&'}}};
    std::size_t at = 0;
    std::string_view raw;
    if (!next_xml_element(xml, tag, at, raw)) return {};
    std::string text;
    for (std::size_t i = 0; i < raw.size();) {
        const auto* const found =
            std::ranges::find_if(entities, [&](const auto& entity) { return raw.substr(i).starts_with(entity.first); });
        text += found == entities.end() ? raw[i] : found->second;
        i += found == entities.end() ? 1 : found->first.size();
    }
    return text;
}

}  // namespace tessera
