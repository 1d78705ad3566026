// A script of `tessera edit`. It is run on a small array in memory, and reads no files here.
#include <tessera/element.h>
#include <tessera/error.h>

#include <sstream>
#include <string>
#include <vector>

#include "edit.h"
#include "edit_script.h"
#include "fuzz.h"
#include "interrupt.h"
#include "progress.h"

using namespace tessera;

// What the language asks of the program.
namespace tessera::cli {

Session::Session(const CommonOptions& common, std::string words)
    : common_(common), words_(std::move(words)), memory_(nullptr) {}
Session::~Session() = default;

IoOptions Session::io() {
    return {.threads = 1};
}

void Session::note(std::string_view /*text*/) {}

void set_elements(Session& /*session*/, Array& array, const Selection& selection, const std::string& value,
                  bool /*raw*/) {
    if (element_count(selection.shape()) > fuzz_limit) throw over_budget("too large for a fuzzer");
    const ElementBytes element = element_from_text(array.dtype(), value);
    const Shape shape = selection.full_shape();
    array.write(selection, ArrayView{element.data(), array.dtype(), shape, Strides::filled(shape.rank(), 0)},
                {.threads = 1});
}

void append_file(Session& /*session*/, Array& array, const std::string& /*file*/, int axis,
                 const std::optional<Cast>& /*cast*/) {
    Shape shape = array.shape();
    shape[axis] = 1;
    if (element_count(shape) > fuzz_limit) throw over_budget("too large for a fuzzer");
    const NDArray ones(array.dtype(), shape);
    array.append(ones.view(), axis, {.threads = 1});
}

}  // namespace tessera::cli

void fuzz_one(ByteSpan input) {
    const Array array = Array::create(
        memory_store(), {.shape = {6, 4}, .chunks = {2, 2}, .dtype = "<i4", .codec = "none", .format = "v3"});
    std::istringstream script(std::string(reinterpret_cast<const char*>(input.data()), input.size()));
    cli::Session session({}, {});
    Edit batch(array);
    (void)cli::run_script(session, batch, nullptr, script, "the script");
}
