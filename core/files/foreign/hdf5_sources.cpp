#include "hdf5_sources.h"

#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <tessera/action.h>
#include <tessera/error_text.h>
#include <tessera/outside.h>

#include "hdf5_file.h"

namespace tessera {

namespace {

constexpr std::size_t longest_hdf5_name = 4096;

std::string file_of_object(hid_t object) {
    std::string name(longest_hdf5_name, '\0');
    if (H5Fget_name(object, name.data(), name.size()) < 0) throw corrupt("its file has no name");
    name.resize(std::strlen(name.c_str()));
    return name;
}

/// A name that libhdf5 gives by a function of the list of properties and a number.
template <class Get>
std::string virtual_name(const Get& get, hid_t list, std::size_t i) {
    std::string name(longest_hdf5_name, '\0');
    const ssize_t length = get(list, i, name.data(), name.size());
    if (length < 0 || std::cmp_greater_equal(length, longest_hdf5_name)) {
        throw corrupt("its list of sources cannot be read: {}", hdf5_error());
    }
    name.resize(static_cast<std::size_t>(length));
    std::string plain;
    for (std::size_t at = 0; at < name.size(); ++at) {
        if (name[at] == '%' && at + 1 < name.size()) {
            if (name[at + 1] == 'b') throw unsupported("it is a view of sources without an end ({})", name);
            if (name[at + 1] == '%') ++at;
        }
        plain += name[at];
    }
    return plain;
}

class Hdf5Sources {
public:
    explicit Hdf5Sources(bool elsewhere) : elsewhere_(elsewhere) {}

    /// `file` identifies the dataset's file.
    void require(hid_t dataset, const std::string& file, int depth) {
        constexpr int deepest = 32;
        if (depth > deepest) throw unsupported("it is a view of views, more than {} of them", deepest);
        H5O_info_t info;
        if (H5Oget_info(dataset, &info) < 0) throw corrupt("its header cannot be found: {}", hdf5_error());
        const auto [known, is_new] = done_.try_emplace({file, info.addr}, false);
        if (!is_new && !known->second) throw corrupt("it is a view that leads back to itself");
        if (!is_new) return;
        const Hdf5Id list(H5Dget_create_plist(dataset), H5Pclose);
        external_files(list.get(), dataset, depth);
        if (H5Pget_layout(list.get()) == H5D_VIRTUAL) virtual_sources(list.get(), dataset, file, depth);
        known->second = true;
    }

private:
    void external_files(hid_t list, hid_t dataset, int depth) const {
        const int count = H5Pget_external_count(list);
        // libhdf5 would begin their names in the present folder.
        if (count > 0 && depth > 0) throw unsupported("its elements lie in other files: copy it before a view of it");
        for (int i = 0; i < count; ++i) {
            std::array<char, longest_hdf5_name> name{};
            off_t offset = 0;
            hsize_t size = 0;
            if (H5Pget_external(list, static_cast<unsigned>(i), name.size() - 1, name.data(), &offset, &size) < 0) {
                throw corrupt("its list of files cannot be read: {}", hdf5_error());
            }
            (void)other_file(dataset, name.data());
        }
    }

    void virtual_sources(hid_t list, hid_t dataset, const std::string& file, int depth) {
        std::size_t count = 0;
        if (H5Pget_virtual_count(list, &count) < 0) throw corrupt("its sources cannot be read: {}", hdf5_error());
        std::set<std::pair<std::string, std::string>> seen;
        for (std::size_t i = 0; i < count; ++i) {
            const std::string other = virtual_name(H5Pget_virtual_filename, list, i);
            const std::string name = virtual_name(H5Pget_virtual_dsetname, list, i);
            if (!seen.insert({other, name}).second) continue;
            if (other == ".") {
                source(Hdf5Id(H5Iget_file_id(dataset), H5Fclose).get(), name, file, depth);
                continue;
            }
            const std::filesystem::path found = other_file(dataset, other);
            const Hdf5Id opened(H5Fopen(found.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
            if (!opened.good()) throw hdf5_failure(fmt::format("its source {} cannot be opened", found.string()));
            source(opened.get(), name, std::filesystem::canonical(found).string(), depth);
        }
    }

    void source(hid_t file, const std::string& name, const std::string& key, int depth) {
        in_context([&] { return "its source " + name; },
                   [&] {
                       const Hdf5Id found = find_hdf5_object(file, name);
                       if (!found.good()) throw not_found("there is no such array in the file");
                       if (H5Iget_type(found.get()) != H5I_DATASET) throw corrupt("is no array");
                       // A link may have led to another file.
                       const std::string own = file_of_object(found.get());
                       require(found.get(), own == file_of_object(file) ? key : own, depth + 1);
                   });
    }

    /// Another file in which elements lie.
    [[nodiscard]] std::filesystem::path other_file(hid_t dataset, const std::string& other) const {
        if (elsewhere_) {
            throw unsupported("elements of it lie in the file {}, which is not looked for from far away", other);
        }
        if (!outside_allowed()) {
            throw unsupported("elements of it lie in the file {}, which is not opened", other)
                .advising(Action::allow_outside, "opens it");
        }
        std::filesystem::path found = std::filesystem::path(file_of_object(dataset)).parent_path() / other;
        std::error_code ignored;
        const auto status = std::filesystem::status(found, ignored);
        if (!std::filesystem::exists(status)) {
            throw not_found("elements of it lie in the file {}, which is not there", found.string());
        }
        // A pipe may never give anything.
        if (!std::filesystem::is_regular_file(status)) {
            throw unsupported("elements of it are said to lie in {}, which is no regular file", found.string());
        }
        return found;
    }

    bool elsewhere_;
    std::map<std::pair<std::string, haddr_t>, bool> done_;  ///< false: being looked at
};

}  // namespace

void require_hdf5_sources(hid_t dataset, bool elsewhere) {
    Hdf5Sources(elsewhere).require(dataset, file_of_object(dataset), 0);
}

Hdf5Id open_with_hdf5_folder(Hdf5Id dataset) {
    const Hdf5Id list(H5Dget_create_plist(dataset.get()), H5Pclose);
    if (H5Pget_external_count(list.get()) <= 0) return dataset;
    const Hdf5Id access = hdf5_access();
    H5Pset_efile_prefix(access.get(), "${ORIGIN}");
    std::string own(longest_hdf5_name, '\0');
    if (H5Iget_name(dataset.get(), own.data(), own.size()) <= 0) throw unsupported("it has no name");
    const Hdf5Id file(H5Iget_file_id(dataset.get()), H5Fclose);
    dataset = Hdf5Id();  // an open one keeps its folder
    Hdf5Id again(H5Dopen2(file.get(), own.c_str(), access.get()), H5Dclose);
    if (!again.good()) throw hdf5_failure("cannot be opened");
    return again;
}

}  // namespace tessera
