// Python literals, and the dtypes that they describe.
#include <tessera/dtype.h>

#include "fuzz.h"
#include "python_literal.h"

using namespace tessera;

void fuzz_one(ByteSpan input) {
    const std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
    const Value value = parse_python_literal(text).to_value();
    (void)Value::parse(value.dump());
    const DType dtype = DType::from_descr(value);
    // What is printed reads as the same.
    if (!(DType::parse(dtype.to_string()) == dtype)) __builtin_trap();
}
