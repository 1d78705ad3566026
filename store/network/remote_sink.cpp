#include "remote_sink.h"

#include <tessera/error_text.h>

#include <utility>

#include "remote_lease.h"
#include "remote_writer.h"

namespace tessera {

namespace {

/// A value that is longer goes in parts of so many bytes, so many at once, if that needs no condition.
constexpr std::uint64_t longest_whole = std::uint64_t{64} << 20;
constexpr std::size_t part_bytes = std::size_t{16} << 20;
constexpr std::size_t parts_at_once = 3;

}  // namespace

RemoteSink::RemoteSink(const RemoteService& service, std::string key, std::string name, bool whole, Put put)
    : service_(service), key_(std::move(key)), name_(std::move(name)), whole_(whole), put_(std::move(put)) {}

RemoteSink::~RemoteSink() {
    parts_.clear();
    if (!upload_.empty()) service_.abandon_parts(key_, upload_);
}

void RemoteSink::write_at(std::uint64_t /*offset*/, ByteSpan /*bytes*/) {
    throw unsupported("{}: is written from its beginning to its end", name_);
}

void RemoteSink::append(ByteSpan bytes) {
    value_.append(bytes);
    if (whole_) return;
    if (upload_.empty() && value_.size() > longest_whole) {
        write_ = random_id();
        upload_ = service_.begin_parts(key_, write_);
    }
    while (!upload_.empty() && value_.size() > part_bytes) send(part_bytes);
}

void RemoteSink::finish() {
    if (upload_.empty()) return put_(std::make_shared<const Buffer>(std::move(value_)));
    send(value_.size());
    while (!parts_.empty()) finish_part();
    service_.finish_parts(key_, upload_, write_, etags_);
    upload_.clear();
}

void RemoteSink::send(std::size_t size) {
    renew_lease_of(service_.request(key_).name);
    if (parts_.size() >= parts_at_once) finish_part();
    auto body = std::make_shared<const Buffer>(value_.span().first(size));
    value_ = Buffer(value_.span().subspan(size));
    parts_.push_back(
        HttpClient::shared().start(service_.part(key_, upload_, etags_.size() + parts_.size() + 1, std::move(body))));
}

void RemoteSink::finish_part() {
    const HttpResponse response = HttpClient::shared().wait(std::move(parts_.front()));
    parts_.pop_front();
    service_.require_done(response, key_);
    etags_.emplace_back(response.etag());
}

}  // namespace tessera
