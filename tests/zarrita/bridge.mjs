// zarrita for the cross-tests: reads requests from standard input, a JSON object a line, and answers each with one.
//
//   {"read": PATH or URL}    → {"dtype", "shape", "data"}; data is base64 of the elements in C order (little-endian,
//                       booleans as bytes), or a list of strings
//   {"write": PATH, "dtype", "shape", "chunks", "codecs", "fill", "data", "separator"}    → {} (Zarr v3)
//
// What fails gives {"error": TEXT}.
import * as path from "node:path";
import * as readline from "node:readline";
import { FetchStore, FileSystemStore } from "@zarrita/storage";
import * as zarr from "zarrita";

function toBytes(data) {
    if (data instanceof zarr.BoolArray) return Buffer.from(Uint8Array.from(data, (v) => (v ? 1 : 0)));
    return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}

// zarrita gives strings of a fixed length as padded bytes in classes of its own.
function isText(dtype) {
    return dtype === "string" || dtype.startsWith("v2:U") || dtype.startsWith("v2:S") || dtype === "v2:object";
}

// Into `packed`, the elements in C order: zarrita keeps the order in which they are stored.
function inOrder({ data, shape, stride }, packed) {
    const count = shape.reduce((a, b) => a * b, 1);
    const contiguous = shape.every((_, d) => stride[d] === shape.slice(d + 1).reduce((a, b) => a * b, 1));
    const at = (i) => (data.get ? data.get(i) : data[i]);
    for (let i = 0; i < count; i++) {
        let from = 0;
        for (let d = shape.length - 1, rest = i; d >= 0; rest = Math.floor(rest / shape[d]), d--) {
            from += (rest % shape[d]) * stride[d];
        }
        const value = contiguous ? at(i) : at(from);
        if (packed.set && packed instanceof zarr.BoolArray) packed.set(i, value);
        else packed[i] = value;
    }
    return packed;
}

async function read(request) {
    const remote = request.read.startsWith("http://");
    const store = remote ? new FetchStore(request.read) : new FileSystemStore(path.resolve(request.read));
    const array = await zarr.open(store, { kind: "array" });
    const region = await zarr.get(array);
    const shape = [...array.shape];
    const answer = { dtype: array.dtype, shape };
    if (shape.length === 0) {
        // A 0-d array is given as its one element.
        if (isText(array.dtype)) return { ...answer, data: [region] };
        const Elements = array.dtype === "bool" ? Uint8Array : typedArrays[array.dtype];
        return Elements ? { ...answer, data: toBytes(Elements.of(region)).toString("base64") } : answer;
    }
    if (isText(array.dtype)) return { ...answer, data: inOrder(region, []) };
    const packed = new region.data.constructor(shape.reduce((a, b) => a * b, 1));
    return { ...answer, data: toBytes(inOrder(region, packed)).toString("base64") };
}

const typedArrays = {
    int8: Int8Array, int16: Int16Array, int32: Int32Array, int64: BigInt64Array,
    uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, uint64: BigUint64Array,
    float32: Float32Array, float64: Float64Array,
};

function fromBytes(dtype, base64) {
    const bytes = Uint8Array.from(Buffer.from(base64, "base64"));
    if (dtype === "bool") return new zarr.BoolArray(bytes.buffer);
    return new typedArrays[dtype](bytes.buffer);
}

async function write(request) {
    const store = new FileSystemStore(path.resolve(request.write));
    const { dtype, shape, chunks, codecs, fill, separator } = request;
    const big = dtype === "int64" || dtype === "uint64";
    const array = await zarr.create(store, {
        dtype, shape, chunkShape: chunks, codecs, chunkSeparator: separator ?? "/",
        fillValue: big ? BigInt(fill) : fill,
    });
    const stride = shape.map((_, d) => shape.slice(d + 1).reduce((a, b) => a * b, 1));
    await zarr.set(array, null, { data: fromBytes(dtype, request.data), shape, stride });
    return {};
}

// Codecs are loaded before anybody waits for them: one that is not known is told when it is used.
process.on("unhandledRejection", () => {});

for await (const line of readline.createInterface({ input: process.stdin })) {
    let answer;
    try {
        const request = JSON.parse(line);
        answer = request.read === undefined ? await write(request) : await read(request);
    } catch (error) {
        answer = { error: String(error?.cause ? `${error} (${error.cause})` : error) };
    }
    process.stdout.write(`${JSON.stringify(answer)}\n`);
}
