// Arrays in S3 and what speaks like it: signed requests (AWS Signature Version 4), listings (ListObjectsV2), writes on
// conditions (If-Match, If-None-Match), and values sent in parts (multipart uploads). Google Cloud Storage speaks the
// same by its XML API, with names of its own, and conditions on the number of a version (generation). Source: the
// Amazon S3 API reference; Google's reference of the XML API.
#include <fmt/format.h>
#include <tessera/action.h>
#include <tessera/error_text.h>
#include <tessera/parallel.h>
#include <tessera/store_kind.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "aws_signature.h"
#include "base64.h"
#include "google_credentials.h"
#include "http_cache.h"
#include "key_services.h"
#include "keys.h"
#include "list_ahead.h"
#include "listed_pages.h"
#include "loaded_curl.h"
#include "node_documents.h"
#include "pages_ahead.h"
#include "remote_store.h"
#include "s3_credentials.h"
#include "sha256.h"
#include "url.h"

namespace tessera {

namespace {

constexpr std::uint64_t longest_listing = std::uint64_t{16} << 20;

/// What a server's answers have told of it. Thread rule: every member may be called from any thread.
class KnownServer {
public:
    explicit KnownServer(std::string region) : region_(std::move(region)) {}

    [[nodiscard]] std::string region() const {
        const std::lock_guard guard(mutex_);
        return region_;
    }
    [[nodiscard]] std::int64_t clock() const { return clock_; }

    /// Whether an answer refuses a request because it was signed for another region or time than the server's, which
    /// then are in `scope`, and known for the requests after it.
    bool corrects(AwsScope& scope, const HttpResponse& response) {
        const std::string code = xml_element(response.text(), "Code");
        std::string region(response.header("x-amz-bucket-region"));
        if (region.empty() && code == "AuthorizationHeaderMalformed") region = xml_element(response.text(), "Region");
        if (is_region(region) && region != scope.region) {
            scope.region = region;
            const std::lock_guard guard(mutex_);
            region_ = std::move(region);
            return true;
        }
        // The answer to a HEAD does not say why. Signatures hold for 15 minutes.
        const bool silent = response.status == 403 && response.body.empty();
        if (code != "RequestTimeTooSkewed" && !silent) return false;
        const std::time_t there = curl().getdate(std::string(response.header("date")).c_str(), nullptr);
        const std::int64_t tolerated = silent ? 900 : 60;
        const std::int64_t ahead = there < 0 ? scope.clock : there - std::time(nullptr);
        if (std::abs(ahead - scope.clock) < tolerated) return false;
        scope.clock = ahead;
        clock_ = ahead;
        return true;
    }

private:
    /// It becomes a part of a host's name.
    static bool is_region(std::string_view text) {
        constexpr std::size_t longest = 32;
        const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
        return !text.empty() && text.size() <= longest && std::ranges::all_of(text, fits);
    }

    mutable std::mutex mutex_;
    std::string region_;
    std::atomic<std::int64_t> clock_ = 0;
};

/// Where a bucket is reached, and with what rights.
struct S3Access {
    std::string bucket;
    std::string prefix;  ///< of the store in the bucket; may be empty
    std::string scheme;
    std::string authority;  ///< empty: of AWS in the bucket's region
    std::string base;       ///< of each path: "/bucket" where the bucket is not in the host's name
    std::shared_ptr<KnownServer> known;
    std::shared_ptr<CredentialSource> credentials;  ///< null: requests are not signed
    bool requester_pays = false;
    int absent_status = 0;
    std::function<void(std::string_view line)> log;
    std::shared_ptr<HttpCache> cache;
    std::shared_ptr<ListedFolders> listed = std::make_shared<ListedFolders>();
    bool google = false;
    bool endpoint_given = false;  ///< else it is AWS, where a bucket's name tells it from all others

    [[nodiscard]] std::string authority_in(const std::string& region) const {
        if (!authority.empty()) return authority;
        return fmt::format("{}{}s3.{}.amazonaws.com{}", base.empty() ? bucket : "", base.empty() ? "." : "", region,
                           region.starts_with("cn-") ? ".cn" : "");
    }
};

using Lines = HeaderLines;

// ---- the service

class S3Service final : public RemoteService {
public:
    explicit S3Service(S3Access access) : shared_(std::make_shared<const S3Access>(std::move(access))) {}

    [[nodiscard]] HttpRequest request(std::string_view key) const override {
        return request_of(path_of(key), "", name_of(key));
    }

    [[nodiscard]] bool is_absent(const HttpResponse& response, std::string_view key) const override {
        const int status = response.status;
        if (status == 200 || status == 206 || status == 416) return false;
        const std::string code = xml_element(response.text(), "Code");
        if (status == 404 && (code.empty() || code == "NoSuchKey")) return true;
        if (status == access_.absent_status && says_forbidden(code)) return true;
        fail(response, key, "reading");
    }

    void list(std::string_view prefix, const Each& value, const Each& folder) const override {
        const std::string below = below_of(prefix);
        ListedPages pages(name_of(prefix));
        HttpTicket ticket = ahead_.take(std::string(prefix), [&](const std::string& next) {
            return HttpClient::shared().start(page_of(next, ""));
        });
        constexpr std::size_t most_folders = 65'536;
        std::vector<std::string> folders;
        const Each each_folder = [&](std::string_view name, std::uint64_t size, std::string_view etag) {
            if (folders.size() < most_folders) folders.push_back(join_key(prefix, name));
            folder(name, size, etag);
        };
        do {
            if (ticket == nullptr) ticket = HttpClient::shared().start(page_of(prefix, pages.token()));
            const HttpResponse response = HttpClient::shared().wait(std::move(ticket));
            if (is_absent(response, prefix)) throw not_found("{}: the server lists nothing", name_of(prefix));
            pages.turn(response);
            read_page(response.text(), below, pages, value, each_folder);
            pages.end();
        } while (!pages.token().empty());
        if (pages.has_folders()) shared_->listed->note(name_of(prefix), std::string(prefix), pages.content());
        ahead_.found(std::move(folders));
    }

    void list_all(std::string_view prefix, const FarStore::Places& places, const Each& value) const override {
        ListedPages pages(name_of(prefix));
        PagesAhead ahead(places, [&](const std::string& after) {
            return HttpClient::shared().start(page_of(prefix, "", below_of(prefix) + after, ""));
        });
        std::set<std::string> folders;
        std::string done;
        bool guessed = false;
        for (bool more = true; more;) {
            auto guess = ahead.take(done);
            guessed = guessed || guess;
            const HttpResponse response = HttpClient::shared().wait(
                guess ? std::move(guess->ticket) : HttpClient::shared().start(page_of(prefix, pages.token(), "", "")));
            const auto names = names_below(response.text(), below_of(prefix), folders);
            if (guess && !ahead.leads_on(*guess, response, names, done)) continue;
            if (is_absent(response, prefix)) throw not_found("{}: the server lists nothing", name_of(prefix));
            pages.turn(response);
            for (const auto& each : names) {
                pages.note(each.name, each.etag);
                if ((!guessed || each.name > done) && is_key(each.name)) value(each.name, each.size, each.etag);
            }
            pages.end();
            more = !pages.token().empty();
            if (more) ahead.told(names);
            if (!names.empty()) done = std::max(done, names.back().name);
        }
        go_on_below(prefix, folders, pages.content(), value);
    }

    // ---- writing

    [[nodiscard]] bool writes() const override { return true; }
    [[nodiscard]] std::string server() const override {
        return fmt::format("{}://{}{} {}{}", access_.scheme, access_.authority_in(access_.known->region()),
                           access_.base, access_.bucket, access_.google ? " gs" : "");
    }

    [[nodiscard]] RemoteVersion version_of(const HttpResponse& response) const override {
        RemoteVersion version{.etag = std::string(response.etag())};
        if (access_.google) version.generation = response.header("x-goog-generation");
        std::string_view ids = response.header(named("meta-tessera-writes"));
        while (!ids.empty()) {
            const std::size_t end = std::min(ids.find(' '), ids.size());
            if (end > 0) version.writes.emplace_back(ids.substr(0, end));
            ids.remove_prefix(std::min(end + 1, ids.size()));
        }
        return version;
    }

    [[nodiscard]] HttpRequest put(std::string_view key, const RemotePut& put) const override {
        Lines lines = lines_of(*put.body);
        if (!put.writes.empty()) lines[named("meta-tessera-writes")] = fmt::format("{}", fmt::join(put.writes, " "));
        if (access_.google && put.condition != RemotePut::If::always) {
            // No value has version 0, nor 1, which stands for one that is not known.
            const bool known = !put.generation.empty();
            lines["x-goog-if-generation-match"] = put.condition == RemotePut::If::absent ? "0"
                                                  : known                                ? put.generation
                                                                                         : "1";
        } else if (put.condition == RemotePut::If::absent) {
            lines["if-none-match"] = "*";
        } else if (put.condition == RemotePut::If::same) {
            lines["if-match"] = put.etag;
        }
        HttpRequest request = request_of(path_of(key), "", name_of(key), std::move(lines));
        request.method = "PUT";
        request.body = put.body;
        request.once = put.once;
        return request;
    }
    [[nodiscard]] HttpRequest erase(std::string_view key) const override {
        HttpRequest request = request_of(path_of(key), "", name_of(key));
        request.method = "DELETE";
        return request;
    }
    void require_done(const HttpResponse& response, std::string_view key) const override {
        if (response.status < 200 || response.status >= 300) fail(response, key, "writing");
    }

    [[nodiscard]] std::string begin_parts(std::string_view key, const std::string& write) const override {
        Lines lines = lines_of({});
        lines[named("meta-tessera-writes")] = write;
        HttpRequest request = request_of(path_of(key), "uploads=", name_of(key), std::move(lines));
        request.method = "POST";
        request.body = std::make_shared<const Buffer>();
        const HttpResponse response = HttpClient::shared().send(std::move(request));
        require_done(response, key);
        std::string upload = xml_element(response.text(), "UploadId");
        if (upload.empty()) throw corrupt("{}: the server's answer names no upload", name_of(key));
        return upload;
    }
    [[nodiscard]] HttpRequest part(std::string_view key, const std::string& upload, std::size_t number,
                                   std::shared_ptr<const Buffer> body) const override {
        Lines lines = lines_of(*body);
        HttpRequest request =
            request_of(path_of(key), fmt::format("partNumber={}&uploadId={}", number, percent_encoded(upload, false)),
                       name_of(key), std::move(lines));
        request.method = "PUT";
        request.body = std::move(body);
        return request;
    }
    void finish_parts(std::string_view key, const std::string& upload, const std::string& write,
                      std::span<const std::string> etags) const override {
        std::string text = "<CompleteMultipartUpload>";
        for (std::size_t i = 0; i < etags.size(); ++i) {
            text += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", i + 1, etags[i]);
        }
        text += "</CompleteMultipartUpload>";
        auto body = std::make_shared<const Buffer>(std::as_bytes(std::span(text)));
        for (int tries = 1;; ++tries) {
            HttpRequest request =
                request_of(path_of(key), "uploadId=" + percent_encoded(upload, false), name_of(key), lines_of(*body));
            request.method = "POST";
            request.body = body;
            const HttpResponse response = HttpClient::shared().send(std::move(request));
            // An error may come with 200, once the server had begun to answer.
            const std::string_view answer = response.text();
            if (response.status == 200 && answer.find("<CompleteMultipartUploadResult") != std::string_view::npos) {
                return;
            }
            HttpRequest look = this->request(key);
            look.method = "HEAD";
            const RemoteVersion there = version_of(HttpClient::shared().send(std::move(look)));
            if (!there.writes.empty() && there.writes.front() == write) return;
            const std::string code = xml_element(answer, "Code");
            if (tries < 5 && response.status == 200 && code != "NoSuchUpload") continue;
            fail(response, key, "writing");
        }
    }
    void abandon_parts(std::string_view key, const std::string& upload) const noexcept override {
        try {
            const FinishScope finishing;  // a request to stop may be the reason
            HttpRequest request = request_of(path_of(key), "uploadId=" + percent_encoded(upload, false), name_of(key));
            request.method = "DELETE";
            request.once = true;
            (void)HttpClient::shared().send(std::move(request));
        } catch (...) {
            return;  // what is left is found by abandon_all_parts()
        }
    }
    void abandon_all_parts(std::string_view prefix) const override {
        const std::string below = join_key(access_.prefix, prefix);
        if (below.empty()) return;  // a whole bucket, in which others may be writing
        std::string after_key;
        std::string after_upload;
        for (bool more = true; more;) {
            std::string query = "prefix=" + percent_encoded(below, false);
            if (!after_key.empty()) {
                query = fmt::format("key-marker={}&{}&upload-id-marker={}", percent_encoded(after_key, false), query,
                                    percent_encoded(after_upload, false));
            }
            HttpRequest page =
                request_of(access_.base.empty() ? "/" : access_.base, query + "&uploads=", name_of(prefix));
            page.limit = longest_listing;
            const HttpResponse response = HttpClient::shared().send(std::move(page));
            if (response.status != 200) return;  // a server that cannot say it, or may not
            std::size_t at = 0;
            for (std::string_view item; next_xml_element(response.text(), "Upload", at, item);) {
                const std::string key = xml_element(item, "Key");
                if (key != below && !key.starts_with(below + '/')) continue;
                const std::size_t skipped = access_.prefix.empty() ? 0 : access_.prefix.size() + 1;
                if (key.size() > skipped) abandon_parts(key.substr(skipped), xml_element(item, "UploadId"));
            }
            const std::pair last(after_key, after_upload);
            after_key = xml_element(response.text(), "NextKeyMarker");
            after_upload = xml_element(response.text(), "NextUploadIdMarker");
            more = xml_element(response.text(), "IsTruncated") == "true" && !after_key.empty() &&
                   last != std::pair(after_key, after_upload);
        }
    }

private:
    /// The name of a line of the header, which begins with the vendor's.
    [[nodiscard]] std::string named(std::string_view name) const {
        return fmt::format("x-{}-{}", access_.google ? "goog" : "amz", name);
    }

    /// What the names of all that lies below a prefix begin with.
    [[nodiscard]] std::string below_of(std::string_view prefix) const {
        std::string below = join_key(access_.prefix, prefix);
        if (!below.empty()) below += '/';
        return below;
    }
    /// A page of a listing. The parts of the query are sorted by name, as the signature wants them.
    [[nodiscard]] HttpRequest page_of(std::string_view prefix, const std::string& token, const std::string& after = {},
                                      std::string_view delimiter = "/") const {
        std::string query;
        if (!token.empty()) query += "continuation-token=" + percent_encoded(token, false) + '&';
        if (!delimiter.empty()) query += "delimiter=%2F&";
        query += "encoding-type=url&list-type=2&prefix=" + percent_encoded(below_of(prefix), false);
        if (!after.empty()) query += "&start-after=" + percent_encoded(after, false);
        HttpRequest page = request_of(access_.base.empty() ? "/" : access_.base, query, name_of(prefix));
        page.limit = longest_listing;
        return page;
    }

    [[nodiscard]] std::string path_of(std::string_view key) const {
        return access_.base + '/' + percent_encoded(join_key(access_.prefix, key), true);
    }

    /// Those that say what a body is, so that a server that checks signatures checks the body, too.
    [[nodiscard]] Lines lines_of(ByteSpan body) const {
        Hasher hasher;
        hasher.add(body.data(), body.size());
        Lines lines{{named("content-sha256"), hex(hasher.finish())}};
        if (access_.google) {
            Md5Hasher sum;
            sum.add(body.data(), body.size());
            const Md5 bytes = sum.finish();
            lines["content-md5"] = base64_encode(std::as_bytes(std::span(bytes)));
        }
        return lines;
    }

    [[nodiscard]] AwsScope scope_now() const {
        const std::string region = access_.known->region();
        return {.authority = access_.authority_in(region),
                .region = region,
                .service = access_.google ? "storage" : "s3",
                .google = access_.google,
                .clock = access_.known->clock()};
    }

    static bool is_expired(const S3Access& access, const HttpResponse& response) {
        return access.google ? response.status == 401 : says_expired(response);
    }

    /// Whether a refusal may mean that nothing is there: not where it says that the request itself is wrong.
    static bool says_forbidden(std::string_view code) { return code.empty() || code == "AccessDenied"; }

    /// What a refusal comes of, as far as that can be told; else empty.
    [[nodiscard]] std::string cause(int status, const std::string& code, bool expired, bool writing) const {
        if (expired) {
            return fmt::format(": {}the keys have expired; {}", code.empty() ? "it may be that " : "",
                               access_.credentials->remedy());
        }
        if (code == "InvalidAccessKeyId" || code == "SignatureDoesNotMatch") {
            return fmt::format(
                ": {}: look at {}_ACCESS_KEY_ID and {}_SECRET_ACCESS_KEY, or at the profile",
                code == "InvalidAccessKeyId" ? "it knows no such key" : "the secret is not that of the key",
                access_.google ? "GS" : "AWS", access_.google ? "GS" : "AWS");
        }
        if (status == 403 && access_.credentials != nullptr && writing) {
            return ": writing it is not allowed with these credentials";
        }
        if (status == 403 && access_.credentials != nullptr) {
            return ": reading it is not allowed with these credentials, or it is not there and listing the bucket is "
                   "not "
                   "allowed";
        }
        if (status == 403 || (status == 401 && access_.google)) {
            return fmt::format(
                ": no credentials were found ({}), and it is not public, or it is not there and listing the bucket is "
                "not allowed",
                access_.google ? "GOOGLE_APPLICATION_CREDENTIALS, GS_ACCESS_KEY_ID, or by gcloud auth "
                                 "application-default login"
                               : "AWS_ACCESS_KEY_ID, AWS_PROFILE");
        }
        return {};
    }

    [[noreturn]] void fail(const HttpResponse& response, std::string_view key, std::string_view doing) const {
        const int status = response.status;
        const std::string code = xml_element(response.text(), "Code");
        if (code == "NoSuchBucket") throw not_found("{}: there is no bucket of this name", name_of_bucket());
        if (status == 0) throw Error(ErrorCode::io, fmt::format("{}: {}", name_of(key), response.trouble));
        const bool expired = access_.credentials != nullptr && is_expired(access_, response);
        std::string why = code.empty() ? fmt::format("the server answers {}", status)
                                       : fmt::format("the server answers {} ({})", status, code);
        why += cause(status, code, expired, doing == "writing");
        const std::string_view region = response.header("x-amz-bucket-region");
        if (!region.empty() && region != access_.known->region())
            why += fmt::format("; the bucket is in AWS_REGION={}", region);
        const Error error(ErrorCode::io, fmt::format("{}: {}", name_of(key), why));
        if (status != 403 || expired || doing == "writing" || !says_forbidden(code)) throw error;
        throw error.advising(Action::absent_status, "takes this for absent", "403");
    }

    [[nodiscard]] HttpRequest request_of(const std::string& path, const std::string& query, std::string name,
                                         Lines lines = {}) const {
        const auto scope = std::make_shared<AwsScope>(scope_now());
        const auto url = [scheme = access_.scheme, path, query](const std::string& authority) {
            return fmt::format("{}://{}{}{}{}", scheme, authority, path, query.empty() ? "" : "?", query);
        };
        HttpRequest request;
        request.url = url(scope->authority);
        request.name = std::move(name);
        request.follow = false;
        request.cache = access_.cache;
        request.log = access_.log;
        request.cache_key = access_.endpoint_given ? std::string() : request.name;
        request.authorised = access_.credentials != nullptr;
        const auto source = access_.credentials;
        const auto keys = source == nullptr ? nullptr : std::make_shared<S3Credentials>(source->current());
        request.renew = [access = shared_, keys, scope, url](HttpRequest& again, const HttpResponse& response) {
            if (access->known->corrects(*scope, response)) {
                scope->authority = access->authority_in(scope->region);
                again.url = url(scope->authority);
                return true;
            }
            return keys != nullptr && is_expired(*access, response) && access->credentials->renew(*keys);
        };
        if (source != nullptr) {
            if (access_.requester_pays && !access_.google) lines["x-amz-request-payer"] = "requester";
            request.headers = [scope, keys, path, query, lines = std::move(lines)](const HttpRequest& asked) {
                return signed_lines(*scope, *keys, asked.method, path, query, lines);
            };
        } else if (!lines.empty()) {
            request.headers = [lines = plain_lines(lines)](const HttpRequest& /*asked*/) { return lines; };
        }
        return request;
    }

    /// What is on a page of a listing without folders. If the server shows some all the same, they are added to these.
    [[nodiscard]] static std::vector<ListedName> names_below(std::string_view xml, std::string_view below,
                                                             std::set<std::string>& folders) {
        std::vector<ListedName> names;
        std::size_t at = 0;
        for (std::string_view item; next_xml_element(xml, "Contents", at, item);) {
            std::string key = percent_decoded(xml_element(item, "Key"));
            if (!key.starts_with(below)) continue;
            key.erase(0, below.size());
            names.push_back({std::move(key), listed_size(item), xml_element(item, "ETag")});
        }
        at = 0;
        for (std::string_view item; next_xml_element(xml, "CommonPrefixes", at, item);) {
            const std::string key = percent_decoded(xml_element(item, "Prefix"));
            if (key.starts_with(below) && key.ends_with('/')) folders.insert(key.substr(below.size()));
        }
        return names;
    }

    [[nodiscard]] static std::uint64_t listed_size(std::string_view item) {
        const std::string size = xml_element(item, "Size");
        std::uint64_t bytes = 0;
        std::from_chars(size.data(), size.data() + size.size(), bytes);
        return bytes;
    }

    /// Lists folders that a server shows, which was asked for what lies in them.
    void go_on_below(std::string_view prefix, const std::set<std::string>& folders, std::size_t content,
                     const Each& value) const {
        if (folders.empty()) return;
        shared_->listed->note(name_of(prefix), std::string(prefix), content);
        for (const std::string& each : folders) {
            const std::string folder = each.substr(0, each.size() - 1);
            if (!is_key(folder)) continue;
            list_all(join_key(prefix, folder), nullptr,
                     [&](std::string_view name, std::uint64_t size, std::string_view etag) {
                         value(join_key(folder, name), size, etag);
                     });
        }
    }

    static void read_page(std::string_view xml, std::string_view below, ListedPages& pages, const Each& value,
                          const Each& folder) {
        std::string last;  // a server that knows no delimiter lists what lies deeper, too
        const auto take = [&](std::string_view item, std::string_view tag, bool is_folder) {
            std::string key = percent_decoded(xml_element(item, tag));
            if (!key.starts_with(below)) return pages.note(key, "");
            key.erase(0, below.size());
            pages.note(key, xml_element(item, "ETag"));
            const std::size_t slash = key.find('/');
            const std::string name = key.substr(0, slash);
            if (name.empty() || name == "." || name == "..") return;
            if (is_folder || slash < key.size() - 1) {
                if (std::exchange(last, name) == name) return;
                pages.note_folder();
                folder(name, 0, "");
            } else if (slash == std::string::npos) {
                value(name, listed_size(item), xml_element(item, "ETag"));
            }
        };
        std::size_t at = 0;
        for (std::string_view item; next_xml_element(xml, "Contents", at, item);) take(item, "Key", false);
        at = 0;
        for (std::string_view item; next_xml_element(xml, "CommonPrefixes", at, item);) take(item, "Prefix", true);
    }

    [[nodiscard]] std::string name_of_bucket() const { return (access_.google ? "gs://" : "s3://") + access_.bucket; }
    [[nodiscard]] std::string name_of(std::string_view key) const {
        return join_key(join_key(name_of_bucket(), access_.prefix), key);
    }

    std::shared_ptr<const S3Access> shared_;  ///< with the requests that may have to be signed again
    const S3Access& access_ = *shared_;
    /// Not in what is shared: its requests hold that, and would never end.
    mutable ListAhead ahead_;
};

std::string first_of(std::initializer_list<std::string> texts) {
    for (const std::string& text : texts) {
        if (!text.empty()) return text;
    }
    return {};
}

/// AWS says where a bucket lies to everybody.
std::string region_of_bucket(const std::string& bucket) {
    HttpRequest request;
    request.method = "HEAD";
    request.url = "https://s3.us-east-1.amazonaws.com/" + bucket;
    request.name = "s3://" + bucket;
    request.follow = false;
    const HttpResponse response = HttpClient::shared().send(std::move(request));
    if (response.status == 404) throw not_found("s3://{}: there is no bucket of this name", bucket);
    const std::string_view region = response.header("x-amz-bucket-region");
    return region.empty() ? "us-east-1" : std::string(region);
}

/// Asks, without a signature, whether anybody may read what lies there. Only where nothing but the machine itself may
/// have keys: whoever reads public data does not wait for its service.
bool is_public(const S3Access& access) {
    const S3Service service(access);
    std::vector<HttpTicket> asked;
    for (const std::string_view name : root_documents) {
        HttpRequest request = service.request(name);
        request.range = HttpRange{.first = 0, .length = 1};
        request.follow = false;
        asked.push_back(HttpClient::shared().start(std::move(request)));
    }
    return std::ranges::any_of(asked, [](HttpTicket& ticket) {
        const int status = HttpClient::shared().wait(std::move(ticket)).status;
        return status == 200 || status == 206 || status == 404;
    });
}

/// Sets who asks: with keys that are found, as anybody where all may read, or with those of the machine.
void find_access(S3Access& access, const RemoteSettings& settings) {
    access.credentials = access.google ? find_google_credentials(settings) : find_credentials(settings);
    if (access.credentials != nullptr || settings.options().offline) return;
    const bool alone = settings.of(access.google ? "NO_GCE_CHECK" : "AWS_EC2_METADATA_DISABLED") == "true";
    if (alone || is_public(access)) return;
    access.credentials = access.google ? google_credentials_of_machine(settings) : credentials_of_machine(settings);
}

/// Google Cloud Storage, or what Google's libraries take for it.
S3Access access_to_google(std::string_view bucket, std::string_view prefix, bool anonymous,
                          const RemoteSettings& settings) {
    std::string endpoint = settings.of("STORAGE_EMULATOR_HOST");
    S3Access access;
    access.google = true;
    access.endpoint_given = !endpoint.empty();
    if (endpoint.empty()) endpoint = "https://storage.googleapis.com";
    if (endpoint.find("://") == std::string::npos) endpoint = "http://" + endpoint;
    const Url url = parse_url(endpoint);
    access.scheme = url.scheme;
    access.authority = url.authority;
    access.bucket = bucket;
    access.prefix = prefix;
    access.base = url.path + '/' + access.bucket;
    access.known = std::make_shared<KnownServer>("auto");
    access.cache = HttpCache::of(settings.options());
    access.log = settings.options().log;
    access.absent_status = settings.options().absent_status;
    if (!anonymous && !settings.options().anonymous) find_access(access, settings);
    return access;
}

S3Access access_to(std::string_view bucket, std::string_view prefix, bool anonymous, const RemoteSettings& settings) {
    const RemoteOptions& options = settings.options();
    anonymous = anonymous || options.anonymous;
    const AwsProfile profile = anonymous ? AwsProfile() : settings.profile();
    const auto of_profile = [&](std::string_view name) {
        const auto found = profile.find(name);
        return found == profile.end() ? std::string() : found->second;
    };
    S3Access access;
    access.bucket = bucket;
    access.prefix = prefix;
    access.cache = HttpCache::of(options);
    access.log = options.log;
    access.absent_status = options.absent_status;
    access.requester_pays = settings.of("AWS_REQUEST_PAYER") == "requester";
    std::string region = first_of({settings.of("AWS_REGION"), settings.of("AWS_DEFAULT_REGION"), of_profile("region")});
    const std::string endpoint =
        first_of({settings.of("AWS_ENDPOINT_URL_S3"), settings.of("AWS_ENDPOINT_URL"), of_profile("endpoint_url")});
    if (!endpoint.empty()) {
        const Url url = parse_url(endpoint);
        access.endpoint_given = true;
        access.scheme = url.scheme;
        access.authority = url.authority;
        access.base = url.path + '/' + access.bucket;
        access.known = std::make_shared<KnownServer>(region.empty() ? "us-east-1" : std::move(region));
        if (!anonymous) find_access(access, settings);
        return access;
    }
    if (region.empty()) region = options.offline ? "us-east-1" : region_of_bucket(access.bucket);
    access.known = std::make_shared<KnownServer>(std::move(region));
    access.scheme = "https";
    // A certificate covers no dots in the bucket's name.
    if (access.bucket.find('.') != std::string::npos) access.base = '/' + access.bucket;
    if (!anonymous) find_access(access, settings);
    return access;
}

Place place_in_bucket(const std::filesystem::path& path, bool google, bool anonymous, const StoreOptions& options) {
    const std::string& text = path.native();
    const std::size_t begin = text.find("://");
    const std::string_view rest = begin == std::string::npos ? "" : std::string_view(text).substr(begin + 3);
    const std::string_view whole = rest.substr(0, rest.find_last_not_of('/') + 1);
    const std::size_t slash = std::min(whole.find('/'), whole.size());
    const std::string_view bucket = whole.substr(0, slash);
    const auto fits = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
               c == '_';
    };
    if (bucket.empty() || !std::ranges::all_of(bucket, fits)) {
        throw invalid_argument("{}: expected {}{}://BUCKET/KEY", text, google ? "gs" : "s3", anonymous ? "+anon" : "");
    }
    const std::string_view prefix = whole.substr(std::min(slash + 1, whole.size()));
    in_context([&] { return text; }, [&] { require_prefix(prefix); });
    const auto access = google ? access_to_google : access_to;
    return {remote_store(text.substr(0, begin + 3) + std::string(whole),
                         std::make_unique<S3Service>(
                             access(bucket, prefix, anonymous, RemoteSettings(remote_options_of(options)))),
                         options),
            ""};
}

}  // namespace

extern constinit const StoreKind s3_kind{
    .scheme = "s3", .about = "S3", .place = [](const std::filesystem::path& path, const StoreOptions& options) {
        return place_in_bucket(path, false, false, options);
    }};
extern constinit const StoreKind anonymous_s3_kind{
    .scheme = "s3+anon",
    .about = "S3, without credentials",
    .place = [](const std::filesystem::path& path, const StoreOptions& options) {
        return place_in_bucket(path, false, true, options);
    }};
extern constinit const StoreKind google_kind{
    .scheme = "gs",
    .about = "Google Cloud Storage",
    .place = [](const std::filesystem::path& path, const StoreOptions& options) {
        return place_in_bucket(path, true, false, options);
    }};
extern constinit const StoreKind anonymous_google_kind{
    .scheme = "gs+anon",
    .about = "Google Cloud Storage, without credentials",
    .place = [](const std::filesystem::path& path, const StoreOptions& options) {
        return place_in_bucket(path, true, true, options);
    }};

}  // namespace tessera
