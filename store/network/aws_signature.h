// Signatures of requests to AWS and what speaks like it (Signature Version 4). Private to the store module.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// Secret: never part of a message. Without a key and a secret: a token that is enough by itself (bearer).
struct S3Credentials {
    std::string key_id = {};
    std::string secret = {};
    std::string token = {};    ///< of a session; may be empty
    std::int64_t expires = 0;  ///< seconds since 1970; 0: never

    friend bool operator==(const S3Credentials& a, const S3Credentials& b) {
        return a.key_id == b.key_id && a.secret == b.secret && a.token == b.token;
    }
};

using HeaderLines = std::map<std::string, std::string>;

/// What a signature is for.
struct AwsScope {
    std::string authority;  ///< "bucket.s3.eu-west-1.amazonaws.com"
    std::string region;
    std::string service;     ///< "s3"
    bool google = false;     ///< by the names of Google Cloud Storage (GOOG4, x-goog-date, …)
    std::int64_t clock = 0;  ///< seconds by which the server's clock is ahead of ours
};

/// The lines of a request of a path and a sorted query, both encoded, with its signature at this moment.
[[nodiscard]] std::vector<std::string> signed_lines(const AwsScope& scope, const S3Credentials& credentials,
                                                    std::string_view method, std::string_view path,
                                                    std::string_view query, HeaderLines lines);
/// The same without a signature.
[[nodiscard]] std::vector<std::string> plain_lines(const HeaderLines& lines);

/// The text of the first element <tag> of an answer in XML; empty if there is none.
[[nodiscard]] std::string xml_element(std::string_view xml, std::string_view tag);
/// The text between <tag> and </tag> as it stands, from `at` on, which then is behind it.
[[nodiscard]] bool next_xml_element(std::string_view xml, std::string_view tag, std::size_t& at,
                                    std::string_view& text);
/// SHA-256, in hexadecimal digits.
[[nodiscard]] std::string sha256_text(std::string_view text);

}  // namespace tessera
