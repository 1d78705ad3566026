#include <tessera/npy.h>

#include <tessera/error_text.h>

#include "mapped_file.h"
#include "plain_array.h"

namespace tessera {

struct MappedArray::State {
    State(const std::filesystem::path& path, Mode m) : file(path, m == Mode::read_write), mode(m) {}

    MappedFile file;
    Mode mode;
    PlainLayout layout;

    MutableArrayView view() {
        return view_bytes(file.data() + layout.data_offset, layout.dtype, layout.shape, layout.order);
    }
};

MappedArray::MappedArray(const std::filesystem::path& path, Mode mode) : state_(std::make_unique<State>(path, mode)) {}

MappedArray::MappedArray(MappedArray&&) noexcept = default;
MappedArray& MappedArray::operator=(MappedArray&&) noexcept = default;
MappedArray::~MappedArray() = default;

const ByteSource& MappedArray::file() const {
    return state_->file;
}

void MappedArray::set_layout(const PlainLayout& layout) {
    state_->layout = layout;
}

ArrayView MappedArray::view() const {
    return state_->view();
}

MutableArrayView MappedArray::mutable_view() {
    if (state_->mode == Mode::read) {
        throw invalid_argument("{} is mapped for reading only; map it with Mode::read_write", state_->file.name());
    }
    return state_->view();
}

void MappedArray::flush() {
    state_->file.flush();
}

}  // namespace tessera
