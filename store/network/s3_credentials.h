// Keys for S3, found where botocore and the AWS command line look for them. Private to the store module.
// Source: botocore's documentation, "Configuration" and "Credentials".
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/remote_options.h>

#include "aws_signature.h"

namespace tessera {

/// Credentials that are fetched again five minutes before they expire, or when a server says that they have. Thread
/// rule: any thread but the client's, since it may send requests.
class CredentialSource {
public:
    using Fetch = std::function<S3Credentials()>;
    /// `remedy` says what a person can do if they have expired, and fetching them again gives the same.
    CredentialSource(Fetch fetch, std::string remedy)
        : current_(fetch()), fetch_(std::move(fetch)), remedy_(std::move(remedy)) {}
    /// Throws the error of fetching them once they have expired.
    [[nodiscard]] S3Credentials current();
    /// A server says that `used` have expired: sets it to those that have come since, or are fetched now; false if they
    /// are the same. Throws the error of fetching them.
    [[nodiscard]] bool renew(S3Credentials& used);
    [[nodiscard]] const std::string& remedy() const { return remedy_; }

private:
    std::mutex mutex_;
    S3Credentials current_;
    Fetch fetch_;
    std::string remedy_;
    std::chrono::steady_clock::time_point vain_;  ///< when renewing them gave no new ones
};

using AwsProfile = std::map<std::string, std::string, std::less<>>;

/// The value of an environment variable, unless the options have one of that name; empty if there is none.
class RemoteSettings {
public:
    explicit RemoteSettings(std::shared_ptr<const RemoteOptions> options) : options_(std::move(options)) {}
    [[nodiscard]] std::string of(const std::string& name) const;
    /// Whether the options themselves say so.
    [[nodiscard]] bool is_chosen(const std::string& name) const { return options_->settings.contains(name); }
    [[nodiscard]] const RemoteOptions& options() const { return *options_; }

    /// The settings of the profile that AWS_PROFILE names, or of "default", from ~/.aws/config and ~/.aws/credentials
    /// (or the files that AWS_CONFIG_FILE and AWS_SHARED_CREDENTIALS_FILE name). Empty if there is none. Throws
    /// not_found if AWS_PROFILE names one that is not there.
    [[nodiscard]] AwsProfile profile() const;

private:
    std::shared_ptr<const RemoteOptions> options_;
};

/// In botocore's order: the options, the environment, and what the profile says: a role (AssumeRole), a web identity,
/// SSO, keys, credential_process; then the container. Null: nothing of this is there. The same object as long as what
/// it depends on is the same. Throws io and corrupt, without any secret, if what is there does not work.
[[nodiscard]] std::shared_ptr<CredentialSource> find_credentials(const RemoteSettings& settings);
/// Those of the machine (IMDSv2), asked for a second at most; null if it has none.
[[nodiscard]] std::shared_ptr<CredentialSource> credentials_of_machine(const RemoteSettings& settings);
/// The source of a key, a text that says what it depends on; else the one that is found now, which is kept if it
/// expires.
[[nodiscard]] std::shared_ptr<CredentialSource> shared_source(
    const std::string& key, const std::function<std::shared_ptr<CredentialSource>()>& find);
/// The same, for a service of the machine; null, now and later, if that does not answer.
[[nodiscard]] std::shared_ptr<CredentialSource> source_of_machine(const std::string& key,
                                                                  const CredentialSource::Fetch& fetch);
/// An environment variable; empty if it is not set.
[[nodiscard]] std::string environment(const char* name);

}  // namespace tessera
