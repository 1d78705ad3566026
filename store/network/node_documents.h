// The documents of nodes over HTTP, those asked for at once by which a node is known. Private to the store module.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/zarr_names.h>

#include "http_client.h"

namespace tessera {

/// Where an array or a group is, there is one of these.
inline constexpr std::array<std::string_view, 6> root_documents{
    v3_document_name, v2_consolidated_name, v2_group_name, v2_array_name, zmeta_metadata_name, v1_metadata_name};

/// The name of the document of a node that a key is; nullopt if it is none.
[[nodiscard]] std::optional<std::string_view> document_name(std::string_view key);
/// To be called after a value was set or erased: no store of this process answers with what such a document was before.
void note_written(std::string_view key);
/// How often this process has written any value.
[[nodiscard]] std::uint64_t values_written();
/// The same as note_written() for whatever was written.
void note_documents_written();

/// Answers for documents, which serve whoever opens the node in the next seconds. Thread rule: every member may be
/// called from several threads at once.
class NodeDocuments {
public:
    /// Asks for a key: as one of many, if they are short, or alone, whatever its length.
    using Ask = std::function<HttpTicket(std::string_view key, bool alone)>;

    /// The answer for a document of a node; null for other keys.
    [[nodiscard]] std::shared_ptr<const HttpResponse> find(std::string_view key, const Ask& ask);
    /// What is asked for from now on is new.
    void forget(std::string_view prefix);

private:
    struct Answer {
        HttpTicket ticket;
        bool alone = false;         ///< whatever its length
        std::uint64_t written = 0;  ///< how often this process had written such a document
        std::shared_ptr<const HttpResponse> response;
    };
    struct Documents {
        std::chrono::steady_clock::time_point asked;
        bool alone = false;  ///< each is asked for when it is wanted
        std::mutex mutex;
        std::map<std::size_t, Answer> answers;  ///< by the document's number, with the mutex
    };

    [[nodiscard]] std::shared_ptr<Documents> node_at(std::string_view prefix);
    /// With the node's mutex: asks for a document, and for those that are wanted with it.
    static void ask_together(Documents& node, std::string_view prefix, std::size_t wanted, const Ask& ask);

    std::mutex mutex_;
    std::map<std::string, std::shared_ptr<Documents>, std::less<>> nodes_;
};

}  // namespace tessera
