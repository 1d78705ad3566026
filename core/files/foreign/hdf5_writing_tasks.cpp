// Requests about the file of HDF5 that this process writes.
#include <hdf5.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/array_file.h>
#include <tessera/error.h>

#include "hdf5_writer.h"
#include "server.h"

namespace tessera {

namespace {

std::unique_ptr<Hdf5Writer>& writer_now() {
    static std::unique_ptr<Hdf5Writer> writer;
    return writer;
}

Hdf5Writer& writer() {
    if (!writer_now()) throw not_found("no file is being written");
    return *writer_now();
}

void begin(ForeignCall& call) {
    const auto output = call.request.next<ForeignOutput>();
    enter_folder(output.folder);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    when_helper_ends([] { writer_now().reset(); });
    writer_now() = std::make_unique<Hdf5Writer>(output.name, output.temporary, output.adds);
}

void put_group(ForeignCall& call) {
    const auto group = call.request.next<ArrayFileGroup>();
    writer().group(group.name, group.attributes);
}

void add(ForeignCall& call) {
    const auto path = call.request.next<std::string>();
    const auto info = call.request.next<ArrayInfo>();
    auto attributes = call.request.next<Value>();
    const auto level = call.request.next<int>();
    const Hdf5Writer::Added added = writer().add(path, info, std::move(attributes), level);
    call.answer(added.number, added.chunks, added.level);
}

void write_elements(ForeignCall& call) {
    const auto number = call.request.next<std::uint64_t>();
    const auto region = call.request.next<Region>();
    const std::int64_t bytes = writer().element_bytes(number, region);
    if (!writer().has_texts(number)) {
        if (std::cmp_less(call.space.size(), bytes)) throw corrupt("elements are missing");
        return writer().write_elements(number, region, call.space.data());
    }
    std::vector<std::string> texts;
    std::vector<const char*> pointers;
    for (std::int64_t n = region.count(); n > 0; --n) texts.push_back(call.request.next<std::string>());
    for (const std::string& text : texts) pointers.push_back(text.c_str());
    writer().write_elements(number, region, pointers.data());
}

void write_chunk(ForeignCall& call) {
    const auto number = call.request.next<std::uint64_t>();
    writer().write_chunk(number, call.request.next<Region>(), call.space);
}

void close(ForeignCall& call) {
    writer().close(call.request.next<std::uint64_t>());
}

void finish(ForeignCall& /*call*/) {
    writer().finish();
}

}  // namespace

std::span<const ForeignRow> hdf5_writing_tasks() {
    static constexpr std::array rows{
        ForeignRow{ForeignTask::write_begin, begin},       ForeignRow{ForeignTask::write_group, put_group},
        ForeignRow{ForeignTask::write_add, add},           ForeignRow{ForeignTask::write_elements, write_elements},
        ForeignRow{ForeignTask::write_chunk, write_chunk}, ForeignRow{ForeignTask::write_close, close},
        ForeignRow{ForeignTask::write_finish, finish},
    };
    return rows;
}

}  // namespace tessera
